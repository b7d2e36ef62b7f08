package proxyclient

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/edge/batch"
)

const benchRecords = 1000

func benchRecord(headers int) *batch.Record {
	value := make([]byte, 1024)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	r := &batch.Record{Timestamp: 1790000000123, Key: []byte("customer-0000001"), Value: value}
	for i := range headers {
		r.Headers = append(r.Headers, batch.Header{Key: []byte("trace-" + strconv.Itoa(i)), Value: value[:16]})
	}
	return r
}

func BenchmarkPushBody(b *testing.B) {
	for _, headers := range []int{0, 3} {
		b.Run("headers="+strconv.Itoa(headers), func(b *testing.B) {
			r := benchRecord(headers)
			b.SetBytes(benchRecords * 1024)
			b.ReportAllocs()
			for b.Loop() {
				body := NewPushBody()
				for range benchRecords {
					body.Add("orders", 3, r)
				}
				body.Release()
			}
		})
	}
}

// What the keys of an idempotent producer add to a push body (B3).
func BenchmarkPushKeys(b *testing.B) {
	for _, size := range []int{100, 1024} {
		for _, keyed := range []bool{false, true} {
			b.Run(fmt.Sprintf("record=%d/keyed=%v", size, keyed), func(b *testing.B) {
				r := benchRecord(0)
				r.Value = r.Value[:size]
				key := ProducerKey{ID: 1<<61 + 12345, Partition: 3}
				b.SetBytes(int64(benchRecords * size))
				b.ReportAllocs()
				total := 0
				for b.Loop() {
					body := NewPushBody()
					for i := range benchRecords {
						if keyed {
							key.Sequence = int32(1_000_000 + i)
							body.AddKeyed("orders", 3, r, key)
						} else {
							body.Add("orders", 3, r)
						}
					}
					total = body.Bytes()
					body.Release()
				}
				b.ReportMetric(float64(total)/benchRecords, "bytes/record")
			})
		}
	}
}

func BenchmarkPushAnswer(b *testing.B) {
	var body []byte
	for i := range benchRecords {
		body = append(body, `,{"index":`...)
		body = strconv.AppendInt(body, int64(i), 10)
		body = append(body, `,"message_id":"01900000-0000-7000-8000-000000000000","transaction_id":"01900000-0000-7000-8000-000000000000","queueName":"orders","status":"queued","offset":`...)
		body = append(strconv.AppendInt(body, int64(i), 10), '}')
	}
	body[0] = '['
	body = append(body, ']')
	results := make([]PushResult, benchRecords)
	r, in := &pushReader{}, bytes.NewReader(nil)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(body)
		if err := r.read(in, 1<<20, results); err != nil {
			b.Fatal(err)
		}
	}
}

func benchAnswer(headers int) []byte { return benchAnswerOf(benchRecord(headers)) }

