package rig

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// certify makes an authority, and the gateway's default pair.
func (r *Rig) certify(tb testing.TB) {
	tb.Helper()
	ca, err := tlsconf.NewDevCA("rig CA")
	check(tb, err)
	r.ca, r.Roots = ca, ca.Pool()
	r.CAFile = filepath.Join(tb.TempDir(), "ca.pem")
	check(tb, os.WriteFile(r.CAFile, ca.CertPEM(), 0o600))
	dir := tb.TempDir()
	r.WritePair(tb, dir, "tls", Host, "127.0.0.1", "acme.localhost", "globex.localhost")
	r.pair = filepath.Join(dir, "tls")
}

// WritePair writes a pair of the rig's authority for hosts as dir/stem.crt and
// dir/stem.key, each of them whole or not at all.
func (r *Rig) WritePair(tb testing.TB, dir, stem string, hosts ...string) {
	tb.Helper()
	cert, key, err := r.ca.Issue(hosts)
	check(tb, err)
	for ending, text := range map[string][]byte{".crt": cert, ".key": key} {
		path := filepath.Join(dir, stem+ending)
		check(tb, os.WriteFile(path+".new", text, 0o600))
		check(tb, os.Rename(path+".new", path))
	}
}

// Certificate is the gateway's default pair, for a server that is held against it.
func (r *Rig) Certificate(tb testing.TB) tls.Certificate {
	tb.Helper()
	pair, err := tls.LoadX509KeyPair(r.pair+".crt", r.pair+".key")
	check(tb, err)
	return pair
}

// Names resolves every name to the gateway, for clients that are to dial names
// which no resolver knows, and remembers what was dialled.
type Names struct {
	rig *Rig

	mu      sync.Mutex // guards dialled
	dialled []string
}

// Dial is a dialer for kgo.Dialer: TLS under the name of addr, to the gateway.
func (n *Names) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.dialled = append(n.dialled, addr)
	n.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, network, n.rig.Addr)
	if err != nil {
		return nil, err
	}
	cfg := n.rig.TLS()
	cfg.ServerName = name
	tc := tls.Client(conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tc, nil
}

// Dialled are the addresses that were dialled, each once.
func (n *Names) Dialled() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Clone(n.dialled)
	slices.Sort(out)
	return slices.Compact(out)
}

// KafkaAt is a franz-go client that dials name, whatever a resolver says of it.
func (r *Rig) KafkaAt(tb testing.TB, key, name string, opts ...kgo.Opt) (*kgo.Client, *Names) {
	tb.Helper()
	_, port, err := net.SplitHostPort(r.Addr)
	check(tb, err)
	names := &Names{rig: r}
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(net.JoinHostPort(name, port)),
		kgo.Dialer(names.Dial),
		kgo.SASL(plain.Auth{User: key, Pass: r.keys[key]}.AsMechanism()),
		kgo.AllowAutoTopicCreation(),
	}, opts...)...)
	check(tb, err)
	tb.Cleanup(c.Close)
	return c, names
}
