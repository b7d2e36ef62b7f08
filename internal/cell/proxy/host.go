package proxy

import "strings"

// normaliseHost brings a Host header to the form names are compared in: no
// port, no trailing dots, lower case (cell-http §2.4).
func normaliseHost(host string) string {
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && allDigits(host[colon+1:]) {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// allDigits reports whether s holds nothing but 0-9.
func allDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// resolveHost finds what the Host names: a cluster, nothing because the name
// is shared, or nothing because it is unknown. Where the listener has shared
// names, a stranger learns of an unknown one only after the credential.
func (p *Proxy) resolveHost(c *call) *refusal {
	host := normaliseHost(c.r.Host)
	if p.shared[host] {
		c.sharedHost = true
		return nil
	}
	slug, _, _ := strings.Cut(host, ".")
	if view, ok := p.control.BySlug(slug); ok {
		c.cluster = view
		return nil
	}
	if view, ok := p.control.BySlug(p.defaultCluster); ok {
		c.cluster = view
		return nil
	}
	if len(p.shared) > 0 {
		return nil
	}
	return clusterUnknown()
}
