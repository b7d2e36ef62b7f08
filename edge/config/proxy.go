package config

import (
	"net/netip"
	"strings"
	"time"
)

// leastAge is the shortest life of a connection that an operator may set: below
// it clients would do little but connect.
const leastAge = 10 * time.Second

func readProxyProtocol(c *Config, value string) string {
	if !strings.EqualFold(value, "required") {
		return "not a way to take the PROXY protocol"
	}
	c.ProxyProtocol = true
	return ""
}

// readProxyTrusted reads networks, or lone addresses, separated by commas.
func readProxyTrusted(c *Config, value string) string {
	for _, text := range strings.Split(value, ",") {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil || a.Zone() != "" {
				return "holds what is neither a network (192.0.2.0/24) nor an address"
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p != p.Masked() {
			return "names a host with the size of a network; the network is " + p.Masked().String()
		}
		if a := p.Addr(); a.Is4In6() { // and so has 96 bits at least
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		c.ProxyTrusted = append(c.ProxyTrusted, p)
	}
	return ""
}

// maxAge is a time that may be 0, and is else no shorter than leastAge.
func maxAge(name, does string) variable {
	v := millis(name, does, 0, 0, 604_800_000, func(c *Config, d time.Duration) { c.ConnectionMaxAge = d })
	v.legal = "0, or 10000–604800000 milliseconds"
	read := v.read
	v.read = func(c *Config, value string) string {
		reason := read(c, value)
		if c.ConnectionMaxAge > 0 && c.ConnectionMaxAge < leastAge {
			return "out of range"
		}
		return reason
	}
	return v
}
