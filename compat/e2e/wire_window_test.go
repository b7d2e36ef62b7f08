package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/faults/window"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// wireWindow makes a topic whose log knows resends for so long, before anybody
// has looked.
func wireWindow(t *testing.T, r *rig.Rig, topic string, seconds int) {
	t.Helper()
	cell := window.Cell{URL: r.CellURL, Token: r.Key(rig.Acme)}
	if err := cell.Make(t.Context(), topic, 4, seconds); err != nil {
		t.Fatal(err)
	}
}

// wireLog are the values of a partition, in the order of the log.
func wireLog(t *testing.T, r *rig.Rig, topic string, partition int32) (values []string) {
	t.Helper()
	for _, rec := range readAll(t, r, rig.Acme, topic)[partition] {
		values = append(values, string(rec.Value))
	}
	return values
}

func wireNumbers(n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprint(i))
	}
	return values
}

func wireWantValues(t *testing.T, r *rig.Rig, topic string, want []string) {
	t.Helper()
	if got := wireLog(t, r, topic, 0); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log holds %v, want %v", got, want)
	}
}

// B3: with a window, a resend is answered with the original offset and writes
// nothing, whatever connection and whatever gateway it comes over.
func TestWireWindowKnowsResends(t *testing.T) {
	r := rig.Start(t)
	wireWindow(t, r, "w", 900)
	const a = 1001
	one, two := r.Login(t, rig.Acme), r.Login(t, rig.Acme2)
	for i := range int32(8) {
		wireMustStore(t, one, "w", 0, wireSeq(a, 0, 2*i, 2))
	}
	wireDialogue(t, one, "w", []wireStep{
		{"of the last five, where they were stored", wireSeq(a, 0, 12, 2), 0, 12},
		{"of longer ago", wireSeq(a, 0, 2, 2), 0, 2},
		{"two known batches as one", wireSeq(a, 0, 4, 4), 0, 4},
		{"one whose tail is new", wireSeq(a, 0, 15, 3), 0, -1},
		{"its next", wireSeq(a, 0, 18, 1), 0, 18},
	})
	wireDialogue(t, two, "w", []wireStep{
		{"over another connection", wireSeq(a, 0, 6, 2), 0, 6},
		{"its next", wireSeq(a, 0, 8, 2), 0, 8},
		{"one whose tail is new", wireSeq(a, 0, 18, 2), 45, -1},
		{"from before the first one there", wireSeq(a, 0, 0, 2), 0, 0},
	})
	three := r.Login(t, rig.Acme)
	wireDialogue(t, three, "w", []wireStep{{"a tail that is new, first of its connection", wireSeq(a, 0, 18, 2), 0, -1}})
	r.StopGateway(t)
	r.StartGateway(t)
	wireDialogue(t, r.Login(t, rig.Acme), "w", []wireStep{{"over another gateway", wireSeq(a, 0, 14, 2), 0, 14}})
	wireWantValues(t, r, "w", wireNumbers(20))
}

// B3: without a window what is behind and not remembered is 46 where it was
// stored on this connection, and a resend over another one is written again.
func TestWireNoWindow(t *testing.T) {
	r := rig.Start(t)
	wireWindow(t, r, "off", 0)
	const a = 1001
	one := r.Login(t, rig.Acme)
	for i := range int32(8) {
		wireMustStore(t, one, "off", 0, wireSeq(a, 0, i, 1))
	}
	wireDialogue(t, one, "off", []wireStep{
		{"of the last five", wireSeq(a, 0, 5, 1), 0, 5},
		{"of longer ago", wireSeq(a, 0, 1, 1), 46, -1},
		{"one whose tail is new", wireSeq(a, 0, 7, 2), 45, -1},
	})
	wireDialogue(t, r.Login(t, rig.Acme), "off", []wireStep{{"over another connection", wireSeq(a, 0, 7, 1), 0, 8}})
	wireWantValues(t, r, "off", append(wireNumbers(8), "7"))
}

