package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// A producer with several requests in flight shares pushes, and every record
// still learns its own offset.
func TestFramesSharePushes(t *testing.T) {
	r := rig.Start(t)
	makeTopic(t, r, rig.Acme, "t")
	p := r.Kafka(t, rig.Produce, kgo.ProducerBatchMaxBytes(1000), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var sent []*kgo.Record
	rig.Eventually(t, "requests that share a push", func() bool {
		sent = append(sent, produceMany(t, p, 2000)...)
		return r.Gateway.Stats().Pushes() < r.Gateway.Stats().ProduceFrames()
	})
	wantAt(t, readAll(t, r, rig.Consume, "t"), sent)
}

// produceMany produces without waiting for one answer before the next record.
func produceMany(t *testing.T, p *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx := rig.Context(t)
	var wg sync.WaitGroup
	sent := make([]*kgo.Record, n)
	for i := range sent {
		sent[i] = &kgo.Record{Topic: "t", Partition: int32(i % 4), Value: fmt.Append(nil, "record ", i)}
		wg.Add(1)
		p.Produce(ctx, sent[i], func(_ *kgo.Record, err error) {
			defer wg.Done()
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return sent
}

// wantAt looks every record up at the offset it was acknowledged with.
func wantAt(t *testing.T, got map[int32][]*kgo.Record, sent []*kgo.Record) {
	t.Helper()
	for _, rec := range sent {
		log := got[rec.Partition]
		if rec.Offset < 0 || rec.Offset >= int64(len(log)) {
			t.Errorf("%q was acknowledged at offset %d of %d", rec.Value, rec.Offset, len(log))
			continue
		}
		if string(log[rec.Offset].Value) != string(rec.Value) {
			t.Errorf("offset %d holds %q, acknowledged was %q", rec.Offset, log[rec.Offset].Value, rec.Value)
		}
	}
}

// Pipelined requests of several topics and partitions: each is answered in its
// place, with its own offsets.
func TestPipelinedRequestsKeepTheirOffsets(t *testing.T) {
	r := rig.Start(t)
	makeTopic(t, r, rig.Acme, "a", "b")
	w := r.Login(t, rig.Acme)
	const requests = 200
	var reqs []*kmsg.ProduceRequest
	for i := range requests {
		req := produceReq(-1)
		for _, topic := range []string{"a", "b"} {
			put(req, topic, int32(i%3), recordBatch(noProducer(), fmt.Sprint(i, " first"), fmt.Sprint(i, " second")))
		}
		reqs = append(reqs, req)
	}
	var sent []*kgo.Record
	for i, resp := range pipeline(w, reqs) {
		for _, topic := range []string{"a", "b"} {
			rp := partOf(t, resp, topic, int32(i%3))
			if rp.ErrorCode != 0 {
				t.Fatalf("request %d: code %d", i, rp.ErrorCode)
			}
			for j, value := range []string{" first", " second"} {
				sent = append(sent, &kgo.Record{Topic: topic, Partition: int32(i % 3), Offset: rp.BaseOffset + int64(j), Value: fmt.Append(nil, i, value)})
			}
		}
	}
	for _, topic := range []string{"a", "b"} {
		var own []*kgo.Record
		for _, rec := range sent {
			if rec.Topic == topic {
				own = append(own, rec)
			}
		}
		got := readAll(t, r, rig.Acme, topic)
		wantAt(t, got, own)
		if n := len(got[0]) + len(got[1]) + len(got[2]); n != len(own) {
			t.Errorf("topic %s holds %d records, want %d", topic, n, len(own))
		}
	}
}

// pipeline writes requests in one write and reads their answers in order.
func pipeline(w *rig.Wire, reqs []*kmsg.ProduceRequest) []*kmsg.ProduceResponse {
	const firstID = 1000
	var out []byte
	for i, req := range reqs {
		out = append(out, rig.Frame(req, int32(firstID+i), "rig")...)
	}
	w.SendRaw(out)
	resps := make([]*kmsg.ProduceResponse, len(reqs))
	for i, req := range reqs {
		resps[i] = w.Receive(req, int32(firstID+i)).(*kmsg.ProduceResponse)
	}
	return resps
}

// B8: what the cell refuses in a shared push costs only the request, the topic,
// the partition that is too large. Its neighbours are stored.
func TestOneBadBatchCostsNoOther(t *testing.T) {
	for _, limit := range []struct {
		name, column, most string
		bad                []string
	}{
		{"payload too large", "max_payload_bytes", "2000", []string{"small", strings.Repeat("x", 3000)}},
		{"too many records", "max_batch_items", "8", strings.Fields("1 2 3 4 5 6 7 8 9")},
	} {
		t.Run(limit.name, func(t *testing.T) {
			r := rig.Start(t)
			makeTopic(t, r, rig.Acme, "a", "b")
			o := control.Overrides{limit.column: json.RawMessage(limit.most)}
			if err := r.Cell.Control().SetOverrides("acme", o); err != nil {
				t.Fatal(err)
			}
			b := &badBatches{t: t, r: r, w: r.Login(t, rig.Acme), bad: limit.bad}
			b.inOneRequest()
			b.inOnePush()
			b.read()
		})
	}
}

// badBatches mixes one batch the cell refuses with good ones.
type badBatches struct {
	t    *testing.T
	r    *rig.Rig
	w    *rig.Wire
	bad  []string
	next int
	sent []*kgo.Record // acknowledged
}

func (b *badBatches) good() (string, []byte) {
	b.next++
	value := fmt.Sprint("good ", b.next)
	return value, recordBatch(noProducer(), value)
}

func (b *badBatches) stored(resp *kmsg.ProduceResponse, topic string, partition int32, value string) {
	b.t.Helper()
	rp := partOf(b.t, resp, topic, partition)
	if rp.ErrorCode != 0 {
		b.t.Fatalf("%s/%d: code %d, want it stored", topic, partition, rp.ErrorCode)
	}
	b.sent = append(b.sent, &kgo.Record{Topic: topic, Partition: partition, Offset: rp.BaseOffset, Value: []byte(value)})
}

func (b *badBatches) refused(resp *kmsg.ProduceResponse, topic string, partition int32) {
	b.t.Helper()
	rp := partOf(b.t, resp, topic, partition)
	if rp.ErrorCode != kerr.MessageTooLarge.Code || rp.BaseOffset != -1 || rp.ErrorMessage == nil {
		b.t.Fatalf("%s/%d: code %d at offset %d, want 10 at -1 and a sentence", topic, partition, rp.ErrorCode, rp.BaseOffset)
	}
}

// inOneRequest: the bad partition has good ones beside it and in another topic.
func (b *badBatches) inOneRequest() {
	b.t.Helper()
	v0, g0 := b.good()
	v2, g2 := b.good()
	vb, gb := b.good()
	req := put(put(produceReq(-1), "a", 0, g0), "a", 1, recordBatch(noProducer(), b.bad...))
	resp := b.w.Ask(put(put(req, "a", 2, g2), "b", 1, gb)).(*kmsg.ProduceResponse)
	b.stored(resp, "a", 0, v0)
	b.refused(resp, "a", 1)
	b.stored(resp, "a", 2, v2)
	b.stored(resp, "b", 1, vb)
}

// inOnePush: the bad request has good ones before and behind it, until they are
// seen to have travelled together.
func (b *badBatches) inOnePush() {
	b.t.Helper()
	stats := b.r.Gateway.Stats()
	rig.Eventually(b.t, "a shared push that is refused", func() bool {
		pushes, frames := stats.Pushes(), stats.ProduceFrames()
		var reqs []*kmsg.ProduceRequest
		values := map[int]string{}
		const bad = 4
		for i := range 6 {
			if i == bad {
				reqs = append(reqs, put(produceReq(-1), "a", 1, recordBatch(noProducer(), b.bad...)))
				continue
			}
			value, records := b.good()
			values[i] = value
			reqs = append(reqs, put(produceReq(-1), "a", 1, records))
		}
		for i, resp := range pipeline(b.w, reqs) {
			if i == bad {
				b.refused(resp, "a", 1)
			} else {
				b.stored(resp, "a", 1, values[i])
			}
		}
		// Pushes are never more than requests, unless one was refused and sent
		// again in pieces.
		return stats.Pushes()-pushes > stats.ProduceFrames()-frames
	})
}

func (b *badBatches) read() {
	b.t.Helper()
	total := 0
	for _, topic := range []string{"a", "b"} {
		var own []*kgo.Record
		for _, rec := range b.sent {
			if rec.Topic == topic {
				own = append(own, rec)
			}
		}
		got := readAll(b.t, b.r, rig.Acme, topic)
		wantAt(b.t, got, own)
		for _, records := range got {
			total += len(records)
		}
	}
	if total != len(b.sent) {
		b.t.Errorf("%d records are stored, %d were acknowledged", total, len(b.sent))
	}
}

// An idempotent producer whose batch is refused for good gets 45 for what
// follows it on this connection; other partitions are not concerned.
func TestFollowersOfARefusedBatch(t *testing.T) {
	r := rig.Start(t)
	makeTopic(t, r, rig.Acme, "t")
	if err := r.Cell.Control().SetOverrides("acme", control.Overrides{"max_payload_bytes": json.RawMessage("2000")}); err != nil {
		t.Fatal(err)
	}
	w := r.Login(t, rig.Acme)
	batchOf := func(seq int32, value string) []byte {
		return recordBatch(producer{id: 7, epoch: 0, seq: seq}, value)
	}
	resps := pipeline(w, []*kmsg.ProduceRequest{
		put(put(produceReq(-1), "t", 0, batchOf(0, "a")), "t", 1, batchOf(0, "b")),
		put(put(produceReq(-1), "t", 0, batchOf(1, strings.Repeat("x", 3000))), "t", 1, batchOf(1, "c")),
		put(put(produceReq(-1), "t", 0, batchOf(2, "d")), "t", 1, batchOf(2, "e")),
	})
	for i, want := range []int16{0, kerr.MessageTooLarge.Code, kerr.OutOfOrderSequenceNumber.Code} {
		if rp := partOf(t, resps[i], "t", 0); rp.ErrorCode != want {
			t.Errorf("request %d, partition 0: code %d, want %d", i, rp.ErrorCode, want)
		}
		if rp := partOf(t, resps[i], "t", 1); rp.ErrorCode != 0 || rp.BaseOffset != int64(i) {
			t.Errorf("request %d, partition 1: code %d at %d", i, rp.ErrorCode, rp.BaseOffset)
		}
	}
	got := readAll(t, r, rig.Acme, "t")
	if len(got[0]) != 1 || len(got[1]) != 3 {
		t.Errorf("%d and %d records, want 1 and 3", len(got[0]), len(got[1]))
	}
}

// A request larger than any body the cell takes is stored all the same: it is
// cut where one partition ends.
func TestRequestLargerThanThePushBody(t *testing.T) {
	const partitions = 9
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(cfg *config.Config) { cfg.DefaultPartitions = partitions }
	})
	makeTopic(t, r, rig.Acme, "t", "u")
	req := produceReq(-1)
	noise := rand.NewChaCha8([32]byte{3})
	values := map[string][]string{}
	for _, topic := range []string{"t", "u"} {
		for partition := range int32(partitions) {
			value := make([]byte, 800_000)
			_, _ = noise.Read(value)
			values[topic] = append(values[topic], string(value))
			put(req, topic, partition, recordBatch(noProducer(), string(value)))
		}
	}
	resp := ask(t, r.Login(t, rig.Acme), req)
	for topic, own := range values {
		got := readAll(t, r, rig.Consume, topic)
		for partition, value := range own {
			rp := partOf(t, resp, topic, int32(partition))
			log := got[int32(partition)]
			if rp.BaseOffset != 0 || len(log) != 1 || string(log[0].Value) != value {
				t.Errorf("%s/%d: acknowledged at %d, %d records", topic, partition, rp.BaseOffset, len(log))
			}
		}
	}
}
