package demo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// Bootstrap is the address that clients dial.
func (d *Demo) Bootstrap() string { return d.Env["QUEEN_EDGE_BOOTSTRAP"] }

// Token is the token with a label of the env file: ACME, GLOBEX and so on.
func (d *Demo) Token(label string) string { return d.Env["QUEEN_EDGE_TOKEN_"+label] }

// Kafka is the reference client, with one of the demo's tokens. It writes to the
// partitions that records name.
func (d *Demo) Kafka(label string, opts ...kgo.Opt) (*kgo.Client, error) {
	pem, err := os.ReadFile(d.Env["QUEEN_EDGE_CA"])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the demo's CA is not PEM")
	}
	return kgo.NewClient(append(opts,
		kgo.SeedBrokers(d.Bootstrap()),
		kgo.SASL(plain.Auth{User: "judge", Pass: d.Token(label)}.AsMechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchMaxWait(100*time.Millisecond),
	)...)
}
