package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// Both ends and the offsets of times, as an admin client asks for them. Times go
// by the log's own clock, which is this process's.
func TestListOffsets(t *testing.T) {
	r := rig.Start(t)
	ctx := rig.Context(t)
	admin := kadm.NewClient(r.Kafka(t, rig.Acme))
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "t")

	before := tick()
	ask(t, w, put(produceReq(-1), "t", 0, recordBatch(noProducer(), "0", "1", "2")))
	between := tick()
	ask(t, w, put(produceReq(-1), "t", 0, recordBatch(noProducer(), "3", "4")))
	after := tick()

	list := func(name string, got kadm.ListedOffsets, err error, partition int32, want int64) {
		t.Helper()
		o, ok := got.Lookup("t", partition)
		switch {
		case err != nil || !ok || o.Err != nil:
			t.Errorf("%s: %v %v", name, err, o.Err)
		case o.Offset != want:
			t.Errorf("%s of partition %d: offset %d, want %d", name, partition, o.Offset, want)
		}
	}
	for partition, want := range []int64{5, 0} {
		got, err := admin.ListStartOffsets(ctx, "t")
		list("earliest", got, err, int32(partition), 0)
		got, err = admin.ListEndOffsets(ctx, "t")
		list("latest", got, err, int32(partition), want)
		got, err = admin.ListCommittedOffsets(ctx, "t")
		list("last stable", got, err, int32(partition), want)
	}

	for _, c := range []struct {
		name   string
		at     int64
		offset int64
	}{{"before all", before, 0}, {"of old", 1, 0}, {"at the epoch", 0, 0}, {"between", between, 3}, {"after all", after, -1}} {
		o := offsetAt(t, w, 0, c.at)
		if o.ErrorCode != 0 || o.Offset != c.offset {
			t.Errorf("time %s: offset %d code %d, want %d", c.name, o.Offset, o.ErrorCode, c.offset)
		}
		if c.offset == -1 {
			if o.Timestamp != -1 {
				t.Errorf("time %s: timestamp %d, want -1", c.name, o.Timestamp)
			}
			continue
		}
		if o.Timestamp < c.at {
			t.Errorf("time %s: timestamp %d is before the time %d", c.name, o.Timestamp, c.at)
		}
		// On the answered time itself, and just past it.
		if on := offsetAt(t, w, 0, o.Timestamp); on.Offset != c.offset {
			t.Errorf("time of offset %d: offset %d", c.offset, on.Offset)
		}
		if past := offsetAt(t, w, 0, o.Timestamp+1); past.Offset == c.offset {
			t.Errorf("time past offset %d: offset %d", c.offset, past.Offset)
		}
		if o := offsetAt(t, w, 1, c.at); o.ErrorCode != 0 || o.Offset != -1 || o.Timestamp != -1 {
			t.Errorf("time %s in an empty log: offset %d timestamp %d code %d", c.name, o.Offset, o.Timestamp, o.ErrorCode)
		}
	}
	for partition, want := range map[int32]int16{4: 3, -1: 3} {
		if o := offsetAt(t, w, partition, 0); o.ErrorCode != want {
			t.Errorf("partition %d: code %d, want %d", partition, o.ErrorCode, want)
		}
	}
}

// tick is a moment with one millisecond of its own before and after it.
func tick() int64 {
	wait := func(from int64) int64 {
		for {
			if now := time.Now().UnixMilli(); now > from {
				return now
			}
		}
	}
	mine := wait(time.Now().UnixMilli())
	wait(mine)
	return mine
}

func offsetAt(t *testing.T, w *rig.Wire, partition int32, at int64) kmsg.ListOffsetsResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 6, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, at, -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic, rt.Partitions = "t", append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	return w.Ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

