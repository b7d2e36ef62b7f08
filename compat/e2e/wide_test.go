package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

// wideTopics times wideParts partitions are more than four cell calls' worth.
const (
	wideTopics = 4
	wideParts  = 1100
)

func startWide(t *testing.T) *rig.Rig {
	t.Helper()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(cfg *config.Config) { cfg.DefaultPartitions = wideParts }
	})
	for i := range wideTopics {
		makeTopic(t, r, rig.Acme, wideName(i))
	}
	return r
}

func wideName(i int) string { return fmt.Sprint("wide-", i) }

// A Fetch of 4,400 partitions is answered whole and in its order, whichever of
// its cell calls a partition is in.
func TestWideFetch(t *testing.T) {
	r := startWide(t)
	w := r.Login(t, rig.Acme)
	// The first and last of every topic, and both sides of the calls' borders.
	stored := map[string]map[int32]bool{}
	produce := produceReq(-1)
	add := func(n int) {
		topic, partition := wideName(n/wideParts), int32(n%wideParts)
		if stored[topic] == nil {
			stored[topic] = map[int32]bool{}
		}
		if !stored[topic][partition] {
			stored[topic][partition] = true
			put(produce, topic, partition, recordBatch(noProducer(), wideValue(topic, partition)))
		}
	}
	for i := range wideTopics {
		add(i * wideParts)
		add(i*wideParts + wideParts - 1)
	}
	for _, border := range []int{1024, 2048, 3072, 4096} {
		add(border - 1)
		add(border)
	}
	ask(t, w, produce)

	req := fetchReq(rig.Patience/2, 32<<20)
	for i := range wideTopics {
		for partition := range int32(wideParts) {
			want(req, wideName(i), partition, 0)
		}
	}
	calls := r.Cell.Requests().Of(proxy.RouteFetch)
	resp := w.Ask(req).(*kmsg.FetchResponse)
	if n := r.Cell.Requests().Of(proxy.RouteFetch) - calls; n != 5 {
		t.Errorf("4,400 partitions took %d calls, want 5", n)
	}
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		if rt.Topic != wideName(i) || len(rt.Partitions) != wideParts {
			t.Fatalf("topic %d is %s with %d partitions", i, rt.Topic, len(rt.Partitions))
		}
		for j := range rt.Partitions {
			wantWide(t, rt.Topic, int32(j), &rt.Partitions[j], stored[rt.Topic][int32(j)])
		}
	}
}

func wantWide(t *testing.T, topic string, partition int32, p *kmsg.FetchResponseTopicPartition, stored bool) {
	t.Helper()
	records := recordsOf(t, p)
	var end int64
	if stored {
		end = 1
	}
	switch {
	case p.Partition != partition || p.ErrorCode != 0:
		t.Errorf("%s/%d: code %d in partition %d", topic, partition, p.ErrorCode, p.Partition)
	case p.HighWatermark != end || int64(len(records)) != end:
		t.Errorf("%s/%d: %d records below %d, want %d", topic, partition, len(records), p.HighWatermark, end)
	case stored && records[0].value != wideValue(topic, partition):
		t.Errorf("%s/%d holds %q", topic, partition, records[0].value)
	}
}

func wideValue(topic string, partition int32) string { return fmt.Sprint(topic, "/", partition) }

// A client that consumes 4,400 partitions reads what is in any of them.
func TestWideConsumer(t *testing.T) {
	r := startWide(t)
	ctx := rig.Context(t)
	c := r.Kafka(t, rig.Consume, kgo.ConsumeTopics(wideName(0), wideName(1), wideName(2), wideName(3)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second))
	p := r.Kafka(t, rig.Produce, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	wanted := map[string]bool{}
	var sent []*kgo.Record
	for i := range wideTopics {
		for partition := int32(0); partition < wideParts; partition += 50 {
			value := wideValue(wideName(i), partition)
			wanted[value] = true
			sent = append(sent, &kgo.Record{Topic: wideName(i), Partition: partition, Value: []byte(value)})
		}
	}
	if err := p.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for len(wanted) > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v with %d records to come", err, len(wanted))
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if !wanted[string(rec.Value)] || string(rec.Value) != wideValue(rec.Topic, rec.Partition) {
				t.Errorf("%s/%d brings %q", rec.Topic, rec.Partition, rec.Value)
			}
			delete(wanted, string(rec.Value))
		})
	}
}

// A parked fetch is answered by the append it waits for, long before its wait is
// over, and costs one cell call.
func TestLongPollWakes(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Consume)
	p := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "t", "other")
	const wait = 30 * time.Second
	for offset := range int64(5) {
		parked := r.Cell.Requests().Of(proxy.RouteFetch) + 1
		req := fetchReq(wait, 1<<20)
		for partition := range int32(4) {
			from := int64(0)
			if partition == 2 {
				from = offset
			}
			want(req, "t", partition, from)
		}
		id := w.Send(req)
		rig.Eventually(t, "the fetch is parked", func() bool { return r.Cell.Requests().Of(proxy.RouteFetch) == parked })
		ask(t, p, put(produceReq(-1), "other", 2, recordBatch(noProducer(), "not for it")))
		ask(t, p, put(produceReq(-1), "t", 2, recordBatch(noProducer(), fmt.Sprint(offset))))
		// Below the wait by a distance that no busy machine bridges.
		if err := w.SetReadDeadline(time.Now().Add(wait - 5*time.Second)); err != nil {
			t.Fatal(err)
		}
		resp := w.Receive(req, id).(*kmsg.FetchResponse)
		got := recordsOf(t, &resp.Topics[0].Partitions[2])
		if len(got) != 1 || got[0].offset != offset || got[0].value != fmt.Sprint(offset) {
			t.Fatalf("the parked fetch at %d gives %v", offset, got)
		}
		if n := r.Cell.Requests().Of(proxy.RouteFetch); n != parked {
			t.Errorf("the fetch took %d calls", n-parked+1)
		}
	}
}

// A poll that finds nothing ends when its wait does, and was one cell call; a
// min_bytes that is not reached waits as well, and then gets what there is.
func TestLongPollEnds(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	ask(t, w, put(produceReq(-1), "t", 0, recordBatch(noProducer(), "v")))
	for _, c := range []struct {
		offset   int64
		minBytes int32
		records  int
	}{{1, 1, 0}, {0, 1 << 20, 1}} {
		calls, pushes := r.Cell.Requests().Of(proxy.RouteFetch), r.Gateway.Stats().Pushes()
		req := want(fetchReq(time.Second, 1<<20), "t", 0, c.offset)
		req.MinBytes = c.minBytes
		began := time.Now()
		p := w.Ask(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if n := len(recordsOf(t, &p)); p.ErrorCode != 0 || n != c.records || p.HighWatermark != 1 {
			t.Errorf("Fetch at %d: code %d, %d records below %d, want %d", c.offset, p.ErrorCode, n, p.HighWatermark, c.records)
		}
		if time.Since(began) < time.Second {
			t.Errorf("Fetch at %d did not wait", c.offset)
		}
		if n := r.Cell.Requests().Of(proxy.RouteFetch) - calls; n != 1 || r.Gateway.Stats().Pushes() != pushes {
			t.Errorf("Fetch at %d took %d calls, want 1", c.offset, n)
		}
	}
}
