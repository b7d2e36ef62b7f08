package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// Gateway and cell in processes of their own, as an operator runs them.
func TestServeInFrontOfCell(t *testing.T) {
	cell := launch(t, nil, "cell", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--bootstrap", "acme")
	key := cell.line(t, "cell: its key, shown this once: ")
	url := cell.line(t, "cell: listening on ")

	gateway := launch(t, []string{"QUEEN_URL=" + url, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_DEFAULT_PARTITIONS=2"},
		"serve", "--addr", "127.0.0.1:0")
	addr := gateway.line(t, "serve: listening on ")
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(),
		kgo.SASL(plain.Auth{User: "any", Pass: key}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatalf("%v\n%s", err, gateway.stderr)
	}
	gateway.logged(t, "tokens cross the network in the clear")
	for name, p := range map[string]*process{"gateway": gateway, "cell": cell} {
		if code := p.stop(t); code != 0 {
			t.Errorf("%s: exit code %d after SIGTERM\n%s", name, code, p.stderr)
		}
	}
}

// A configuration that cannot work ends the start with one line that names the
// variable; the default command is serve.
func TestServeRefusesBadConfiguration(t *testing.T) {
	const advertised = "QUEEN_KAFKA_ADVERTISED_ADDR=edge.example:9092"
	other := writePair(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want []string
	}{
		{"nothing set", nil, nil, []string{"QUEEN_KAFKA_ADVERTISED_ADDR", "required"}},
		{"out of range", []string{advertised, "QUEEN_KAFKA_MAX_CONNECTIONS=3"}, []string{"serve"}, []string{"QUEEN_KAFKA_MAX_CONNECTIONS", "3", "16", "4096"}},
		{"not built yet", []string{advertised, "QUEEN_KAFKA_REPLICAS=shared"}, nil, []string{"QUEEN_KAFKA_REPLICAS"}},
		{"bad cell URL", []string{advertised, "QUEEN_URL=ftp://x"}, nil, []string{"QUEEN_URL", "ftp://x"}},
		{"half a pair", []string{advertised, "QUEEN_KAFKA_TLS_CERT=" + other.cert}, nil, []string{"QUEEN_KAFKA_TLS_KEY"}},
		{"no such file", []string{advertised, "QUEEN_KAFKA_TLS_CERT=/nowhere.pem", "QUEEN_KAFKA_TLS_KEY=" + other.key}, nil, []string{"QUEEN_KAFKA_TLS_CERT", "/nowhere.pem"}},
		{"keys that do not match", []string{advertised, "QUEEN_KAFKA_TLS_CERT=" + other.cert, "QUEEN_KAFKA_TLS_KEY=" + writePair(t).key}, nil, []string{"QUEEN_KAFKA_TLS_KEY"}},
		{"a folder with a bad pair", []string{advertised, "QUEEN_KAFKA_TLS_DIR=" + badFolder(t)}, nil, []string{"QUEEN_KAFKA_TLS_DIR", "a.example.crt", "not whole"}},
		{"no ticket keys", []string{advertised, "QUEEN_KAFKA_TLS_DIR=" + filepath.Dir(other.cert), "QUEEN_KAFKA_TLS_TICKET_KEYS=/nowhere"}, nil, []string{"QUEEN_KAFKA_TLS_TICKET_KEYS", "/nowhere"}},
		{"address in use", []string{advertised, "QUEEN_KAFKA_ADDR=" + taken.Addr().String()}, nil, []string{"cannot bind QUEEN_KAFKA_ADDR=" + taken.Addr().String()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := launch(t, c.env, c.args...)
			if code := p.wait(t); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			got := p.stderr.String()
			if !strings.Contains(got, "FATAL: ") {
				t.Errorf("no FATAL line: %q", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not name %q", got, want)
				}
			}
		})
	}
}

// A process that may open fewer files than it may hold connections says so.
func TestServeWarnsAboutTheFileLimit(t *testing.T) {
	p := launchUnder(t, "ulimit -n 700", nil, "serve", "--addr", "127.0.0.1:0")
	p.line(t, "serve: listening on ")
	p.logged(t, "limit of open files")
	p.stop(t)
}

// badFolder holds a pair whose certificate ends in the middle.
func badFolder(t *testing.T) string {
	t.Helper()
	f := writePair(t)
	dir := t.TempDir()
	for name, path := range map[string]string{"a.example.crt": f.cert, "a.example.key": f.key} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text[:len(text)-60], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type pairFiles struct{ cert, key string }

func writePair(t *testing.T) pairFiles {
	t.Helper()
	ca, err := tlsconf.NewDevCA("test")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue([]string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := pairFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	for path, text := range map[string][]byte{f.cert: cert, f.key: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}
