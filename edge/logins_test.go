package edge

import (
	"net"
	"testing"
)

// A client's address is shown without its port, an IPv4 one however it is written.
func TestClientHost(t *testing.T) {
	for _, c := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 1}, "/192.0.2.7"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:192.0.2.7"), Port: 1}, "/192.0.2.7"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, "/2001:db8::1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"}, "/fe80::1%eth0"},
		{&net.UDPAddr{IP: net.ParseIP("192.0.2.7"), Port: 1}, "/192.0.2.7"},
		{&net.UnixAddr{Name: "x"}, "/x"},
	} {
		if got := clientHost(c.addr); got != c.want {
			t.Errorf("%v: %s, want %s", c.addr, got, c.want)
		}
	}
}

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
