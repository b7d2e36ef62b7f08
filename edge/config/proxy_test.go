package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestProxySettings(t *testing.T) {
	const way, who = "QUEEN_KAFKA_PROXY_PROTOCOL", "QUEEN_KAFKA_PROXY_TRUSTED"
	c := read(t, way, "Required", who, "192.0.2.0/24, 10.1.2.3,2001:db8::/32,::1,::ffff:10.0.0.0/104")
	want := []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("10.1.2.3/32"),
		netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	}
	if !c.ProxyProtocol || !reflect.DeepEqual(c.ProxyTrusted, want) {
		t.Errorf("%v %v", c.ProxyProtocol, c.ProxyTrusted)
	}
	for _, bad := range []struct{ way, who, want string }{
		{"optional", "10.0.0.0/8", "not a way"},
		{"off", "10.0.0.0/8", "not a way"},
		{"required", "10.0.0.0/33", "neither a network"},
		{"required", "10.0.0.0/8,", "neither a network"},
		{"required", "balancer.example", "neither a network"},
		{"required", "fe80::1%eth0", "neither a network"},
		{"required", "10.0.0.1/8", "10.0.0.0/8"},
		{"required", "::ffff:0:0/95", "names a host"},
	} {
		_, err := FromLookup(lookup(way, bad.way, who, bad.who))
		if err == nil || !strings.Contains(err.Error(), bad.want) || len(Problems(err)) != 1 {
			t.Errorf("%q, %q: %v", bad.way, bad.who, err)
		}
	}
}
