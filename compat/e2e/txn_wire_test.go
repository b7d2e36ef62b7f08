package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// A transaction at both ends of every window: what is committed is there whole,
// records and offsets; what is aborted was never there.
func TestTxnLife(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	for i, end := range []int16{0, 3, 4} {
		topic, group := fmt.Sprintf("life-%d", end), fmt.Sprintf("g-%d", end)
		w.Ask(wireMetadata(topic))
		p := beginTxn(t, w, fmt.Sprintf("life %d/ü", i))
		p.end = end
		wantCode(t, "add", p.add(topic), 0)
		wantCode(t, "produce", p.produce(topic, "a", "b"), 0)
		wantValues(t, w, topic)
		wantCode(t, "abort", p.abort(), 0)
		wantCode(t, "abort again", p.abort(), 0)
		wantValues(t, w, topic)

		wantCode(t, "add", p.add(topic), 0)
		wantCode(t, "produce", p.produce(topic, "c", "d"), 0)
		wantCode(t, "add offsets", p.addOffsets(group), 0)
		text := "m"
		if codes := p.offsets(group, at{topic: "in", offset: 7, metadata: &text}, at{topic: "in", partition: 1, offset: 9}); !slices.Equal(codes, []int16{0, 0}) {
			t.Errorf("offsets: %v", codes)
		}
		if got := committed(t, w, offsetRequest(5, group, "in")); !slices.Equal(got, []string{"in/0=-1", "in/1=-1", "in/2=-1"}) {
			t.Errorf("before the commit: %q", got)
		}
		wantCode(t, "commit", p.commit(), 0)
		wantCode(t, "commit again", p.commit(), 0)
		wantValues(t, w, topic, "c", "d")
		if got := committed(t, w, offsetRequest(5, group, "in")); !slices.Equal(got, []string{`in/0=7 "m"`, "in/1=9", "in/2=-1"}) {
			t.Errorf("after the commit: %q", got)
		}
		wantCode(t, "abort after the commit", p.abort(), 48)
	}
}

// What a transaction does not allow, with the code that each API has for it.
func TestTxnRefusals(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("refusals"))
	p := beginTxn(t, w, "refusals")

	wantCode(t, "produce without add", p.produce("refusals", "v"), 48)
	wantCode(t, "commit of nothing", p.commit(), 48)
	wantCode(t, "abort of nothing", p.abort(), 0)
	wantCode(t, "illegal topic", p.add("no/topic"), 3)
	wantCode(t, "hidden topic", p.add("__hidden"), 3)
	wantCode(t, "illegal group", p.addOffsets(""), 24)

	other := *p
	other.pid++
	wantCode(t, "add as another id", other.add("refusals"), 49)
	wantCode(t, "offsets of another id", other.addOffsets("g"), 49)
	wantCode(t, "commit of another id", other.commit(), 49)
	wantCode(t, "produce of another id", other.produce("refusals", "v"), 49)
	ahead := *p
	ahead.epoch++
	wantCode(t, "add ahead", ahead.add("refusals"), 47)
	wantCode(t, "commit ahead", ahead.commit(), 47)
	wantCode(t, "produce ahead", ahead.produce("refusals", "v"), 47)
	nobody := *p
	nobody.id = "nobody's"
	wantCode(t, "add of no id", nobody.add("refusals"), 49)
	wantCode(t, "commit of no id", nobody.commit(), 49)
	wantCode(t, "abort of no id", nobody.abort(), 0)
	wantCode(t, "produce of no id", nobody.produce("refusals", "v"), 48)
	nobody.id = ""
	wantCode(t, "add of an empty id", nobody.add("refusals"), 48)

	for _, timeout := range []int32{0, -1, 3_600_001} {
		wantCode(t, fmt.Sprintf("timeout %d", timeout), p.ask(timeout, -1, -1).ErrorCode, 50)
	}
	long := *p
	for len(long.id) <= 505 {
		long.id += "x"
	}
	wantCode(t, "an id too long", long.ask(1000, -1, -1).ErrorCode, 42)

	wantCode(t, "offsets without a transaction", p.offsets("g", at{topic: "in", offset: 1})[0], 48)
	abortable := *p
	abortable.end = 4
	wantCode(t, "offsets without a transaction, version 4", abortable.offsets("g", at{topic: "in", offset: 1})[0], 120)
	wantCode(t, "add offsets", p.addOffsets("g"), 0)
	text := fmt.Sprintf("%4097d", 1)
	got := p.offsets("g", at{topic: "in", offset: 1}, at{topic: "in", partition: -1, offset: 1}, at{topic: "no/topic", offset: 1},
		at{topic: "in", partition: 1, offset: -2}, at{topic: "in", partition: 2, offset: 1, metadata: &text})
	if !slices.Equal(got, []int16{0, 3, 3, 28, 12}) {
		t.Errorf("offsets: %v", got)
	}
	req := p.offsetsRequest("g", at{topic: "in", offset: 2})
	req.Generation, req.MemberID = 5, "nobody"
	if code := w.Ask(req).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code != 22 && code != 25 {
		t.Errorf("a member that there is not: code %d", code)
	}
	wantCode(t, "commit", p.commit(), 0)
	if got := committed(t, w, offsetRequest(5, "g", "in")); got[0] != "in/0=1" {
		t.Errorf("committed: %q", got)
	}
}

