package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// The client's settings, the same for every peer. What is not here is as the
// library has it.
const (
	linger        = 5 * time.Millisecond // of bulk; single records have none
	bufferedBytes = 16 << 20             // of all clients of a process together
	deliverWithin = 2 * time.Minute      // as Apache Kafka's own client
	userName      = "bench"              // of SASL/PLAIN
)

// Settings are the client's settings, for the report.
func Settings() []string {
	return []string{
		"franz-go, idempotent, acks=all",
		fmt.Sprintf("linger %s for bulk, none for single records", linger),
		fmt.Sprintf("at most %d MiB of records buffered by all producers together", bufferedBytes>>20),
		"batches of at most 1,000,012 bytes, fetches of 1 MiB a partition and 50 MiB, as the library has them",
		"consumers read with partitions assigned, but for fan-out and idle consumers, which are groups (cooperative-sticky, commits every 5 s)",
		"TLS without resumption, certificate ECDSA P-256",
		"values are lines of a log, made from a fixed seed, each with a number of its own",
	}
}

// dialTLS is how the peer is dialled; nil for plaintext.
func (p Peer) dialTLS() (*tls.Config, error) {
	if p.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(p.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", p.CA)
	}
	host, _, err := net.SplitHostPort(p.Addr)
	return &tls.Config{RootCAs: roots, ServerName: host}, err
}

// client is a franz-go client of the peer that counts what it sends.
func (p Peer) client(n *counts, opts ...kgo.Opt) (*kgo.Client, error) {
	all := []kgo.Opt{
		kgo.SeedBrokers(p.Addr), kgo.WithHooks(n), kgo.DisableClientMetrics(),
		kgo.RecordDeliveryTimeout(deliverWithin), kgo.RequestRetries(3),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	cfg, err := p.dialTLS()
	if err != nil {
		return nil, err
	}
	if cfg != nil {
		all = append(all, kgo.DialTLSConfig(cfg))
	}
	if p.Token != "" {
		all = append(all, kgo.SASL(plain.Auth{User: userName, Pass: p.Token}.AsMechanism()))
	}
	return kgo.NewClient(append(all, opts...)...)
}

// counts are what clients of one process have sent and read.
type counts struct {
	requests, raw, sent atomic.Int64
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (n *counts) OnBrokerWrite(_ kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		n.requests.Add(1)
	}
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (n *counts) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.ProduceBatchMetrics) {
	n.raw.Add(int64(m.UncompressedBytes))
	n.sent.Add(int64(m.CompressedBytes))
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (n *counts) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	n.raw.Add(int64(m.UncompressedBytes))
	n.sent.Add(int64(m.CompressedBytes))
}

// reset forgets what was before the measured part.
func (n *counts) reset() {
	n.requests.Store(0)
	n.raw.Store(0)
	n.sent.Store(0)
}

func (n *counts) into(r *Result) {
	r.Requests, r.RawBytes, r.SentBytes = n.requests.Load(), n.raw.Load(), n.sent.Load()
}

// makeTopics makes topics and waits until every partition can be asked where it
// ends: an Apache Kafka makes logs behind the answer.
func makeTopics(ctx context.Context, c *kgo.Client, partitions int, names ...string) error {
	admin := kadm.NewClient(c)
	made, err := admin.CreateTopics(ctx, int32(partitions), -1, nil, names...)
	if err = errors.Join(err, made.Error()); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		listed, err := admin.ListEndOffsets(ctx, names...)
		n := 0
		listed.Each(func(o kadm.ListedOffset) {
			if o.Err == nil {
				n++
			}
		})
		if err == nil && n == partitions*len(names) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d partitions answer: %w", n, partitions*len(names), errors.Join(err, ctx.Err()))
		}
	}
}

// codec is a codec by its name.
func codec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("no codec %q", name)
}

// failure keeps the first error.
type failure struct{ first atomic.Pointer[error] }

func (f *failure) note(err error) {
	if err != nil {
		f.first.CompareAndSwap(nil, &err)
	}
}

func (f *failure) err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// fetched is the first error of a poll.
func fetched(f kgo.Fetches) error {
	var errs []error
	for _, e := range f.Errors() {
		errs = append(errs, fmt.Errorf("%s-%d: %w", e.Topic, e.Partition, e.Err))
	}
	return errors.Join(errs...)
}