// B3: a first batch that fails with four pipelined behind it, for everything that
// can befall its push: none of the five is written before its time or twice, and
// all are taken when they are sent again.
func TestWireFirstBatchFails(t *testing.T) {
	for _, c := range []struct {
		kind inject.Kind
		code int16
	}{
		{inject.CutBefore, 7},
		{inject.CutAfter, 7},
		{inject.Truncate, 7},
		{inject.Throttle, 7},
		{inject.Late, 7},
		{inject.Refuse, 5},
	} {
		for _, seconds := range []int{900, 0} {
			t.Run(fmt.Sprintf("%s/window=%d", c.kind, seconds), func(t *testing.T) {
				t.Parallel()
				var p *inject.Proxy
				r := rig.Start(t, rig.WithFaults(t, &p))
				wireWindow(t, r, "five", seconds)
				w := r.Login(t, rig.Acme)
				wireMustStore(t, w, "five", 1, wireBatch{values: []string{"so that the topic is known"}})
				if err := p.Add(inject.Rule{Kind: c.kind, Route: "/api/v1/push", Count: 1, RetryAfterSeconds: 3}); err != nil {
					t.Fatal(err)
				}
				first := wirePipelined(w, "five", wireFive())
				if p.Fired(c.kind) != 1 {
					t.Fatalf("the fault struck %d times", p.Fired(c.kind))
				}
				for i, resp := range first {
					if code := resp.Topics[0].Partitions[0].ErrorCode; code != c.code {
						t.Errorf("batch %d: code %d, want %d", i, code, c.code)
					}
				}
				throttled := c.kind == inject.Throttle
				if ms := first[0].ThrottleMillis; throttled != (ms == 3000) {
					t.Errorf("throttle of %d ms", ms)
				}
				for i, resp := range wirePipelined(w, "five", wireFive()) {
					if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
						t.Errorf("sent again, batch %d: code %d", i, code)
					}
				}
				want := wireNumbers(10)
				if lost := c.kind == inject.CutAfter || c.kind == inject.Truncate; lost && seconds == 0 {
					want = append(wireNumbers(len(want)-missingOf(t, r, len(want))), want...) // at least once
				}
				wireWantValues(t, r, "five", want)
			})
		}
	}
}

// missingOf is how many of n records were not written twice: which frames went
// out in the call that was spoiled is a matter of their arrival.
func missingOf(t *testing.T, r *rig.Rig, n int) int {
	t.Helper()
	twice := len(wireLog(t, r, "five", 0)) - n
	if twice < 1 || twice > n {
		t.Errorf("%d of %d records were written twice", twice, n)
	}
	return n - twice
}

// wireFive are five batches of a producer that follow each other.
func wireFive() (batches []wireBatch) {
	for i := range int32(5) {
		batches = append(batches, wireSeq(77, 0, 2*i, 2))
	}
	return batches
}

// wirePipelined sends batches at once, a request each, and reads the answers.
func wirePipelined(w *rig.Wire, topic string, batches []wireBatch) (resps []*kmsg.ProduceResponse) {
	var reqs []*kmsg.ProduceRequest
	var sent []byte
	for i, b := range batches {
		reqs = append(reqs, wireProduce(-1, topic, 0, b.bytes()))
		sent = append(sent, rig.Frame(reqs[i], int32(i), "rig")...)
	}
	w.SendRaw(sent)
	for i, req := range reqs {
		resps = append(resps, w.Receive(req, int32(i)).(*kmsg.ProduceResponse))
	}
	return resps
}

// B3: the first batch of all may be the one that fails, for good or not, whatever
// refuses it; what follows it never goes before it.
func TestWireFirstBatchRefused(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("refused"))
	control, transactional := wireSeq(1, 0, 0, 1), wireSeq(2, 0, 0, 1)
	control.attributes, transactional.attributes = 0x20, 0x10
	wireDialogue(t, w, "refused", []wireStep{
		{"a control batch", control, 87, -1},
		{"its follower", wireSeq(1, 0, 1, 1), 45, -1},
		{"in its place", wireSeq(1, 0, 0, 1), 0, 0},
		{"its follower", wireSeq(1, 0, 1, 1), 0, 1},
		{"a transactional batch", transactional, 53, -1},
		{"its follower", wireSeq(2, 0, 1, 1), 45, -1},
		{"a new epoch", wireSeq(2, 1, 0, 1), 0, 2},
	})
}

