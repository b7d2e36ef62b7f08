package config

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/queen-mq/queen-edge/sni"
)

func readLanes(c *Config, value string) string {
	var lanes []string
	for part := range strings.SplitSeq(value, ",") {
		lane, err := sni.ParseLane(part)
		if err != nil {
			return err.Error()
		}
		lanes = append(lanes, lane)
	}
	c.Lanes = lanes
	return ""
}

func readDefaultLane(c *Config, value string) string {
	name, ok := sni.Normalize(value)
	if !ok {
		return "not a DNS name; a pattern is none either, for it is what clients may be told to dial"
	}
	c.DefaultLane = name
	return ""
}

// laneConflicts finds what contradicts about names (B5). A variable of set whose
// value was bad has been told of already.
func (c *Config) laneConflicts(set map[string]bool) []*Problem {
	var out []*Problem
	check := func(bad bool, variable, reason string, args ...any) {
		if bad {
			out = append(out, &Problem{Variable: variable, Reason: fmt.Sprintf(reason, args...)})
		}
	}
	limited := len(c.Lanes) > 0
	if !limited {
		unset := !set["QUEEN_KAFKA_LANES"]
		check(unset && c.DefaultLane != "", "QUEEN_KAFKA_DEFAULT_LANE",
			"set while QUEEN_KAFKA_LANES is unset: every name is served then, and none needs a default")
		check(unset && c.Advertised.SNI, "QUEEN_KAFKA_ADVERTISED_ADDR",
			"%s advertises the name that a client dialled, which needs QUEEN_KAFKA_LANES: without a list a stranger's hello would choose it", c.Advertised)
		return out
	}
	check(!c.TLS(), "QUEEN_KAFKA_LANES",
		"set without QUEEN_KAFKA_TLS_CERT and QUEEN_KAFKA_TLS_KEY, or QUEEN_KAFKA_TLS_DIR: only a TLS client names the host it dials")
	names, err := sni.NewNames(sni.Config{Lanes: c.Lanes})
	if err != nil {
		check(true, "QUEEN_KAFKA_LANES", "%v", err)
		return out
	}
	check(c.DefaultLane != "" && !names.Serves(c.DefaultLane), "QUEEN_KAFKA_DEFAULT_LANE",
		"%q is not covered by QUEEN_KAFKA_LANES; add it there", c.DefaultLane)
	// Clients would be told to come back by a name that is then refused.
	host := c.Advertised.Host
	_, notAddress := netip.ParseAddr(host)
	check(host != "" && c.DefaultLane == "" && notAddress != nil && !names.Serves(host), "QUEEN_KAFKA_ADVERTISED_ADDR",
		"clients are told to dial %s, and QUEEN_KAFKA_LANES refuses that name; add it there, set QUEEN_KAFKA_DEFAULT_LANE, or advertise sni:%d", host, c.Advertised.Port)
	check(host != "" && c.DefaultLane == "" && notAddress == nil, "QUEEN_KAFKA_ADVERTISED_ADDR",
		"clients are told to dial the address %s, and who dials an address names no lane of QUEEN_KAFKA_LANES; set QUEEN_KAFKA_DEFAULT_LANE, or advertise a name or sni:%d", host, c.Advertised.Port)
	return out
}
