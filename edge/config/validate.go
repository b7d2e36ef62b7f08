package config

import (
	"errors"
	"fmt"
)

// Validate checks a Config whatever made it: what is required, and what
// contradicts. It is called before the listener opens.
func (c *Config) Validate() error {
	var problems []error
	for _, p := range c.conflicts(nil) {
		problems = append(problems, p)
	}
	return errors.Join(problems...)
}

// conflicts finds what is missing and what contradicts. set names the
// variables that had a value, so that a bad one is not called unset as well;
// nil where the Config was made in code.
func (c *Config) conflicts(set map[string]bool) []*Problem {
	var out []*Problem
	check := func(bad bool, variable, reason string, args ...any) {
		if bad {
			out = append(out, &Problem{Variable: variable, Reason: fmt.Sprintf(reason, args...)})
		}
	}
	check(c.Advertised.Host == "" && !c.Advertised.SNI && !set["QUEEN_KAFKA_ADVERTISED_ADDR"], "QUEEN_KAFKA_ADVERTISED_ADDR",
		"required, and it has no default: it is the host:port clients are told to dial after the first connection. "+
			"QUEEN_KAFKA_ADDR (%s) is only where this process listens; a wrong guess gives clients that connect and then hang", c.Addr)
	check(c.Advertised.Host != "" && isWildcard(c.Advertised.Host), "QUEEN_KAFKA_ADVERTISED_ADDR", wildcardReason)
	check((c.Advertised.Host != "" || c.Advertised.SNI) && (c.Advertised.Port < 1 || c.Advertised.Port > 65535), "QUEEN_KAFKA_ADVERTISED_ADDR",
		"the port is not a number from 1 to 65535")
	check(c.URL == "", "QUEEN_URL", "empty; legal: an http or https URL")
	check(c.Addr == "", "QUEEN_KAFKA_ADDR", "empty; legal: host:port")
	check(c.TLSCert != "" && c.TLSKey == "", "QUEEN_KAFKA_TLS_KEY",
		"unset while QUEEN_KAFKA_TLS_CERT is set; set both, or neither for a plaintext listener")
	check(c.TLSCert == "" && c.TLSKey != "", "QUEEN_KAFKA_TLS_CERT",
		"unset while QUEEN_KAFKA_TLS_KEY is set; set both, or neither for a plaintext listener")
	check(c.ForwardSNIHost && !c.TLS(), "QUEEN_KAFKA_FORWARD_SNI_HOST",
		"true needs QUEEN_KAFKA_TLS_CERT and QUEEN_KAFKA_TLS_KEY, or QUEEN_KAFKA_TLS_DIR: only a TLS client names the host it dials; default: false")
	check(c.TLSTickets != "" && !c.TLS(), "QUEEN_KAFKA_TLS_TICKET_KEYS",
		"set without QUEEN_KAFKA_TLS_CERT and QUEEN_KAFKA_TLS_KEY, or QUEEN_KAFKA_TLS_DIR: a plaintext listener has no sessions to resume")
	out = append(out, c.laneConflicts(set)...)
	check(c.ProxyProtocol && len(c.ProxyTrusted) == 0 && !set["QUEEN_KAFKA_PROXY_TRUSTED"], "QUEEN_KAFKA_PROXY_TRUSTED",
		"unset while QUEEN_KAFKA_PROXY_PROTOCOL is set: nobody could connect; name the balancers' addresses")
	check(!c.ProxyProtocol && len(c.ProxyTrusted) > 0 && !set["QUEEN_KAFKA_PROXY_PROTOCOL"], "QUEEN_KAFKA_PROXY_PROTOCOL",
		"unset while QUEEN_KAFKA_PROXY_TRUSTED is set; set it to required, or neither")
	c.clusterConflicts(set, check)
	check(!c.AdminToken.IsZero() && c.AdminAddr == "" && !set["QUEEN_KAFKA_ADMIN_ADDR"], "QUEEN_KAFKA_ADMIN_TOKEN",
		"set while QUEEN_KAFKA_ADMIN_ADDR is unset: there is nothing that it would guard")
	check(c.AdminPprof && (c.AdminToken.IsZero() || c.AdminAddr == "") && !set["QUEEN_KAFKA_ADMIN_TOKEN"], "QUEEN_KAFKA_ADMIN_PPROF",
		"true needs QUEEN_KAFKA_ADMIN_ADDR and QUEEN_KAFKA_ADMIN_TOKEN: profiles show what the process works on; default: false")
	check(c.DefaultPartitions < 1 || c.DefaultPartitions > c.MaxPartitions, "QUEEN_KAFKA_DEFAULT_PARTITIONS",
		"%d is not in 1–%d (QUEEN_KAFKA_MAX_PARTITIONS); default: %d, or the maximum where that is smaller",
		c.DefaultPartitions, c.MaxPartitions, defaultPartitions)
	check(c.Group.MinSessionTimeout > c.Group.MaxSessionTimeout, "QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS",
		"%d is above QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS (%d); defaults: 6000 and 300000",
		c.Group.MinSessionTimeout.Milliseconds(), c.Group.MaxSessionTimeout.Milliseconds())
	check(c.Txn.MaxBytes > c.Txn.MaxStagedBytes, "QUEEN_KAFKA_TXN_MAX_BYTES",
		"%d is above QUEEN_KAFKA_TXN_MAX_STAGED_BYTES (%d), so no transaction could reach it; defaults: %d and %d",
		c.Txn.MaxBytes, c.Txn.MaxStagedBytes, 8<<20, 128<<20)
	check(c.MaxConnections < 1, "QUEEN_KAFKA_MAX_CONNECTIONS", "%d lets nobody in; default: 4096", c.MaxConnections)
	check(c.Reverify <= 0, "QUEEN_KAFKA_REVERIFY_MS", "%v is no time; default: 30000", c.Reverify)
	check(c.TenantReserve < 0 || c.TenantReserve >= 1, "QUEEN_KAFKA_TENANT_RESERVE",
		"%v leaves a lone tenant nothing; legal: 0–0.9; default: 0.25", c.TenantReserve)
	return out
}
