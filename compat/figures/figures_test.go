// Package figures measures the system from outside: the demo in a process of its
// own, clients over TLS and SASL on loopback, sharing the cores. Figures are
// benchmarks, never assertions.
package figures

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const patience = 2 * time.Minute

// demo is a running demo process.
type demo struct {
	env     map[string]string
	roots   *x509.CertPool
	program string
	pid     int
}

func start(b *testing.B) *demo {
	b.Helper()
	dir := b.TempDir()
	bin := filepath.Join(dir, "queen-edge")
	build := exec.Command("go", "build", "-o", bin, "github.com/queen-mq/queen-edge/cmd/queen-edge")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	envFile := filepath.Join(dir, "env")
	cmd := exec.Command(bin, "demo", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--env-file", envFile)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b.Errorf("demo: %v", err)
		}
	})
	d := &demo{env: make(map[string]string), roots: x509.NewCertPool(), program: bin, pid: cmd.Process.Pid}
	d.read(b, envFile)
	return d
}

func (d *demo) read(b *testing.B, envFile string) {
	b.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(envFile); err == nil {
			for line := range strings.Lines(string(text)) {
				if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
					d.env[name] = value
				}
			}
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("the demo did not come up")
		}
		<-tick.C
	}
	ca, err := os.ReadFile(d.env["QUEEN_EDGE_CA"])
	if err != nil || !d.roots.AppendCertsFromPEM(ca) {
		b.Fatalf("CA: %v", err)
	}
}

func (d *demo) client(b *testing.B, opts ...kgo.Opt) *kgo.Client {
	b.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(d.env["QUEEN_EDGE_BOOTSTRAP"]),
		kgo.SASL(plain.Auth{User: "bench", Pass: d.env["QUEEN_EDGE_TOKEN_ACME"]}.AsMechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: d.roots}),
		kgo.AllowAutoTopicCreation(),
	}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// peakMemory is the largest resident size of a process so far, in MiB.
func (d *demo) memory(b *testing.B, field string) float64 {
	b.Helper()
	return memoryOf(b, d.pid, field)
}

func memoryOf(b *testing.B, pid int, field string) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb float64
		if _, err := fmt.Sscanf(s.Text(), field+": %f kB", &kb); err == nil {
			return kb / 1024
		}
	}
	b.Fatalf("no %s", field)
	return 0
}

// payload is 1 KB that compresses about as logs do: words out of few.
func payload(r *rand.Rand, size int) []byte {
	v := make([]byte, size)
	for i := range v {
		v[i] = byte('a' + r.IntN(20))
	}
	return v
}

const recordSize = 1000

// BenchmarkProduceConsume moves 1 KB records in and out through one client each:
// MB/s of record values, four partitions.
func BenchmarkProduceConsume(b *testing.B) {
	for _, bench := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		b.Run(bench.name, func(b *testing.B) {
			d := start(b)
			const records = 200_000
			var in, out []float64
			for round := 0; b.Loop(); round++ {
				topic := fmt.Sprintf("t-%s-%d", bench.name, round)
				in = append(in, d.produce(b, topic, records, bench.codec))
				out = append(out, d.consume(b, topic, records))
			}
			b.ReportMetric(median(in), "produceMB/s")
			b.ReportMetric(median(out), "consumeMB/s")
			b.ReportMetric(d.memory(b, "VmHWM"), "peakMiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkIdempotence moves records in with the keys of an idempotent producer
// and without: MB/s of record values.
func BenchmarkIdempotence(b *testing.B) {
	for _, bench := range []struct {
		name string
		opts []kgo.Opt
	}{{"keyed", nil}, {"unkeyed", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5)}}} {
		b.Run(bench.name, func(b *testing.B) {
			d := start(b)
			const records = 200_000
			var in []float64
			for round := 0; b.Loop(); round++ {
				in = append(in, d.produce(b, fmt.Sprintf("t-%s-%d", bench.name, round), records, kgo.NoCompression(), bench.opts...))
			}
			b.ReportMetric(median(in), "produceMB/s")
			b.ReportMetric(d.memory(b, "VmHWM"), "peakMiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (d *demo) produce(b *testing.B, topic string, n int, codec kgo.CompressionCodec, opts ...kgo.Opt) float64 {
	b.Helper()
	opts = append(opts, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000))
	c := d.client(b, opts...)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v := payload(rand.New(rand.NewPCG(1, 2)), recordSize)
	var failed atomic.Pointer[error]
	begin := time.Now()
	for range n {
		c.Produce(ctx, &kgo.Record{Topic: topic, Value: v}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := c.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return float64(n) * recordSize / 1e6 / time.Since(begin).Seconds()
}

func (d *demo) consume(b *testing.B, topic string, n int) float64 {
	b.Helper()
	c := d.client(b, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begin := time.Now()
	for got := 0; got < n; {
		fetches := c.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			b.Fatal(errs[0].Err)
		}
		got += fetches.NumRecords()
	}
	return float64(n) * recordSize / 1e6 / time.Since(begin).Seconds()
}

// BenchmarkSingleRecord sends one record of 1 KB at a time, 500 a second, and
// reports the latency from send to acknowledgement.
func BenchmarkSingleRecord(b *testing.B) {
	d := start(b)
	c := d.client(b, kgo.ProducerLinger(0))
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v := payload(rand.New(rand.NewPCG(1, 2)), recordSize)
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: "single", Value: v}).FirstErr(); err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	var took []time.Duration
	for b.Loop() {
		tick := time.NewTicker(2 * time.Millisecond)
		var wg sync.WaitGroup
		for range 5000 {
			<-tick.C
			wg.Add(1)
			at := time.Now()
			c.Produce(ctx, &kgo.Record{Topic: "single", Value: v}, func(_ *kgo.Record, err error) {
				defer wg.Done()
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(at))
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		tick.Stop()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLogins opens connections that log in and ask for metadata, four at a
// time, with one token.
func BenchmarkLogins(b *testing.B) {
	d := start(b)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const logins, lanes = 1000, 4
	var rates []float64
	for b.Loop() {
		begin := time.Now()
		var wg sync.WaitGroup
		for range lanes {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range logins / lanes {
					d.login(ctx, b).Close()
				}
			}()
		}
		wg.Wait()
		rates = append(rates, logins/time.Since(begin).Seconds())
	}
	b.ReportMetric(median(rates), "logins/s")
	b.ReportMetric(0, "ns/op")
}

func (d *demo) login(ctx context.Context, b *testing.B) *kgo.Client {
	c := d.client(b)
	if _, err := kadm.NewClient(c).BrokerMetadata(ctx); err != nil {
		b.Error(err)
	}
	return c
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