// B3: a batch from before the first one seen on a connection holds up what
// follows it when it fails.
func TestWireEarlyBatchFails(t *testing.T) {
	var p *inject.Proxy
	r := rig.Start(t, rig.WithFaults(t, &p))
	wireWindow(t, r, "early", 900)
	w := r.Login(t, rig.Acme)
	const a = 1001
	wireDialogue(t, w, "early", []wireStep{{"the fourth comes first", wireSeq(a, 0, 3, 1), 0, 0}})
	if err := p.Add(inject.Rule{Kind: inject.Refuse, Route: "/api/v1/push", Count: 1}); err != nil {
		t.Fatal(err)
	}
	wireDialogue(t, w, "early", []wireStep{
		{"the first fails", wireSeq(a, 0, 0, 1), 5, -1},
		{"the second", wireSeq(a, 0, 1, 1), 5, -1},
		{"the fifth", wireSeq(a, 0, 4, 1), 5, -1},
		{"the first again", wireSeq(a, 0, 0, 1), 0, 1},
		{"the second again", wireSeq(a, 0, 1, 1), 0, 2},
		{"the third", wireSeq(a, 0, 2, 1), 0, 3},
		{"the fourth again", wireSeq(a, 0, 3, 1), 0, 0},
		{"the fifth again", wireSeq(a, 0, 4, 1), 0, 4},
	})
}

// B3: topics made by the gateway know resends, however they were made, from their
// first batch on and after their configs were altered.
func TestWireMadeTopicsKnowResends(t *testing.T) {
	for _, c := range []struct {
		what string
		make func(t *testing.T, w *rig.Wire)
	}{
		{"by Metadata", func(_ *testing.T, w *rig.Wire) { w.Ask(wireMetadata("made")) }},
		{"by Produce", func(*testing.T, *rig.Wire) {}},
		{"by CreateTopics", func(t *testing.T, w *rig.Wire) {
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "made", 2, 1
			req := kmsg.NewPtrCreateTopicsRequest()
			req.Version, req.Topics = 5, []kmsg.CreateTopicsRequestTopic{topic}
			if got := w.Ask(req).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != 0 {
				t.Fatalf("create: code %d", got.ErrorCode)
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r := rig.Start(t)
			one := r.Login(t, rig.Acme)
			c.make(t, one)
			const a = 1001
			for i := range int32(8) {
				wireMustStore(t, one, "made", 0, wireSeq(a, 0, i, 1))
			}
			wireDialogue(t, one, "made", []wireStep{{"of longer ago", wireSeq(a, 0, 1, 1), 0, 1}})
			wireDialogue(t, r.Login(t, rig.Acme), "made", []wireStep{{"over another connection", wireSeq(a, 0, 5, 1), 0, 5}})

			config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			config.Name, config.Value = "retention.ms", kmsg.StringPtr("86400000")
			topic := kmsg.NewIncrementalAlterConfigsRequestResource()
			topic.ResourceType, topic.ResourceName = kmsg.ConfigResourceTypeTopic, "made"
			topic.Configs = append(topic.Configs, config)
			alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
			alter.Resources = append(alter.Resources, topic)
			if got := one.Ask(alter).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; got.ErrorCode != 0 {
				t.Fatalf("alter: code %d", got.ErrorCode)
			}
			wireDialogue(t, r.Login(t, rig.Acme), "made", []wireStep{{"after an alter", wireSeq(a, 0, 6, 1), 0, 6}})
			wireWantValues(t, r, "made", wireNumbers(8))
		})
	}
}

// QUEEN_KAFKA_DEDUP_WINDOW_SECONDS=0 makes topics as a cell without
// deduplication would: at least once over another connection.
func TestWireWindowSwitchedOff(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) { o.Config = func(cfg *config.Config) { cfg.DedupWindow = 0 } })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("off"))
	wireMustStore(t, w, "off", 0, wireSeq(1001, 0, 0, 1))
	wireDialogue(t, r.Login(t, rig.Acme), "off", []wireStep{{"over another connection", wireSeq(1001, 0, 0, 1), 0, 1}})
	wireWantValues(t, r, "off", []string{"0", "0"})
}
