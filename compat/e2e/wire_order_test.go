package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// wireSeq is a batch of n records of a producer.
func wireSeq(producer int64, epoch int16, sequence int32, n int) wireBatch {
	b := wireBatch{producer: producer, epoch: epoch, sequence: sequence}
	for i := range n {
		b.values = append(b.values, fmt.Sprint(int(sequence)+i))
	}
	return b
}

// wireStep is one batch of a dialogue and what it must be answered.
type wireStep struct {
	what  string
	batch wireBatch
	code  int16
	base  int64 // -2: any
}

func wireDialogue(t *testing.T, w *rig.Wire, topic string, steps []wireStep) {
	t.Helper()
	for _, s := range steps {
		p := wireStore(w, topic, 0, s.batch)
		if p.ErrorCode != s.code || s.base != -2 && p.BaseOffset != s.base {
			t.Errorf("%s: code %d, base offset %d; want %d, %d", s.what, p.ErrorCode, p.BaseOffset, s.code, s.base)
		}
	}
}

// Case D13 (B3): what one connection says about the order of a producer.
func TestWireSequenceRules(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("order"))
	const a, b = 1001, 2002
	wireDialogue(t, w, "order", []wireStep{
		{"first", wireSeq(a, 0, 0, 2), 0, 0},
		{"next", wireSeq(a, 0, 2, 3), 0, 2},
		{"gap", wireSeq(a, 0, 6, 1), 45, -1},
		{"exact resend", wireSeq(a, 0, 2, 3), 0, 2},
		{"exact resend of the first", wireSeq(a, 0, 0, 2), 0, 0},
		{"next after the gap", wireSeq(a, 0, 5, 1), 0, 5},
		{"unknown producer at any sequence", wireSeq(b, 3, 77, 1), 0, 6},
		{"its next", wireSeq(b, 3, 78, 1), 0, 7},
		{"higher epoch not at 0", wireSeq(a, 1, 6, 1), 45, -1},
		{"the old epoch goes on", wireSeq(a, 0, 6, 1), 0, 8},
		{"higher epoch at 0", wireSeq(a, 1, 0, 1), 0, 9},
		{"lower epoch", wireSeq(a, 0, 7, 1), 47, -1},
		{"the new epoch goes on", wireSeq(a, 1, 1, 1), 0, 10},
		{"last sequence there is", wireSeq(3003, 0, 1<<31-1, 1), 0, 11},
		{"sequences wrap", wireSeq(3003, 0, 0, 1), 0, 12},
	})
	if end := wireEnd(t, w, "order", 0); end != 13 {
		t.Errorf("%d records are stored, want 13", end)
	}
	// The same producer starts at 0 in every partition.
	if base := wireMustStore(t, w, "order", 1, wireSeq(a, 1, 0, 1)); base != 0 {
		t.Errorf("base offset %d in another partition, want 0", base)
	}
}

// Case D13 (B3): on a topic whose log keeps no window, sequences of more than
// five batches ago, and overlaps, are never stored in part.
func TestWireSequenceOverlap(t *testing.T) {
	w := rig.Start(t, func(o *rig.Options) { o.Config = func(c *config.Config) { c.DedupWindow = 0 } }).Login(t, rig.Acme)
	w.Ask(wireMetadata("overlap"))
	for i := range int32(8) {
		wireMustStore(t, w, "overlap", 0, wireSeq(5, 0, 2*i, 2))
	}
	for what, b := range map[string]wireBatch{
		"overlap": wireSeq(5, 0, 13, 2), "two known batches as one": wireSeq(5, 0, 12, 4), "long ago": wireSeq(5, 0, 0, 2),
	} {
		if p := wireStore(w, "overlap", 0, b); p.ErrorCode != 46 && p.ErrorCode != 45 {
			t.Errorf("%s: code %d", what, p.ErrorCode)
		}
	}
	if end := wireEnd(t, w, "overlap", 0); end != 16 {
		t.Errorf("%d records are stored, want 16", end)
	}
}

