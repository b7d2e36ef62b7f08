package sni_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/sni"
)

func names(t *testing.T, c sni.Config) *sni.Names {
	t.Helper()
	n, err := sni.NewNames(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// B5: which hello is served under which lane.
func TestLanes(t *testing.T) {
	lanes := []string{"A.Example.", "*.eu.example", "b.example"}
	long := strings.Repeat(strings.Repeat("a", 63)+".", 4)[:255]
	tests := []struct {
		dialled    string
		kind       sni.Kind
		lane       string // without a default lane; empty: refused
		withoutOne string // what is dialled comes to, cleaned
	}{
		{"a.example", sni.Known, "a.example", "a.example"},
		{"A.EXAMPLE", sni.Known, "a.example", "a.example"},
		{"a.example.", sni.Known, "a.example", "a.example"},
		{"c1.eu.example", sni.Known, "c1.eu.example", "c1.eu.example"},
		{"C1.Eu.Example", sni.Known, "c1.eu.example", "c1.eu.example"},
		{"eu.example", sni.Unknown, "", "eu.example"},
		{".eu.example", sni.Unknown, "", ".eu.example"},
		{"x.c1.eu.example", sni.Unknown, "", "x.c1.eu.example"},
		{"c.example", sni.Unknown, "", "c.example"},
		{"*.eu.example", sni.Invalid, "", ""},
		{"", sni.None, "", ""},
		{"127.0.0.1", sni.Address, "", ""},
		{"::1", sni.Address, "", ""},
		{"[2001:db8::1]", sni.Address, "", ""},
		{"my_cluster.eu.example", sni.Invalid, "", ""},
		{"bücher.eu.example", sni.Invalid, "", ""},
		{"xn--bcher-kva.eu.example", sni.Known, "xn--bcher-kva.eu.example", "xn--bcher-kva.eu.example"},
		{long, sni.Invalid, "", ""},
	}
	for _, forward := range []bool{false, true} {
		strict := names(t, sni.Config{Lanes: lanes, Forward: forward})
		lenient := names(t, sni.Config{Lanes: lanes, Default: "B.example", Forward: forward})
		for _, test := range tests {
			want := sni.Hello{Name: test.withoutOne, Kind: test.kind}
			check := func(what string, got sni.Hello, lane string, answer sni.Answer) {
				t.Helper()
				host := ""
				if forward {
					host = lane
				}
				if got.Name != want.Name || got.Kind != want.Kind || got.Answer != answer ||
					got.Lane.Advertised() != lane || got.Lane.Host() != host {
					t.Errorf("%s, %q: %+v; want lane %q, host %q, %v %v", what, test.dialled, got, lane, host, test.kind, answer)
				}
			}
			if test.lane != "" {
				check("strict", strict.Read(test.dialled), test.lane, sni.Served)
				check("with a default", lenient.Read(test.dialled), test.lane, sni.Served)
				continue
			}
			check("strict", strict.Read(test.dialled), "", sni.Refused)
			check("with a default", lenient.Read(test.dialled), "b.example", sni.ByDefault)
		}
	}
}

func TestLanesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		config sni.Config
		want   string
	}{
		{sni.Config{Lanes: []string{""}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"*"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"*."}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"a.*.example"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"*.*.example"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"a..example"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{strings.Repeat("a", 64) + ".example"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"my_cluster.example"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"192.0.2.1"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"a.example:9092"}}, "neither a DNS name nor a pattern"},
		{sni.Config{Lanes: []string{"bücher.example"}}, "punycode"},
		{sni.Config{Lanes: []string{"a.example"}, Default: "*.example"}, "a client could dial"},
		{sni.Config{Lanes: []string{"a.example"}, Default: "b.example"}, "not one of the names"},
		{sni.Config{Lanes: slices.Repeat([]string{"a.example"}, 10_001)}, "at most 10000"},
	} {
		if _, err := sni.NewNames(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100q, default %q: %v; want %q", c.config.Lanes, c.config.Default, err, c.want)
		}
	}
}

func TestServes(t *testing.T) {
	n := names(t, sni.Config{Lanes: []string{"a.example", "*.eu.example"}})
	for host, want := range map[string]bool{
		"a.example": true, "A.example.": true, "x.eu.example": true,
		"b.example": false, "127.0.0.1": false, "": false,
	} {
		if n.Serves(host) != want {
			t.Errorf("%q is served: %v", host, !want)
		}
	}
	if all := names(t, sni.Config{}); !all.Serves("b.example") || all.Serves("127.0.0.1") || all.Limited() || all.Default() != "" {
		t.Error("without a list not every name is served")
	}
}

// Every hello there can be is told of, under its own labels.
func TestCounts(t *testing.T) {
	var c sni.Counts
	n := names(t, sni.Config{Lanes: []string{"a.example"}})
	d := names(t, sni.Config{Lanes: []string{"a.example"}, Default: "a.example"})
	for _, dialled := range []string{"a.example", "b.example", "", "127.0.0.1", "_", "_"} {
		c.Add(n.Read(dialled))
		c.Add(d.Read(dialled))
		c.Add(names(t, sni.Config{}).Read(dialled))
	}
	got := map[string]int64{}
	c.Each(func(k sni.Kind, a sni.Answer, n int64) { got[k.String()+" "+a.String()] += n })
	want := map[string]int64{
		"known served": 4, "known refused": 0, "unknown default": 1, "unknown refused": 1,
		"none served": 1, "none default": 1, "none refused": 1, "address served": 1, "address default": 1, "address refused": 1,
		"invalid served": 2, "invalid default": 2, "invalid refused": 2,
	}
	for label, n := range want {
		if v, ok := got[label]; !ok || v != n {
			t.Errorf("%s: %d, want %d", label, v, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d kinds of hello, want %d: %v", len(got), len(want), got)
	}
}

// What a name is counted under is what the list says, never the name a stranger
// has made up.
func TestEntry(t *testing.T) {
	n := names(t, sni.Config{Lanes: []string{"a.example", "*.eu.example", "b.eu.example"}, Default: "a.example"})
	for name, want := range map[string]string{
		"a.example": "a.example", "b.eu.example": "b.eu.example", "c.eu.example": "*.eu.example", "x.c.eu.example": "", "z.example": "", "": "",
	} {
		if got := n.Entry(name); got != want {
			t.Errorf("%q is under %q, want %q", name, got, want)
		}
	}
	if got := names(t, sni.Config{}).Entry("a.example"); got != "" {
		t.Errorf("without a list: %q", got)
	}
}