// A consumer starts anywhere: every offset of two batches, the end, and beyond.
func TestSeek(t *testing.T) {
	r := rig.Start(t)
	ctx := rig.Context(t)
	w := r.Login(t, rig.Acme)
	ask(t, w, put(produceReq(-1), "t", 2, recordBatch(noProducer(), "0", "1", "2", "3", "4")))
	ask(t, w, put(produceReq(-1), "t", 2, recordBatch(noProducer(), "5", "6", "7", "8", "9")))

	c := r.Kafka(t, rig.Consume, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {2: kgo.NewOffset().At(0)}}))
	for offset := range int64(10) {
		resp := w.Ask(want(fetchReq(0, 1<<20), "t", 2, offset)).(*kmsg.FetchResponse)
		got := recordsOf(t, &resp.Topics[0].Partitions[0])
		if len(got) == 0 || got[0].offset > offset {
			t.Fatalf("Fetch at %d gives %v", offset, got)
		}
		if last := got[len(got)-1]; last.offset != 9 || last.value != "9" {
			t.Errorf("Fetch at %d ends with %v", offset, last)
		}
		c.SetOffsets(map[string]map[int32]kgo.EpochOffset{"t": {2: {Epoch: -1, Offset: offset}}})
		fetches := c.PollFetches(ctx)
		if records := fetches.Records(); fetches.Err() != nil || len(records) == 0 || records[0].Offset != offset {
			t.Fatalf("seek to %d gives %v, %v", offset, records, fetches.Err())
		}
	}
	for offset, code := range map[int64]int16{10: 0, 11: kerr.OffsetOutOfRange.Code, -1: kerr.OffsetOutOfRange.Code} {
		resp := w.Ask(want(fetchReq(0, 1<<20), "t", 2, offset)).(*kmsg.FetchResponse)
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != code || len(p.RecordBatches) != 0 {
			t.Errorf("Fetch at %d: code %d and %d bytes, want code %d", offset, p.ErrorCode, len(p.RecordBatches), code)
		}
		if code == 0 && (p.HighWatermark != 10 || p.LastStableOffset != 10 || p.LogStartOffset != 0) {
			t.Errorf("Fetch at the end: high watermark %d, stable %d, start %d", p.HighWatermark, p.LastStableOffset, p.LogStartOffset)
		}
	}
}

// Out of range makes a consumer start over where it was told to.
func TestResetAfterOutOfRange(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	ask(t, w, put(produceReq(-1), "t", 0, recordBatch(noProducer(), "0", "1")))
	c := r.Kafka(t, rig.Consume, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(1000)}}))
	if got := c.PollFetches(rig.Context(t)).Records(); len(got) != 2 || got[0].Offset != 0 {
		t.Errorf("%d records after an offset beyond the log, want both", len(got))
	}
}

// KIP-74: however small the limits, a fetch brings the first record there is, and
// then no other; a consumer with such limits gets through.
func TestFetchFirstRecordAlwaysGoes(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	noise := make([]byte, 900_000)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	ask(t, w, put(produceReq(-1), "t", 1, recordBatch(noProducer(), string(noise), "second")))
	ask(t, w, put(produceReq(-1), "t", 2, recordBatch(noProducer(), strings.Repeat("other", 1000))))

	req := fetchReq(0, 1)
	for partition := range int32(3) {
		want(req, "t", partition, 0)
	}
	for _, topic := range req.Topics {
		for i := range topic.Partitions {
			topic.Partitions[i].PartitionMaxBytes = 1
		}
	}
	resp := w.Ask(req).(*kmsg.FetchResponse)
	for i, p := range resp.Topics[0].Partitions {
		if p.ErrorCode != 0 || p.RecordBatches == nil {
			t.Fatalf("partition %d: code %d", i, p.ErrorCode)
		}
		got := recordsOf(t, &p)
		switch {
		case i == 1 && (len(got) != 1 || got[0].value != string(noise)):
			t.Errorf("partition 1 gives %d records, want the large one", len(got))
		case i != 1 && len(got) != 0:
			t.Errorf("partition %d gives %d records beyond the limit", i, len(got))
		}
	}

	c := readAll(t, r, rig.Consume, "t", kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1))
	if len(c[1]) != 2 || len(c[2]) != 1 || string(c[1][1].Value) != "second" {
		t.Errorf("a consumer with limits of one byte read %d and %d records", len(c[1]), len(c[2]))
	}
}

// brod always asks for committed records only: without transactions it gets all.
func TestReadCommitted(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	ask(t, w, put(produceReq(-1), "t", 0, recordBatch(noProducer(), "0", "1")))
	req := want(fetchReq(0, 1<<20), "t", 0, 0)
	req.IsolationLevel = 1
	p := w.Ask(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if len(recordsOf(t, &p)) != 2 || p.LastStableOffset != 2 || p.HighWatermark != 2 || p.AbortedTransactions == nil {
		t.Errorf("code %d, stable %d, high watermark %d, aborted %v", p.ErrorCode, p.LastStableOffset, p.HighWatermark, p.AbortedTransactions)
	}
	if got := readAll(t, r, rig.Consume, "t", kgo.FetchIsolationLevel(kgo.ReadCommitted())); len(got[0]) != 2 {
		t.Errorf("%d records, want 2", len(got[0]))
	}
}
