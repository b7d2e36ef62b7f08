package sni_test

import (
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/sni"
)

func TestNormalize(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, label[:61]}, ".")
	tests := []struct {
		name, in, want string
	}{
		{"plain", "cluster-1.eu.queenmq.com", "cluster-1.eu.queenmq.com"},
		{"upper case", "CLUSTER-1.Eu.QueenMQ.com", "cluster-1.eu.queenmq.com"},
		{"trailing dot", "cluster.example.", "cluster.example"},
		{"trailing dots", "cluster.example...", "cluster.example"},
		{"blanks", " \tcluster.example\r\n", "cluster.example"},
		{"single label", "localhost", "localhost"},
		{"punycode", "xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"253 bytes", longest, longest},
		{"253 bytes and a dot", longest + ".", longest},
		{"254 bytes", longest + "a", ""},
		{"255 bytes", longest + "aa", ""},
		{"none", "", ""},
		{"only blanks", "  ", ""},
		{"only dots", "...", ""},
		{"underscore", "my_cluster.example", ""},
		{"IDN in the clear", "bücher.example", ""},
		{"kelvin sign folds to k", "\u212aafka.example", ""},
		{"IPv4", "192.0.2.1", ""},
		{"IPv6", "2001:db8::1", ""},
		{"port", "cluster.example:9092", ""},
		{"inner blank", "cluster example", ""},
		{"header injection", "cluster.example\r\nX-Tenant: other", ""},
		{"NUL", "cluster\x00.example", ""},
		{"path", "cluster.example/..", ""},
		{"not UTF-8", "cluster\xff.example", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := sni.Normalize(test.in)
			if got != test.want || ok != (test.want != "") {
				t.Errorf("Normalize(%q) = %q, %v; want %q", test.in, got, ok, test.want)
			}
			hello := names(t, sni.Config{Forward: true}).Read(test.in)
			if hello.Lane.Host() != test.want || hello.Answer != sni.Served {
				t.Errorf("lane host %q, %v; want %q", hello.Lane.Host(), hello.Answer, test.want)
			}
			if hello := names(t, sni.Config{}).Read(test.in); hello.Lane != (sni.Lane{}) || hello.Answer != sni.Served {
				t.Errorf("a lane without forwarding: %q, %v", hello.Lane.Host(), hello.Answer)
			}
		})
	}
}

func TestLaneName(t *testing.T) {
	if got := (sni.Lane{}).Name(); got != "root" {
		t.Errorf("root lane is called %q", got)
	}
	if got := names(t, sni.Config{Forward: true}).Read("A.example.").Lane.Name(); got != "a.example" {
		t.Errorf("lane is called %q", got)
	}
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"a.example", "A.EXAMPLE.", "", "..", "_", "1.2.3.4", "\u212a", " x "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		host, ok := sni.Normalize(in)
		if ok != (host != "") {
			t.Fatalf("Normalize(%q) = %q, %v", in, host, ok)
		}
		if len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			t.Fatalf("Normalize(%q) lets %q through", in, host)
		}
		if again, _ := sni.Normalize(host); again != host {
			t.Fatalf("Normalize(%q) = %q, then %q", in, host, again)
		}
	})
}