// Case D14 (B3): followers of a batch that failed get its retriable code and
// are not written; after a permanent refusal they get 45. In order, everything
// is then taken.
func TestWireSequenceAfterFailure(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("failed"))
	const a = 1001
	wireDialogue(t, w, "failed", []wireStep{{"first", wireSeq(a, 0, 0, 1), 0, 0}})
	relay.cut.Store(true)
	wireDialogue(t, w, "failed", []wireStep{{"the cell is gone", wireSeq(a, 0, 1, 1), 7, -1}})
	relay.cut.Store(false)
	wireDialogue(t, w, "failed", []wireStep{
		{"follower", wireSeq(a, 0, 2, 1), 7, -1},
		{"follower of the follower", wireSeq(a, 0, 3, 2), 7, -1},
		{"resend of what was stored", wireSeq(a, 0, 0, 1), 0, 0},
		{"resend of what failed", wireSeq(a, 0, 1, 1), 0, 1},
		{"follower again", wireSeq(a, 0, 2, 1), 0, 2},
		{"and its follower", wireSeq(a, 0, 3, 2), 0, 3},
	})
	control := wireSeq(a, 0, 5, 1)
	control.attributes = 0x20
	wireDialogue(t, w, "failed", []wireStep{
		{"refused for good", control, 87, -1},
		{"follower", wireSeq(a, 0, 6, 1), 45, -1},
		{"in its place", wireSeq(a, 0, 5, 1), 0, 5},
		{"follower again", wireSeq(a, 0, 6, 1), 0, 6},
	})
	if end := wireEnd(t, w, "failed", 0); end != 7 {
		t.Errorf("%d records are stored, want 7", end)
	}
}

// Case D14 (B3): the same with the followers already pipelined.
func TestWireSequencePipelinedFailure(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("piped"))
	wireMustStore(t, w, "piped", 1, wireBatch{values: []string{"so that the topic is known"}})
	relay.cut.Store(true)
	send := func() (codes []int16) {
		var reqs []*kmsg.ProduceRequest
		var sent []byte
		for i := range int32(20) {
			reqs = append(reqs, wireProduce(-1, "piped", 0, wireSeq(9, 0, i, 1).bytes()))
			sent = append(sent, rig.Frame(reqs[i], i, "rig")...)
		}
		w.SendRaw(sent)
		for i, req := range reqs {
			p := w.Receive(req, int32(i)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			codes = append(codes, p.ErrorCode)
		}
		return codes
	}
	for i, code := range send() {
		if code != 7 {
			t.Errorf("cell gone, batch %d: code %d, want 7", i, code)
		}
	}
	relay.cut.Store(false)
	for i, code := range send() {
		if code != 0 {
			t.Errorf("cell back, batch %d: code %d, want 0", i, code)
		}
	}
	if end := wireEnd(t, w, "piped", 0); end != 20 {
		t.Errorf("%d records are stored, want 20", end)
	}
}

// Case D15 (B3): what happened on another connection is never judged: no gap,
// no epoch, no failure of one is held against the other.
func TestWireSequenceOtherConnection(t *testing.T) {
	r := rig.Start(t)
	one, two := r.Login(t, rig.Acme), r.Login(t, rig.Acme2)
	one.Ask(wireMetadata("two"))
	const a = 4004
	wireDialogue(t, one, "two", []wireStep{{"first here", wireSeq(a, 1, 0, 1), 0, 0}})
	wireDialogue(t, two, "two", []wireStep{
		{"gap there", wireSeq(a, 1, 9, 1), 0, 1}, {"its next", wireSeq(a, 1, 10, 1), 0, 2},
	})
	wireDialogue(t, one, "two", []wireStep{{"next here", wireSeq(a, 1, 1, 1), 0, 3}})
	three := r.Login(t, rig.Acme)
	wireDialogue(t, three, "two", []wireStep{{"lower epoch there", wireSeq(a, 0, 5, 1), 0, 4}})
}

// Case D16 (B3): batches of one partition that do not hold together.
func TestWireMixedBatches(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("mixed"))
	plain := wireBatch{values: []string{"v"}}
	join := func(bs ...wireBatch) (b []byte) {
		for _, x := range bs {
			b = append(b, x.bytes()...)
		}
		return b
	}
	for _, test := range []struct {
		what    string
		records []byte
		code    int16
	}{
		{"with and without producer", join(wireSeq(1, 0, 0, 1), plain), 87},
		{"two producers", join(wireSeq(1, 0, 0, 1), wireSeq(2, 0, 1, 1)), 87},
		{"two epochs", join(wireSeq(1, 0, 0, 1), wireSeq(1, 1, 0, 1)), 87},
		{"gap inside", join(wireSeq(1, 0, 0, 1), wireSeq(1, 0, 2, 1)), 45},
		{"no sequence", wireSeq(1, 0, -1, 1).bytes(), 87},
		{"no epoch", wireSeq(1, -1, 0, 1).bytes(), 87},
		{"one after the other", join(wireSeq(1, 0, 0, 2), wireSeq(1, 0, 2, 2)), 0},
	} {
		p := w.Ask(wireProduce(-1, "mixed", 0, test.records)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != test.code {
			t.Errorf("%s: code %d, want %d", test.what, p.ErrorCode, test.code)
		}
	}
	if end := wireEnd(t, w, "mixed", 0); end != 4 {
		t.Errorf("%d records are stored, want 4", end)
	}
}
