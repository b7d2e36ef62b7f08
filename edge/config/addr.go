package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

func readURL(c *Config, value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return "not a URL"
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "neither http nor https"
	case u.User != nil:
		return "holds a user or a password; the credential belongs in QUEEN_TOKEN"
	case u.RawQuery != "" || u.Fragment != "":
		return "holds a query or a fragment"
	}
	c.URL = strings.TrimRight(value, "/")
	return ""
}

func readAddr(c *Config, value string) string {
	a, reason := parseAddr(value)
	if reason != "" {
		return reason
	}
	c.Addr = a.String()
	return ""
}

func readAdminAddr(c *Config, value string) string {
	a, reason := parseAddr(value)
	if reason != "" {
		return reason
	}
	c.AdminAddr = a.String()
	return ""
}

func readAdvertised(c *Config, value string) string {
	a, reason := parseAddr(value)
	if reason != "" {
		return reason
	}
	if strings.EqualFold(a.Host, dialled) {
		c.Advertised = Addr{Port: a.Port, SNI: true}
		return ""
	}
	if isWildcard(a.Host) {
		return wildcardReason
	}
	if strings.Contains(a.Host, "%") {
		return "an address with a zone means nothing on the client's machine"
	}
	a.Host = strings.TrimRight(a.Host, ".")
	c.Advertised = a
	return ""
}

// dialled stands for the name each client dialled, where a host would be.
const dialled = "sni"

const wildcardReason = "a wildcard address cannot be dialled; name the host that clients use"

// parseAddr reads host:port or [v6]:port. The reason is "" for a good one.
func parseAddr(value string) (Addr, string) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		if bracketed, ok := bracketForm(value); ok {
			return Addr{}, "an IPv6 address needs brackets: " + bracketed
		}
		return Addr{}, "no port"
	}
	if host == "" {
		return Addr{}, "no host"
	}
	if !isHost(host) {
		return Addr{}, "not a host name or an IP address"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return Addr{}, "the port is not a number from 1 to 65535"
	}
	return Addr{Host: host, Port: int32(n)}, ""
}

// bracketForm rewrites a bare IPv6 address, with or without a port, as it has
// to be written.
func bracketForm(value string) (string, bool) {
	if i := strings.LastIndexByte(value, ':'); i > 0 && !strings.HasSuffix(value[:i], ":") {
		if ip, err := netip.ParseAddr(value[:i]); err == nil && ip.Is6() {
			return "[" + value[:i] + "]:" + value[i+1:], true
		}
	}
	bare := strings.Trim(value, "[]")
	if ip, err := netip.ParseAddr(bare); err == nil && ip.Is6() {
		return "[" + bare + "]:9092", true
	}
	return "", false
}

// isHost accepts IP literals and names of letters, digits, '-', '_' and '.'.
// Container networks use underscores, so they are let through here.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if len(host) > 253 || strings.Trim(host, ".") == "" || strings.HasPrefix(host, ".") {
		return false
	}
	for _, r := range host {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		default:
			return false
		}
	}
	return true
}

// isWildcard reports an address that means "every interface".
func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.WithZone("").Unmap().IsUnspecified()
}