func benchAnswerOf(r *batch.Record) []byte {
	body := NewPushBody()
	defer body.Release()
	body.Add("orders", 3, r)
	item := encodedBody(body)
	item = item[bytes.Index(item, []byte(`"payload":`)) : len(item)-1]
	out := []byte(`{"entries":[{"queue":"orders","partition":"3","records":[`)
	for i := range benchRecords {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"offset":`...)
		out = strconv.AppendInt(out, int64(i), 10)
		out = append(out, `,"transactionId":"01900000-0000-7000-8000-000000000000",`...)
		out = append(out, item...)
		out = append(out, `,"ts":"2026-10-02T09:00:00.123Z"}`...)
	}
	return append(out, `],"highWatermark":1000,"logStartOffset":0}]}`...)
}

// plain hides the reader's other methods, as a response body does.
type plain struct{ r io.Reader }

func (p plain) Read(b []byte) (int, error) { return p.r.Read(b) }

func BenchmarkFetchAnswer(b *testing.B) {
	for _, headers := range []int{0, 3} {
		answer := benchAnswer(headers)
		entries := []FetchEntry{{"orders", 3, 0, 1 << 20}}
		n := 0
		sink := func(_ int, r *batch.Record) error { n += len(r.Value); return nil }
		b.Run("stream/headers="+strconv.Itoa(headers), func(b *testing.B) {
			f := &fetchReader{}
			b.SetBytes(benchRecords * 1024)
			b.ReportAllocs()
			for b.Loop() {
				f.entries, f.sink, f.results = entries, sink, f.results[:0]
				f.in.reset(plain{bytes.NewReader(answer)})
				if err := f.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("whole body, jx/headers="+strconv.Itoa(headers), func(b *testing.B) {
			b.SetBytes(benchRecords * 1024)
			b.ReportAllocs()
			for b.Loop() {
				body, err := io.ReadAll(plain{bytes.NewReader(answer)})
				if err == nil {
					err = plainDecode(jx.DecodeBytes(body), sink)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("stream, jx/headers="+strconv.Itoa(headers), func(b *testing.B) {
			b.SetBytes(benchRecords * 1024)
			b.ReportAllocs()
			for b.Loop() {
				if err := plainDecode(jx.Decode(plain{bytes.NewReader(answer)}, windowSize), sink); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Small records: what each costs beside its bytes.
func BenchmarkSmallFetchAnswer(b *testing.B) {
	r := benchRecord(0)
	r.Key, r.Value = nil, r.Value[:100]
	answer, f := benchAnswerOf(r), &fetchReader{}
	sink := func(int, *batch.Record) error { return nil }
	b.SetBytes(benchRecords * 100)
	b.ReportAllocs()
	for b.Loop() {
		f.entries, f.sink, f.results = []FetchEntry{{"orders", 3, 0, 1 << 20}}, sink, f.results[:0]
		f.in.reset(plain{bytes.NewReader(answer)})
		if err := f.read(); err != nil {
			b.Fatal(err)
		}
	}
}

// plainDecode is the straightforward decoder the streaming one is measured
// against: jx all the way, no native payloads, no checks.
func plainDecode(d *jx.Decoder, sink func(int, *batch.Record) error) error {
	var r batch.Record
	var key, value []byte
	record := func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "offset":
			r.Offset, err = d.Int64()
			return err
		case "payload":
			return d.ObjBytes(func(d *jx.Decoder, name []byte) (err error) {
				switch string(name) {
				case "k":
					key, err = d.Base64Append(key[:0])
					r.Key = key
					return err
				case "v":
					value, err = d.Base64Append(value[:0])
					r.Value = value
					return err
				case "t":
					r.Timestamp, err = d.Int64()
					return err
				}
				return d.Skip()
			})
		}
		return d.Skip()
	}
	return d.ObjBytes(func(d *jx.Decoder, _ []byte) error {
		return d.Arr(func(d *jx.Decoder) error {
			return d.ObjBytes(func(d *jx.Decoder, name []byte) error {
				if string(name) != "records" {
					return d.Skip()
				}
				return d.Arr(func(d *jx.Decoder) error {
					if err := d.ObjBytes(record); err != nil {
						return err
					}
					return sink(0, &r)
				})
			})
		})
	})
}

// The whole way over a loopback connection; the cell throws the body away.
func BenchmarkPushCall(b *testing.B) {
	var answer []byte
	for i := range benchRecords {
		answer = append(answer, `,{"index":`...)
		answer = strconv.AppendInt(answer, int64(i), 10)
		answer = append(answer, `,"status":"queued","offset":1}`...)
	}
	answer[0] = '['
	answer = append(answer, ']')
	cell := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}))
	b.Cleanup(cell.Close)
	c, scope, body := newTestClient(b, cell.URL), testScope(b), NewPushBody()
	for range benchRecords {
		body.Add("orders", 3, benchRecord(0))
	}
	results := make([]PushResult, 0, benchRecords)
	b.SetBytes(benchRecords * 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Push(b.Context(), scope, body, Mark{}, body.Mark(), results[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAFetchDoesNotAllocatePerRecord(t *testing.T) {
	for _, headers := range []int{0, 3} {
		answer := benchAnswer(headers)
		f := &fetchReader{}
		sink := func(int, *batch.Record) error { return nil }
		run := func() {
			f.entries, f.sink, f.results = []FetchEntry{{"orders", 3, 0, 1 << 20}}, sink, f.results[:0]
			f.in.reset(bytes.NewReader(answer))
			if err := f.read(); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n > 10 {
			t.Errorf("%v allocations for %d records of %d headers", n, benchRecords, headers)
		}
	}
}

func TestBenchAnswerIsRight(t *testing.T) {
	t.Parallel()
	want := base64.StdEncoding.EncodeToString(benchRecord(0).Value)
	if !bytes.Contains(benchAnswer(0), []byte(want)) {
		t.Error("the benchmark decodes something else")
	}
}
