package e2e

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Every codec carries every kind of record, byte for byte.
func TestCodecs(t *testing.T) {
	r := rig.Start(t)
	for _, c := range []struct {
		codec batch.Codec
		opt   kgo.CompressionCodec
	}{
		{batch.None, kgo.NoCompression()},
		{batch.Gzip, kgo.GzipCompression()},
		{batch.Snappy, kgo.SnappyCompression()},
		{batch.LZ4, kgo.Lz4Compression()},
		{batch.Zstd, kgo.ZstdCompression()},
	} {
		t.Run(c.codec.String(), func(t *testing.T) {
			topic := "codec-" + c.codec.String()
			before := r.Gateway.Stats().Batches(c.codec)
			p := r.Kafka(t, rig.Acme, kgo.ProducerBatchCompression(c.opt), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			sent := everyKind(topic)
			if err := p.ProduceSync(rig.Context(t), sent...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if r.Gateway.Stats().Batches(c.codec) == before {
				t.Error("no batch arrived with this codec")
			}
			wantAll(t, readAll(t, r, rig.Consume, topic), sent)
		})
	}
}

// everyKind is a list of records that differ in all that a record can, small
// ones in partitions 0 to 2 and large ones in partition 3.
func everyKind(topic string) []*kgo.Record {
	var out []*kgo.Record
	add := func(partition int32, rec kgo.Record) {
		rec.Topic, rec.Partition = topic, partition
		if rec.Timestamp.IsZero() {
			rec.Timestamp = time.UnixMilli(1_700_000_000_000 + int64(len(out)))
		}
		out = append(out, &rec)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, key := range [][]byte{nil, {}, {0}, []byte("key"), every} {
		for _, value := range [][]byte{nil, {}, {0}, []byte("v"), []byte(`{"k":null,"v":"eA=="}`), []byte("\xff\xfe"), every} {
			add(0, kgo.Record{Key: key, Value: value})
		}
	}
	for _, headers := range [][]kgo.RecordHeader{
		{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}, {Key: "a", Value: []byte("3")}, {Key: "a", Value: []byte("1")}},
		{{Key: "null", Value: nil}, {Key: "empty", Value: []byte{}}},
		{{Key: "", Value: []byte("no name")}, {Key: "naïve \"quoted\" \\ \x00 \u2028", Value: every}},
		manyHeaders(1000),
	} {
		add(1, kgo.Record{Headers: headers, Value: []byte("with headers")})
		add(1, kgo.Record{Headers: headers})
	}
	// The client counts nanoseconds, so its time ends in 2262; TestTimestamps goes
	// beyond.
	for _, ms := range []int64{0, 1, -2, 1_700_000_000_000, 9_223_372_036_854} {
		add(2, kgo.Record{Value: fmt.Append(nil, ms), Timestamp: time.UnixMilli(ms)})
	}
	noise := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{1, 100, 10_000, 100_000, 900_000} {
		random := make([]byte, size)
		_, _ = noise.Read(random)
		add(3, kgo.Record{Value: random})
		add(3, kgo.Record{Value: bytes.Repeat([]byte("queen"), size/5+1)[:size]})
	}
	return out
}

func manyHeaders(n int) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, n)
	for i := range out {
		out[i] = kgo.RecordHeader{Key: fmt.Sprintf("h%d", i%10), Value: fmt.Append(nil, i)}
	}
	return out
}

// wantAll compares what was read with what was sent, partition by partition.
func wantAll(t *testing.T, got map[int32][]*kgo.Record, sent []*kgo.Record) {
	t.Helper()
	next := map[int32]int{}
	for _, rec := range sent {
		i := next[rec.Partition]
		next[rec.Partition]++
		if i >= len(got[rec.Partition]) {
			t.Errorf("partition %d: record %d is missing", rec.Partition, i)
			continue
		}
		wantRecord(t, got[rec.Partition][i], rec)
		if rec.Offset != int64(i) {
			t.Errorf("partition %d: record %d was acknowledged at offset %d", rec.Partition, i, rec.Offset)
		}
	}
	for p, records := range got {
		if len(records) != next[p] {
			t.Errorf("partition %d: %d records, want %d", p, len(records), next[p])
		}
	}
}

// Timestamps are what their producer says, also those no calendar knows; a
// record without one gets the time of its append.
func TestTimestamps(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	stamps := []int64{0, 1, -2, 253_402_300_799_999, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64, -1}
	var together batch.Writer
	together.Reset(nil)
	for i, stamp := range stamps {
		rec := &batch.Record{Offset: int64(i), Timestamp: stamp, Value: fmt.Append(nil, stamp)}
		together.Add(rec)
		var alone batch.Writer
		alone.Reset(nil)
		rec.Offset = 0 // a producer counts from 0 in every batch
		alone.Add(rec)
		ask(t, w, put(produceReq(-1), "t", 0, alone.Finish()))
	}
	began := time.Now().UnixMilli()
	ask(t, w, put(produceReq(-1), "t", 1, together.Finish()))
	for partition := range int32(2) {
		resp := w.Ask(want(fetchReq(0, 1<<20), "t", partition, 0)).(*kmsg.FetchResponse)
		got := recordsOf(t, &resp.Topics[0].Partitions[0])
		if len(got) != len(stamps) {
			t.Fatalf("partition %d: %d records, want %d", partition, len(got), len(stamps))
		}
		for i, stamp := range stamps {
			switch {
			case stamp == -1 && got[i].stamp < began-rig.Patience.Milliseconds():
				t.Errorf("partition %d: a record without a timestamp has %d", partition, got[i].stamp)
			case stamp != -1 && got[i].stamp != stamp:
				t.Errorf("partition %d: timestamp %d, want %d", partition, got[i].stamp, stamp)
			}
		}
	}
}

