package e2e

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
)

// A commit whose answer is lost landed: asked again it is 0, and nothing is
// written twice. It is never a fenced producer (B11).
func TestTxnLostCommitAnswer(t *testing.T) {
	var faults *inject.Proxy
	r := rig.Start(t, rig.WithFaults(t, &faults))
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("lost"))
	p := beginTxn(t, w, "lost")
	for _, then := range []string{"commit", "abort", "bump"} {
		before := wireEnd(t, w, "lost", 0)
		wantCode(t, "add", p.add("lost"), 0)
		wantCode(t, "produce", p.produce("lost", then), 0)
		lost := rig.LoseAnswer(t, faults, "/api/v1/transaction")
		wantCode(t, "commit, its answer lost", p.commit(), 15)
		lost()
		switch then {
		case "commit":
			wantCode(t, "commit again", p.commit(), 0)
			wantCode(t, "commit once more", p.commit(), 0)
		case "abort":
			wantCode(t, "abort of what is committed", p.abort(), 48)
		case "bump":
			wantCode(t, "bump", p.bump(), 0)
		}
		if end := wireEnd(t, w, "lost", 0); end != before+1 {
			t.Errorf("%s: the log grew by %d, want 1", then, end-before)
		}
		p.mustTxn("lost", "after")
	}
}

// A gateway that restarts has lost the open transaction. Each API says so in the
// code that clients answer with an abort, and the same producer goes on. Between
// transactions a restart is not noticed.
func TestTxnRestart(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("restart"))
	p := beginTxn(t, w, "restart")
	p.mustTxn("restart", "before")
	restart := func() {
		_ = p.w.Close() // or the gateway waits for it
		r.StopGateway(t)
		r.StartGateway(t)
		p.w = r.Login(t, rig.Acme)
	}
	restart()
	wantCode(t, "commit of what is committed", p.commit(), 0)
	p.mustTxn("restart", "between")

	for _, step := range []struct {
		what string
		do   func() int16
		code int16
	}{
		{"add", func() int16 { return p.add("restart") }, 59},
		{"add offsets", func() int16 { return p.addOffsets("g") }, 59},
		{"offsets", func() int16 { return p.offsets("g", at{topic: "in", offset: 1})[0] }, 22},
		{"produce", func() int16 { return p.produce("restart", "lost") }, 48},
		{"commit", func() int16 { return p.commit() }, 59},
	} {
		wantCode(t, "add", p.add("restart"), 0)
		wantCode(t, "produce", p.produce("restart", "lost"), 0)
		restart()
		wantCode(t, step.what+" after the restart", step.do(), step.code)
		wantCode(t, step.what+" again", step.do(), step.code)
		restart() // what is lost stays lost
		wantCode(t, step.what+" after another restart", step.do(), step.code)
		wantCode(t, "abort", p.abort(), 0)
		p.mustTxn("restart", step.what)
	}
	wantCode(t, "add", p.add("restart"), 0)
	restart()
	wantCode(t, "abort at once", p.abort(), 0)
	p.mustTxn("restart", "aborted")
	wantCode(t, "add", p.add("restart"), 0)
	restart()
	wantCode(t, "bump at once", p.bump(), 0)
	p.mustTxn("restart", "bumped")
	wantValues(t, p.w, "restart", "before", "between", "add", "add offsets", "offsets", "produce", "commit", "aborted", "bumped")
}

// A producer whose batch was refused with its transaction gives it up, and goes
// on behind it in the next one, on the same connection and at the same epoch.
func TestTxnGoesOnBehindARefusedBatch(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("behind"))
	p := beginTxn(t, w, "behind")
	p.mustTxn("behind", "before")
	wantCode(t, "add", p.add("behind"), 0)
	_ = w.Close() // or the gateway waits for it
	r.StopGateway(t)
	r.StartGateway(t)
	p.w = r.Login(t, rig.Acme)
	for range 2 {
		wantCode(t, "a batch of what is lost", p.produce("behind", "given up"), 48)
		p.seq["behind"]++
	}
	wantCode(t, "abort", p.abort(), 0)
	p.mustTxn("behind", "next")
	wantCode(t, "a batch of no transaction", p.produce("behind", "given up"), 48)
	p.seq["behind"]++
	p.mustTxn("behind", "last")
	wantValues(t, p.w, "behind", "before", "next", "last")
}

