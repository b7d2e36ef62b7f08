package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
)

// readAll reads a topic from its start to the high watermarks of now, in the
// order of each partition.
func readAll(t *testing.T, r *rig.Rig, key, topic string, opts ...kgo.Opt) map[int32][]*kgo.Record {
	t.Helper()
	ctx := rig.Context(t)
	admin := kadm.NewClient(r.Kafka(t, key))
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatalf("high watermarks of %s: %v", topic, err)
	}
	start := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) { start[o.Partition] = kgo.NewOffset().At(0) })
	opts = append([]kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start})}, opts...)
	c := r.Kafka(t, key, opts...)
	got := map[int32][]*kgo.Record{}
	ends.Each(func(o kadm.ListedOffset) {
		for int64(len(got[o.Partition])) < o.Offset {
			pollInto(ctx, t, c, got)
		}
	})
	for p, records := range got {
		for i, rec := range records {
			if rec.Offset != int64(i) {
				t.Fatalf("partition %d: record %d has offset %d", p, i, rec.Offset)
			}
		}
	}
	return got
}

// pollInto adds what one poll brings.
func pollInto(ctx context.Context, t *testing.T, c *kgo.Client, got map[int32][]*kgo.Record) {
	t.Helper()
	fetches := c.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatalf("poll: %v", err)
	}
	fetches.EachRecord(func(rec *kgo.Record) { got[rec.Partition] = append(got[rec.Partition], rec) })
}

// wantRecord compares everything of a record that its producer chose.
func wantRecord(t *testing.T, got, want *kgo.Record) {
	t.Helper()
	if !sameBytes(got.Key, want.Key) {
		t.Errorf("offset %d: key %s, want %s", got.Offset, show(got.Key), show(want.Key))
	}
	if !sameBytes(got.Value, want.Value) {
		t.Errorf("offset %d: value %s, want %s", got.Offset, show(got.Value), show(want.Value))
	}
	if got.Timestamp.UnixMilli() != want.Timestamp.UnixMilli() {
		t.Errorf("offset %d: timestamp %d, want %d", got.Offset, got.Timestamp.UnixMilli(), want.Timestamp.UnixMilli())
	}
	if got.Attrs.TimestampType() != 0 {
		t.Errorf("offset %d: timestamp type %d, want CreateTime", got.Offset, got.Attrs.TimestampType())
	}
	if len(got.Headers) != len(want.Headers) {
		t.Errorf("offset %d: %d headers, want %d", got.Offset, len(got.Headers), len(want.Headers))
		return
	}
	for i, h := range want.Headers {
		if got.Headers[i].Key != h.Key || !sameBytes(got.Headers[i].Value, h.Value) {
			t.Errorf("offset %d: header %d is %q=%s, want %q=%s", got.Offset, i,
				got.Headers[i].Key, show(got.Headers[i].Value), h.Key, show(h.Value))
		}
	}
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 40:
		return fmt.Sprintf("%d bytes %q…", len(b), b[:40])
	}
	return fmt.Sprintf("%q", b)
}

// producer is the idempotent part of a batch's header.
type producer struct {
	id    int64
	epoch int16
	seq   int32
}

// noProducer is what a plain producer's batches carry.
func noProducer() producer { return producer{id: -1, epoch: -1, seq: -1} }

// recordBatch makes an uncompressed batch of the given values, offsets from 0.
func recordBatch(p producer, values ...string) []byte {
	var w batch.Writer
	w.Reset(nil)
	for i, v := range values {
		w.Add(&batch.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Value: []byte(v)})
	}
	b := w.Finish()
	const crcAt, attributesAt, producerAt = 17, 21, 43
	binary.BigEndian.PutUint64(b[producerAt:], uint64(p.id))
	binary.BigEndian.PutUint16(b[producerAt+8:], uint16(p.epoch))
	binary.BigEndian.PutUint32(b[producerAt+10:], uint32(p.seq))
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attributesAt:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// produceReq is a Produce with nothing in it yet.
func produceReq(acks int16) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 10_000
	return req
}

// put adds one partition's batch to a Produce.
func put(req *kmsg.ProduceRequest, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	for i := range req.Topics {
		if req.Topics[i].Topic == topic {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
			return req
		}
	}
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	req.Topics = append(req.Topics, t)
	return req
}

// partOf finds one partition in a Produce answer.
func partOf(t *testing.T, resp *kmsg.ProduceResponse, topic string, partition int32) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if rt.Topic == topic && rp.Partition == partition {
				return rp
			}
		}
	}
	t.Fatalf("the answer has no partition %d of %s", partition, topic)
	return kmsg.ProduceResponseTopicPartition{}
}

// fetchReq is a Fetch with nothing in it yet.
func fetchReq(wait time.Duration, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.MaxWaitMillis, req.MinBytes = 12, maxBytes, int32(wait.Milliseconds()), 1
	req.ReplicaID, req.SessionEpoch = -1, -1
	return req
}

// want adds one partition to a Fetch.
func want(req *kmsg.FetchRequest, topic string, partition int32, offset int64) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, offset, 1<<20, -1
	for i := range req.Topics {
		if req.Topics[i].Topic == topic {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
			return req
		}
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.FetchRequestTopicPartition{p}
	req.Topics = append(req.Topics, t)
	return req
}

// read is one record of a raw Fetch.
type read struct {
	offset int64
	stamp  int64 // ms
	value  string
}

// recordsOf decodes the batches of one partition's answer.
func recordsOf(t *testing.T, p *kmsg.FetchResponseTopicPartition) []read {
	t.Helper()
	var out []read
	var dec batch.Decoder
	for rest := p.RecordBatches; len(rest) > 0; {
		b, next, err := batch.Next(rest)
		if err != nil {
			t.Fatalf("a fetched batch does not decode: %v", err)
		}
		rest = next
		budget := batch.Budget{Bytes: 64 << 20, Records: 1 << 20}
		err = dec.Each(&b, &budget, func(r *batch.Record) error {
			out = append(out, read{r.Offset, r.Timestamp, string(r.Value)})
			return nil
		})
		if err != nil {
			t.Fatalf("a fetched record does not decode: %v", err)
		}
	}
	return out
}

// ask sends a Produce of which every partition must be stored.
func ask(t *testing.T, w *rig.Wire, req *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	t.Helper()
	resp := w.Ask(req).(*kmsg.ProduceResponse)
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if rp.ErrorCode != 0 {
				t.Fatalf("%s/%d: code %d (%s)", rt.Topic, rp.Partition, rp.ErrorCode, *rp.ErrorMessage)
			}
		}
	}
	return resp
}

// makeTopic has a topic created, as every client's first look at it does.
func makeTopic(t *testing.T, r *rig.Rig, key string, names ...string) {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 9, true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	resp := r.Login(t, key).Ask(req).(*kmsg.MetadataResponse)
	for _, topic := range resp.Topics {
		if topic.ErrorCode != 0 {
			t.Fatalf("topic %s: code %d", *topic.Topic, topic.ErrorCode)
		}
	}
}