// Producers of all kinds, by acks and idempotence.
func TestAcks(t *testing.T) {
	r := rig.Start(t)
	for _, c := range []struct {
		name string
		opts []kgo.Opt
	}{
		{"idempotent", nil},
		{"all", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks())}},
		{"leader", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}},
		{"none", []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck())}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const records = 1000
			topic := "acks-" + c.name
			makeTopic(t, r, rig.Acme, topic)
			var sends sendCounter
			p := r.Kafka(t, rig.Produce, append(c.opts, kgo.ProducerBatchMaxBytes(2000),
				kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.WithHooks(&sends))...)
			var sent []*kgo.Record
			for i := range records {
				sent = append(sent, &kgo.Record{Topic: topic, Partition: 1, Value: fmt.Append(nil, "record ", i)})
			}
			if err := p.ProduceSync(rig.Context(t), sent...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			// One partition: a request carries one batch. Nothing was sent twice. (A
			// batch is counted after its records are acknowledged.)
			rig.Eventually(t, "a batch for every request", func() bool { return sends.requests.Load() == sends.batches.Load() })
			if c.name == "none" {
				awaitEnd(t, r, topic, 1, records)
			}
			got := readAll(t, r, rig.Consume, topic)[1]
			if len(got) != records {
				t.Fatalf("%d records, want %d", len(got), records)
			}
			for i, rec := range got {
				if string(rec.Value) != string(sent[i].Value) {
					t.Fatalf("offset %d holds %q, want %q", i, rec.Value, sent[i].Value)
				}
				if c.name != "none" && sent[i].Offset != int64(i) {
					t.Fatalf("record %d was acknowledged at offset %d", i, sent[i].Offset)
				}
			}
		})
	}
}

// sendCounter is a client's hook that counts Produce requests and batches that
// were stored.
type sendCounter struct{ requests, batches atomic.Int64 }

func (s *sendCounter) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == 0 {
		s.requests.Add(1)
	}
}

func (s *sendCounter) OnProduceBatchWritten(kgo.BrokerMetadata, string, int32, kgo.ProduceBatchMetrics) {
	s.batches.Add(1)
}

// A flood of acks=0 frames has no answer; what comes after it has one.
func TestAcksZeroHasNoAnswer(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	const frames = 2000
	var flood []byte
	for i := range frames {
		req := put(produceReq(0), "quiet", 0, recordBatch(noProducer(), fmt.Sprint(i)))
		flood = append(flood, rig.Frame(req, int32(i), "rig")...)
	}
	w.SendRaw(flood)
	// The answer to this, whose correlation id is checked, is the first there is.
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version, meta.Topics = 9, []kmsg.MetadataRequestTopic{}
	w.Ask(meta)
	got := readAll(t, r, rig.Acme, "quiet")[0]
	if len(got) != frames {
		t.Fatalf("%d records, want %d", len(got), frames)
	}
	for i, rec := range got {
		if string(rec.Value) != fmt.Sprint(i) {
			t.Fatalf("offset %d holds %q", i, rec.Value)
		}
	}
}

// A failing acks=0 closes the connection: that is all its client can notice.
func TestAcksZeroFailureCloses(t *testing.T) {
	r := rig.Start(t)
	for name, req := range map[string]*kmsg.ProduceRequest{
		"illegal topic":  put(produceReq(0), "no/such", 0, recordBatch(noProducer(), "v")),
		"reserved topic": put(produceReq(0), "__consumer_offsets", 0, recordBatch(noProducer(), "v")),
		"no partition":   put(produceReq(0), "t", 4, recordBatch(noProducer(), "v")),
		"corrupt batch":  put(produceReq(0), "t", 0, []byte(strings.Repeat("x", 100))),
	} {
		t.Run(name, func(t *testing.T) {
			before := r.Gateway.Closed(wire.AcksZeroFailed)
			w := r.Login(t, rig.Acme)
			w.Send(req)
			w.WantClosed()
			rig.Eventually(t, "the reason is counted", func() bool { return r.Gateway.Closed(wire.AcksZeroFailed) == before+1 })
		})
	}
	t.Run("no right", func(t *testing.T) {
		w := r.Login(t, rig.Consume)
		w.Send(put(produceReq(0), "t", 0, recordBatch(noProducer(), "v")))
		w.WantClosed()
	})
}

// awaitEnd waits until a partition's high watermark is there.
func awaitEnd(t *testing.T, r *rig.Rig, topic string, partition int32, end int64) {
	t.Helper()
	w := r.Login(t, rig.Acme)
	rig.Eventually(t, "the high watermark", func() bool {
		req := want(fetchReq(0, 1), topic, partition, 0)
		resp := w.Ask(req).(*kmsg.FetchResponse)
		return resp.Topics[0].Partitions[0].HighWatermark >= end
	})
}
