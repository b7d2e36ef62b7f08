// Package sni turns the server name of a TLS hello into a Lane: the HTTP Host
// that connection's cell calls carry, and the name its client is told to dial.
//
// A lane is a claim, proved by nothing: the name reaches the gateway before any
// login. It only decides which name the cell is asked under; the cell decides
// whether the token belongs there.
package sni

import (
	"net/netip"
	"strings"
)

// maxName is the longest DNS name in its text form, without the final dot.
const maxName = 253

// Lane is the way a connection came in. The zero Lane is the root lane.
type Lane struct{ name, host string }

// Host is the HTTP Host to send to the cell; empty means the cell URL's own
// authority.
func (l Lane) Host() string { return l.host }

// Advertised is the name to dial that clients of this lane may be told: in the
// spelling of Normalize, so without a trailing dot. The root lane has none.
func (l Lane) Advertised() string { return l.name }

// Name is the lane's name in logs.
func (l Lane) Name() string {
	if l.name == "" {
		return "root"
	}
	return l.name
}

// Normalize gives a server name the one spelling names are compared in: no
// surrounding blanks, lower case, no trailing dots. It refuses what is longer
// than 253 bytes, anything but a-z, 0-9, '.' and '-', and an IP address; host is
// then empty.
func Normalize(serverName string) (host string, ok bool) {
	name := strings.TrimSpace(serverName)
	name = strings.TrimRight(name, ".")
	if name == "" || len(name) > maxName {
		return "", false
	}
	// ASCII only, so that no Unicode folding can turn a foreign letter into a
	// plain one (U+212A lower-cases to k).
	b := []byte(name)
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '-':
		default:
			return "", false
		}
	}
	// An address is no name (RFC 6066 §3), and no cell serves a cluster by one.
	if _, err := netip.ParseAddr(string(b)); err == nil {
		return "", false
	}
	return string(b), true
}
