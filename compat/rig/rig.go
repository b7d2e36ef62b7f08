// Package rig stands a whole system up for a test, in this process and from
// nothing: an embedded cell with two clusters, acme and globex, on disk in the
// test's own folder, and a gateway in front of it with real TLS and SASL. Tests
// talk to it as clients do.
package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/compat/ports"
	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/tenancy"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// Host is the name clients dial and the certificate carries.
const Host = "localhost"

// Patience is the generous deadline of anything a test waits for.
const Patience = time.Minute

// Keys of the rig, by what they may do. All but Globex are of cluster acme.
const (
	Acme    = "acme"         // all scopes
	Acme2   = "acme-2"       // all scopes, another key
	Consume = "acme-consume" // consume, read
	Produce = "acme-produce" // produce, read
	Txn     = "acme-txn"     // produce, consume, read
	NoRead  = "acme-noread"  // consume
	Globex  = "globex"       // all scopes
)

// Rig is a running system.
type Rig struct {
	Cell    *cell.Cell
	Gateway *edge.Server
	CellURL string
	Addr    string // host:port of the gateway, by the certificate's name
	Roots   *x509.CertPool
	CAFile  string // PEM, for clients that read files

	host       string // that the certificate carries
	keys       map[string]string
	ids        map[string]control.UUID // of keys
	opts       Options
	ca         *tlsconf.DevCA // of the certificates; nil: plaintext
	pair       string         // path of the gateway's default pair, without .crt and .key; empty: plaintext
	cellRun    *service
	gatewayRun *service
	cellAt     *ports.Port
	gatewayAt  *ports.Port
}

// Options change the defaults of a Rig.
type Options struct {
	Config   func(*config.Config)                     // last word on the gateway's configuration
	Log      *zap.Logger                              // of gateway and cell; nil: none
	CellAt   func(cellURL string) (gatewayURL string) // puts something between gateway and cell
	Plain    bool                                     // no TLS
	Node     int32                                    // the gateway's id in a cluster; 0: single mode
	Registry string                                   // key that the cluster's registry is kept with
	OwnKey   string                                   // SASL off: the gateway's own token is this key of the rig
	Dir      string                                   // the cell's folder; empty: the test's own
	Clock    func() time.Time                         // of gateway and cell; nil: the wall's

	Certificates func(*Rig) // makes more pairs (WritePair) before the gateway starts
}

// Start stands a system up. It is taken down when the test ends; goroutines and
// connections are then gone.
func Start(tb testing.TB, opts ...func(*Options)) *Rig {
	tb.Helper()
	var o Options
	for _, opt := range opts {
		opt(&o)
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	r := &Rig{host: Host, opts: o, cellAt: keepPort(tb), gatewayAt: keepPort(tb)}
	tb.Cleanup(func() { check(tb, r.cellRun.end()) })
	r.StartCell(tb)
	r.makeKeys(tb)
	tb.Cleanup(func() { check(tb, r.gatewayRun.end()) })
	if !o.Plain {
		r.certify(tb)
	}
	if o.Certificates != nil {
		o.Certificates(r)
	}
	r.StartGateway(tb)
	return r
}

// Key is the text of one of the rig's keys.
func (r *Rig) Key(name string) string { return r.keys[name] }

// Revoke makes one of the rig's keys unknown to the cell.
func (r *Rig) Revoke(tb testing.TB, name string) {
	tb.Helper()
	check(tb, r.Cell.Control().RevokeKey(r.ids[name]))
}

// Secret is the same, as the gateway holds it.
func (r *Rig) Secret(name string) tenancy.Secret { return tenancy.NewSecret(r.keys[name]) }

// TLS is a client's configuration that trusts the rig's authority.
func (r *Rig) TLS() *tls.Config {
	return &tls.Config{RootCAs: r.Roots, ServerName: r.host, MinVersion: tls.VersionTLS12}
}

// Kafka is a franz-go client logged in with one of the rig's keys.
func (r *Rig) Kafka(tb testing.TB, key string, opts ...kgo.Opt) *kgo.Client {
	tb.Helper()
	c, err := kgo.NewClient(append(r.KafkaOpts(key), opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// KafkaOpts are what any franz-go client of the rig needs.
func (r *Rig) KafkaOpts(key string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(r.Addr),
		kgo.SASL(plain.Auth{User: key, Pass: r.keys[key]}.AsMechanism()),
		kgo.DialTLSConfig(r.TLS()),
		kgo.AllowAutoTopicCreation(),
	}
}

// Context ends when the test has run for far too long.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	tb.Cleanup(cancel)
	return ctx
}

func (r *Rig) makeKeys(tb testing.TB) {
	tb.Helper()
	r.keys, r.ids = make(map[string]string), make(map[string]control.UUID)
	limits := control.Overrides{"max_batch_items": json.RawMessage("100000")}
	for _, slug := range []string{"acme", "globex"} {
		if _, err := r.Cell.Control().CreateCluster(control.NewCluster{Slug: slug, Overrides: limits}); err != nil {
			tb.Fatal(err)
		}
	}
	for _, k := range []struct {
		name, cluster string
		scopes        []string
	}{
		{Acme, "acme", []string{"produce", "consume", "admin", "read"}},
		{Acme2, "acme", []string{"produce", "consume", "admin", "read"}},
		{Consume, "acme", []string{"consume", "read"}},
		{Produce, "acme", []string{"produce", "read"}},
		{Txn, "acme", []string{"produce", "consume", "read"}},
		{NoRead, "acme", []string{"consume"}},
		{Globex, "globex", []string{"produce", "consume", "admin", "read"}},
	} {
		scopes, err := control.ParseScopes(k.scopes...)
		check(tb, err)
		text, key, err := r.Cell.Control().CreateKey(control.NewKey{Cluster: k.cluster, Scopes: scopes})
		check(tb, err)
		r.keys[k.name], r.ids[k.name] = text, key.ID
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
