package config

import (
	"slices"
	"strings"
	"testing"
)

var pair = []string{"QUEEN_KAFKA_TLS_CERT", "/c", "QUEEN_KAFKA_TLS_KEY", "/k"}

func TestLanes(t *testing.T) {
	c := read(t, append(pair, "QUEEN_KAFKA_LANES", " A.Example. , *.EU.example", "QUEEN_KAFKA_DEFAULT_LANE", "C.eu.example.", advertised, "SNI:9093")...)
	if !slices.Equal(c.Lanes, []string{"a.example", "*.eu.example"}) || c.DefaultLane != "c.eu.example" {
		t.Errorf("lanes %q, default %q", c.Lanes, c.DefaultLane)
	}
	if c.Advertised != (Addr{Port: 9093, SNI: true}) || c.Advertised.String() != "sni:9093" {
		t.Errorf("advertised %+v, %s", c.Advertised, c.Advertised)
	}
	names, err := c.Names()
	if err != nil || names.Read("x.eu.example").Lane.Advertised() != "x.eu.example" || names.Default() != "c.eu.example" {
		t.Errorf("names %+v: %v", names, err)
	}
	if c := read(t, "QUEEN_KAFKA_TLS_DIR", "/certs", "QUEEN_KAFKA_TLS_TICKET_KEYS", "/tickets"); !c.TLS() || c.TLSDir != "/certs" || c.TLSTickets != "/tickets" {
		t.Errorf("got %+v", c)
	}
}

// What contradicts about names stops the start, and the sentence says which
// variable.
func TestLaneConflicts(t *testing.T) {
	lanes := func(pairs ...string) []string {
		return append(append(slices.Clone(pair), "QUEEN_KAFKA_LANES", "a.example,*.eu.example"), pairs...)
	}
	for _, test := range []struct {
		name     string
		env      []string
		variable string // empty: legal
		want     string
	}{
		{"sni: without lanes", append(slices.Clone(pair), advertised, "sni:9093"), advertised, "needs QUEEN_KAFKA_LANES"},
		{"sni: in the clear", []string{advertised, "sni:9093"}, advertised, "needs QUEEN_KAFKA_LANES"},
		{"sni: without a port", lanes(advertised, "sni"), advertised, "no port"},
		{"sni: at port 0", lanes(advertised, "sni:0"), advertised, "1 to 65535"},
		{"lanes in the clear", []string{"QUEEN_KAFKA_LANES", "kafka.example"}, "QUEEN_KAFKA_LANES", "QUEEN_KAFKA_TLS_DIR"},
		{"a bad lane", lanes("QUEEN_KAFKA_LANES", "a_b.example"), "QUEEN_KAFKA_LANES", "neither a DNS name"},
		{"a bad lane beside sni:", lanes("QUEEN_KAFKA_LANES", "a_b.example", advertised, "sni:9093"), "QUEEN_KAFKA_LANES", "neither a DNS name"},
		{"an empty entry", lanes("QUEEN_KAFKA_LANES", "a.example,,b.example", advertised, "a.example:9092"), "QUEEN_KAFKA_LANES", "neither a DNS name"},
		{"a default alone", []string{"QUEEN_KAFKA_DEFAULT_LANE", "a.example"}, "QUEEN_KAFKA_DEFAULT_LANE", "QUEEN_KAFKA_LANES is unset"},
		{"a pattern as default", lanes("QUEEN_KAFKA_DEFAULT_LANE", "*.eu.example", advertised, "a.example:9092"), "QUEEN_KAFKA_DEFAULT_LANE", "pattern"},
		{"a default that is no lane", lanes("QUEEN_KAFKA_DEFAULT_LANE", "b.example"), "QUEEN_KAFKA_DEFAULT_LANE", "not covered"},
		{"a refused name is advertised", lanes(), advertised, "refuses that name"},
		{"an address is advertised", lanes(advertised, "192.0.2.1:9092"), advertised, "names no lane"},
		{"tickets in the clear", []string{"QUEEN_KAFKA_TLS_TICKET_KEYS", "/t"}, "QUEEN_KAFKA_TLS_TICKET_KEYS", "plaintext"},
		{"a lane is advertised", lanes(advertised, "A.example.:9092"), "", ""},
		{"any name, and a default", lanes("QUEEN_KAFKA_DEFAULT_LANE", "a.example"), "", ""},
		{"an address, and a default", lanes("QUEEN_KAFKA_DEFAULT_LANE", "a.example", advertised, "192.0.2.1:9092"), "", ""},
	} {
		_, err := FromLookup(lookup(test.env...))
		problems := Problems(err)
		switch {
		case test.variable == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.variable != "" && (len(problems) != 1 || problems[0].Variable != test.variable || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v; want %s: %q", test.name, err, test.variable, test.want)
		}
	}
}

func TestLaneWarnings(t *testing.T) {
	env := append(slices.Clone(pair), "QUEEN_KAFKA_SASL", "plain", "QUEEN_KAFKA_LANES", "a.example,b.example", "QUEEN_KAFKA_FORWARD_SNI_HOST", "true")
	if w := warnings(read(t, append(env, advertised, "a.example:9092")...)); len(w) != 1 || !strings.Contains(w[0], "sni:PORT") {
		t.Errorf("one address for all lanes: %q", w)
	}
	if w := warnings(read(t, append(env, advertised, "sni:9092")...)); w != nil {
		t.Errorf("each lane its own: %q", w)
	}
}
