package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// The benchmarks' batch: what a gateway sends for a full Kafka batch.
const (
	benchRecords = 1000
	benchPayload = 1024 // bytes of JSON text
)

func benchBody(records int) []byte {
	payload := `{"k":null,"v":"` + strings.Repeat("A", benchPayload-len(`{"k":null,"v":""}`)) + `"}`
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := range records {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"queue":"bench","partition":"%d","payload":%s}`, i*4/records, payload)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// exchange sends a body and drops the answer.
func (r *rig) exchange(b *testing.B, path, key string, body []byte, want int) {
	req, err := http.NewRequest(http.MethodPost, r.server.URL+path, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := r.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
		b.Fatal(resp.StatusCode, err)
	}
}

// BenchmarkPush is 1,000 records of 1 KB to 4 partitions, over loopback and
// down to the disk.
func BenchmarkPush(b *testing.B) {
	r := newRig(b)
	key, body := r.full("acme"), benchBody(benchRecords)
	b.SetBytes(benchRecords * benchPayload)
	b.ReportAllocs()
	for b.Loop() {
		r.exchange(b, "/api/v1/push", key, body, http.StatusCreated)
	}
}

// BenchmarkFetch reads 4,000 records of 1 KB from 4 partitions over loopback.
func BenchmarkFetch(b *testing.B) {
	r := newRig(b)
	key := r.full("acme")
	for range 4 {
		r.exchange(b, "/api/v1/push", key, benchBody(benchRecords), http.StatusCreated)
	}
	ask := benchFetch()
	b.SetBytes(4 * benchRecords * benchPayload)
	b.ReportAllocs()
	for b.Loop() {
		r.exchange(b, "/api/v1/fetch", key, ask, http.StatusOK)
	}
}

func benchFetch() []byte {
	var entries []string
	for i := range 4 {
		entries = append(entries, fmt.Sprintf(`{"queue":"bench","partition":"%d","offset":0,"maxBytes":1048576}`, i))
	}
	return []byte(`{"entries":[` + strings.Join(entries, ",") + `],"maxWaitMs":500,"minBytes":1}`)
}

// instantBroker answers from memory, so that what is measured is the front.
type instantBroker struct {
	Broker
	pushed  []broker.PushResult
	fetched []broker.FetchResult
}

// What New and a measure of storage ask for.

func (i *instantBroker) MaxTxnKVOps() int { return broker.DefaultTxnKVOps }

func (i *instantBroker) KVStats(broker.Tenant) broker.KVUsage { return broker.KVUsage{} }

func (i *instantBroker) Queues(broker.Tenant) []broker.Queue { return nil }

func (i *instantBroker) Push(_ context.Context, _ broker.Tenant, items []broker.PushItem, into []broker.PushResult) ([]broker.PushResult, error) {
	return append(into, i.pushed[:len(items)]...), nil
}

func (i *instantBroker) Fetch(context.Context, broker.Tenant, broker.FetchRequest) ([]broker.FetchResult, error) {
	return i.fetched, nil
}

// instant is a rig whose broker costs nothing.
func instant(b *testing.B) *rig {
	payload := []byte(`{"k":null,"v":"` + strings.Repeat("A", benchPayload-17) + `"}`)
	records := make([]broker.Record, benchRecords)
	for i := range records {
		records[i] = broker.Record{Offset: int64(i), Payload: payload, AppendTime: time.Unix(1_790_000_000, 0)}
	}
	memory := &instantBroker{pushed: make([]broker.PushResult, benchRecords)}
	for range 4 {
		memory.fetched = append(memory.fetched, broker.FetchResult{Records: records, HighWatermark: benchRecords})
	}
	return newRig(b, func(cfg *Config) { cfg.Broker = memory })
}

// BenchmarkPushFront is the front's own share of a push: its allocations are
// per call, not per record.
func BenchmarkPushFront(b *testing.B) {
	for _, c := range []struct {
		name           string
		records, value int
	}{{"100B", 1000, 100}, {"1KB", 1000, 1000}, {"100KB", 10, 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			benchFront(b, "/api/v1/push", gatewayBody(c.records, c.value), int64(c.records*c.value))
		})
	}
}

// gatewayBody is a push as a gateway sends it for an idempotent producer.
func gatewayBody(records, value int) []byte {
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("a line "), value/7+1)[:value])
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := range records {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"queue":"bench-1KB","partition":"%d","transactionId":"qe:1000:0:%d:%d","payload":{"k":null,"t":1790000000123,"v":"%s"}}`,
			i*4/records, i*4/records, i, text)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// BenchmarkFetchFront is the front's own share of a fetch.
func BenchmarkFetchFront(b *testing.B) {
	benchFront(b, "/api/v1/fetch", benchFetch(), 4*benchRecords*benchPayload)
}

func benchFront(b *testing.B, path string, body []byte, size int64) {
	r := instant(b)
	key := r.full("acme")
	req, err := http.NewRequest(http.MethodPost, path, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Host = "127.0.0.1"
	req.ContentLength = int64(len(body))
	req.Header.Set("Authorization", "Bearer "+key)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.proxy.ServeHTTP(discard{http.Header{}}, req)
	}
}

// TestAllocationsDoNotGrowWithRecords holds the front to it.
func TestAllocationsDoNotGrowWithRecords(t *testing.T) {
	few, many := pushAllocs(t, 10), pushAllocs(t, benchRecords)
	if many > few+20 {
		t.Errorf("decoding 10 records takes %.0f allocations, %d take %.0f", few, benchRecords, many)
	}
}

func pushAllocs(t *testing.T, records int) float64 {
	body := benchBody(records)
	var in pushBody
	return testing.AllocsPerRun(20, func() {
		if f := in.decode(body, control.Limits{}); f != nil {
			t.Fatal(f.text)
		}
	})
}