// A transaction that runs out of time can only be aborted; a late commit is 48,
// never 0.
func TestTxnExpires(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("expiry"))
	p := beginTxn(t, w, "expiry")
	wantCode(t, "init", p.init(1), 0)
	wantCode(t, "add", p.add("expiry"), 0)
	rig.Eventually(t, "the end of the time", func() bool { return p.add("expiry") == 59 })
	wantCode(t, "produce", p.produce("expiry", "late"), 48)
	wantCode(t, "offsets", p.offsets("g", at{topic: "in", offset: 1})[0], 22)
	wantCode(t, "commit", p.commit(), 48)
	wantCode(t, "commit again", p.commit(), 48)
	wantCode(t, "abort", p.abort(), 0)
	wantCode(t, "init", p.init(60_000), 0)
	p.mustTxn("expiry", "on time")
	wantValues(t, w, "expiry", "on time")
}

// A commit that the cell does not take leaves everything for the retry.
func TestTxnCellAway(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("away"))
	p := beginTxn(t, w, "away")
	wantCode(t, "add", p.add("away"), 0)
	wantCode(t, "produce", p.produce("away", "kept"), 0)
	wantCode(t, "add offsets", p.addOffsets("g"), 0)
	if codes := p.offsets("g", at{topic: "in", offset: 3}); codes[0] != 0 {
		t.Errorf("offsets: %v", codes)
	}
	r.StopCell(t)
	wantCode(t, "commit without a cell", p.commit(), 15)
	wantCode(t, "commit without a cell", p.commit(), 15)
	r.StartCell(t)
	wantCode(t, "commit", p.commit(), 0)
	wantValues(t, w, "away", "kept")
	if got := committed(t, w, offsetRequest(5, "g", "in")); got[0] != "in/0=3" {
		t.Errorf("committed: %q", got)
	}
}