// Fencing: a newer producer ends the older one for good (KIP-98), whatever it
// tries, a bump of its epoch included (B11). Its records are nowhere.
func TestTxnFencing(t *testing.T) {
	r := rig.Start(t)
	w, w2 := r.Login(t, rig.Acme), r.Login(t, rig.Acme2)
	w.Ask(wireMetadata("fence"))
	zombie := beginTxn(t, w, "fence")
	wantCode(t, "add", zombie.add("fence"), 0)
	wantCode(t, "produce", zombie.produce("fence", "zombie"), 0)
	live := beginTxn(t, w2, "fence")
	if live.pid != zombie.pid || live.epoch != zombie.epoch+1 {
		t.Fatalf("%d/%d follows %d/%d", live.pid, live.epoch, zombie.pid, zombie.epoch)
	}
	wantCode(t, "zombie adds", zombie.add("fence"), 90)
	wantCode(t, "zombie adds offsets", zombie.addOffsets("g"), 90)
	wantCode(t, "zombie stages offsets", zombie.offsets("g", at{topic: "in", offset: 1})[0], 90)
	wantCode(t, "zombie produces", zombie.produce("fence", "zombie"), 90)
	wantCode(t, "zombie commits", zombie.commit(), 90)
	wantCode(t, "zombie aborts", zombie.abort(), 90)
	wantCode(t, "zombie bumps", zombie.bump(), 90)
	zombie.end = 1
	wantCode(t, "zombie commits, at a version without 90", zombie.commit(), 47)
	old := zombie.produceRequest("fence", "zombie")
	old.Version = 8
	got := w.Ask(old).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
	wantCode(t, "zombie produces, at a version without 90", got, 47)
	live.mustTxn("fence", "live")
	wantValues(t, w, "fence", "live")
	wantCode(t, "live bumps", live.bump(), 0)
	live.mustTxn("fence", "bumped")
	wantValues(t, w, "fence", "live", "bumped")
}

// A bump whose answer was lost is asked again as its predecessor, and gets what
// it got before (B11). The predecessor of a bump that named nobody is fenced.
func TestTxnBumpAgain(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	p := beginTxn(t, w, "again")
	old := *p
	wantCode(t, "bump", p.bump(), 0)
	again := old
	wantCode(t, "bump again", again.bump(), 0)
	if again.pid != p.pid || again.epoch != p.epoch {
		t.Errorf("again %d/%d, want %d/%d", again.pid, again.epoch, p.pid, p.epoch)
	}
	wantCode(t, "init", p.init(60_000), 0)
	fenced := again
	wantCode(t, "bump of the one before", fenced.bump(), 90)
}

// Two tenants with the same transactional id never meet.
func TestTxnTenants(t *testing.T) {
	r := rig.Start(t)
	a, b := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	a.Ask(wireMetadata("shared"))
	b.Ask(wireMetadata("shared"))
	pa, pb := beginTxn(t, a, "shared"), beginTxn(t, b, "shared")
	if pa.epoch != 0 || pb.epoch != 0 || pa.pid == pb.pid {
		t.Fatalf("%d/%d and %d/%d", pa.pid, pa.epoch, pb.pid, pb.epoch)
	}
	wantCode(t, "a adds", pa.add("shared"), 0)
	wantCode(t, "a produces", pa.produce("shared", "a"), 0)
	wantCode(t, "b adds", pb.add("shared"), 0)
	wantCode(t, "b produces", pb.produce("shared", "b"), 0)
	stolen := pa.on(b)
	wantCode(t, "b commits as a", stolen.commit(), 49)
	list := b.Ask(kmsg.NewPtrListTransactionsRequest()).(*kmsg.ListTransactionsResponse)
	if len(list.TransactionStates) != 1 || list.TransactionStates[0].ProducerID != pb.pid {
		t.Errorf("b lists %+v", list.TransactionStates)
	}
	wantCode(t, "a commits", pa.commit(), 0)
	wantCode(t, "b aborts", pb.abort(), 0)
	wantValues(t, a, "shared", "a")
	wantValues(t, b, "shared")
}

// What was staged outlives its connection: another one with the same producer
// goes on with it, and a batch that comes again over it is known.
func TestTxnOutlivesItsConnection(t *testing.T) {
	r := rig.Start(t)
	first, second := r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	first.Ask(wireMetadata("orphan"))
	p := beginTxn(t, first, "orphan")
	wantCode(t, "add", p.add("orphan"), 0)
	wantCode(t, "produce", p.produce("orphan", "a"), 0)
	again := p.produceRequest("orphan", "b")
	wantCode(t, "produce", p.produce("orphan", "b"), 0)
	_ = first.Close()
	rig.Eventually(t, "the end of the connection", func() bool { return r.Gateway.Connections() == 1 })
	if resp := second.Ask(again).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; resp.ErrorCode != 0 || resp.BaseOffset != -1 {
		t.Errorf("the batch again: %+v", resp)
	}
	q := p.on(second)
	wantCode(t, "produce", q.produce("orphan", "c"), 0)
	wantCode(t, "commit", q.commit(), 0)
	wantValues(t, second, "orphan", "a", "b", "c")
}
