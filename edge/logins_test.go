package edge

import (
	"net"
	"testing"
)

// The brakes know an IPv4 address however it is written, and an IPv6 client by
// the network it has.
func TestClientNet(t *testing.T) {
	for _, c := range []struct{ ip, zone, want string }{
		{"192.0.2.7", "", "192.0.2.7/32"},
		{"::ffff:192.0.2.7", "", "192.0.2.7/32"},
		{"2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff::1", "", "2001:db8:1:2::/64"},
		{"fe80::1", "eth0", "fe80::/64"},
	} {
		got := clientNet(&net.TCPAddr{IP: net.ParseIP(c.ip), Port: 1, Zone: c.zone})
		if got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.ip, got, c.want)
		}
	}
	if p := clientNet(&net.UnixAddr{Name: "x"}); p.IsValid() {
		t.Errorf("no address at all: %v", p)
	}
}