// What there is to see of a transaction (KIP-664).
func TestTxnDescriptions(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("seen"))
	p, idle := beginTxn(t, w, "seen"), beginTxn(t, r.Login(t, rig.Acme), "idle")
	wantCode(t, "add", p.add("seen"), 0)
	wantCode(t, "produce", p.produce("seen", "a", "b"), 0)
	describe := func() []kmsg.DescribeTransactionsResponseTransactionState {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{"seen", "idle", "nobody's"}
		return p.w.Ask(req).(*kmsg.DescribeTransactionsResponse).TransactionStates
	}
	got := describe()
	if len(got) != 3 || got[0].State != "Ongoing" || got[0].ProducerID != p.pid || got[0].TimeoutMillis != 60_000 || got[0].StartTimestamp <= 0 ||
		len(got[0].Topics) != 1 || got[0].Topics[0].Topic != "seen" || !slices.Equal(got[0].Topics[0].Partitions, []int32{0}) {
		t.Errorf("seen: %+v", got[0])
	}
	if got[1].State != "Empty" || got[1].ProducerID != idle.pid || got[2].ErrorCode != 105 {
		t.Errorf("idle and nobody's: %+v", got[1:])
	}
	list := func(version int16, states []string, pids []int64, age int64) []string {
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version, req.StateFilters, req.ProducerIDFilters, req.DurationFilterMillis = version, states, pids, age
		var ids []string
		for _, s := range w.Ask(req).(*kmsg.ListTransactionsResponse).TransactionStates {
			ids = append(ids, s.TransactionalID+" "+s.TransactionState)
		}
		return ids
	}
	for version := int16(0); version <= 1; version++ {
		if got := list(version, nil, nil, -1); !slices.Equal(got, []string{"idle Empty", "seen Ongoing"}) {
			t.Errorf("v%d: %q", version, got)
		}
		if got := list(version, []string{"Ongoing", "No such"}, nil, -1); !slices.Equal(got, []string{"seen Ongoing"}) {
			t.Errorf("v%d by state: %q", version, got)
		}
		if got := list(version, nil, []int64{idle.pid}, -1); !slices.Equal(got, []string{"idle Empty"}) {
			t.Errorf("v%d by producer: %q", version, got)
		}
	}
	if got := list(1, nil, nil, 3_600_000); len(got) != 0 {
		t.Errorf("older than an hour: %q", got)
	}
	req := kmsg.NewPtrDescribeProducersRequest()
	for _, name := range []string{"seen", "not-there", "not a name"} {
		rt := kmsg.NewDescribeProducersRequestTopic()
		rt.Topic, rt.Partitions = name, []int32{0, 99}
		req.Topics = append(req.Topics, rt)
	}
	resp := w.Ask(req).(*kmsg.DescribeProducersResponse)
	parts := resp.Topics[0].Partitions
	if len(parts[0].ActiveProducers) != 1 || parts[0].ActiveProducers[0].ProducerID != p.pid || parts[0].ActiveProducers[0].LastSequence != 1 {
		t.Errorf("producers: %+v", parts[0])
	}
	if parts[1].ErrorCode != 3 || resp.Topics[1].Partitions[0].ErrorCode != 3 || resp.Topics[2].Partitions[0].ErrorCode != 17 {
		t.Errorf("where nothing is: %+v", resp)
	}
	wantCode(t, "commit", p.commit(), 0)
	if got := describe(); got[0].State != "CompleteCommit" {
		t.Errorf("committed: %+v", got[0])
	}
	_ = w.Close()
	_ = idle.w.Close()
	r.StopGateway(t)
	r.StartGateway(t)
	p.w = r.Login(t, rig.Acme)
	if got := describe(); got[0].State != "CompleteCommit" || got[0].ProducerID != p.pid || got[2].ErrorCode != 105 {
		t.Errorf("after a restart: %+v", got)
	}
}

// Offsets that an open transaction may move are not stable (KIP-447): 88 to a
// consumer that asks for stable ones, until the transaction ends.
func TestTxnUnstableOffsets(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	mustCommit(t, w, "stable", at{topic: "in", offset: 1}, at{topic: "in", partition: 1, offset: 1})
	for _, commit := range []bool{false, true} {
		p := beginTxn(t, w, "stable")
		wantCode(t, "add offsets", p.addOffsets("stable"), 0)
		if codes := p.offsets("stable", at{topic: "in", offset: 5}); codes[0] != 0 {
			t.Errorf("offsets: %v", codes)
		}
		stable := offsetRequest(7, "stable", "in")
		stable.RequireStable = true
		if got := committed(t, w, stable); !slices.Equal(got, []string{"in/0=-1 code 88", "in/1=1", "in/2=-1"}) {
			t.Errorf("while it is open: %q", got)
		}
		all := offsetRequest(7, "stable")
		all.RequireStable = true
		if got := committed(t, w, all); !slices.Equal(got, []string{"in/0=-1 code 88", "in/1=1"}) {
			t.Errorf("all, while it is open: %q", got)
		}
		if got := committed(t, w, offsetRequest(7, "stable", "in")); got[0] != "in/0=1" {
			t.Errorf("who does not ask for stable ones: %q", got)
		}
		want := "in/0=1"
		if commit {
			want = "in/0=5"
		}
		wantCode(t, "end", p.endWith(commit), 0)
		if got := committed(t, w, stable); got[0] != want {
			t.Errorf("after commit %v: %q, want %s", commit, got, want)
		}
	}
}
