package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

func mustPop(t testing.TB, b *Broker, tenant Tenant, r PopRequest) PopResult {
	t.Helper()
	got, err := b.Pop(context.Background(), tenant, r)
	if err != nil {
		t.Fatalf("pop: %v", err)
	}
	return got
}

func ackOf(r *PopResult, i int, status AckStatus) Ack {
	m := &r.Messages[i]
	return Ack{Partition: m.PartitionID, TransactionID: recordID(&m.Record), Lease: r.Lease, Status: status}
}

func mustAck(t testing.TB, b *Broker, tenant Tenant, acks ...Ack) []AckResult {
	t.Helper()
	got, err := b.Ack(context.Background(), tenant, acks)
	if err != nil {
		t.Fatalf("ack: %v", err)
	}
	return got
}

func delivered(r PopResult) string {
	var b strings.Builder
	for i := range r.Messages {
		m := &r.Messages[i]
		fmt.Fprintf(&b, " %s/%d:%s", m.Partition, m.Offset, m.Payload)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// TestPopWakes: a parked pop is woken by the queue's making, by an append, by
// records that are given back, and by the end of a lease; and it ends with its
// caller and with the broker.
func TestPopWakes(t *testing.T) {
	b := open(t, Config{})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	ask := PopRequest{Queue: "q", Wait: 30 * time.Second, Batch: 10}
	type answer struct {
		r   PopResult
		err error
	}
	park := func(ctx context.Context) <-chan answer {
		t.Helper()
		done := make(chan answer, 1)
		go func() {
			r, err := b.Pop(ctx, tenantA, ask)
			done <- answer{r, err}
		}()
		awaitTrue(t, "the pop is parked", func() bool {
			b.catalog.mu.RLock()
			defer b.catalog.mu.RUnlock()
			return len(b.catalog.waiters.set) > 0
		})
		return done
	}
	wantNext := func(done <-chan answer, what, text string) PopResult {
		t.Helper()
		got := <-done
		if got.err != nil {
			t.Fatalf("%s: %v", what, got.err)
		}
		want(t, what, delivered(got.r), text)
		return got.r
	}
	done := park(ctx)
	mustPush(t, b, tenantA, items("q", "0", "a"))
	r := wantNext(done, "the queue was made", "0/0:a")
	mustAck(t, b, tenantA, ackOf(&r, 0, Completed))

	done = park(ctx)
	mustPush(t, b, tenantA, items("q", "1", "b"))
	r = wantNext(done, "another partition", "1/0:b")

	done = park(ctx)
	want(t, "given back", mustAck(t, b, tenantA, ackOf(&r, 0, RetryLater))[0].Released, true)
	r = wantNext(done, "given back", "1/0:b")
	mustAck(t, b, tenantA, ackOf(&r, 0, Completed))

	if _, err := b.Configure(ctx, tenantA, "q", func(o *Options) error { o.LeaseTime = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	mustPush(t, b, tenantA, items("q", "0", "c"))
	want(t, "held", delivered(mustPop(t, b, tenantA, PopRequest{Queue: "q"})), "0/1:c")
	wantNext(park(ctx), "the lease is over", "0/1:c")

	done = park(ctx)
	leave()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the caller left: %v", got.err)
	}
	done = park(context.Background())
	closeBroker(t, b)
	if got := <-done; !errors.Is(got.err, ErrClosed) {
		t.Errorf("the broker is closed: %v", got.err)
	}
}

// TestAckSurvives cuts the power behind every answer.
func TestAckSurvives(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := open(t, Config{FS: fs})
	cut := func() {
		t.Helper()
		image := fs.CrashClone(vfs.CrashCloneCfg{})
		closeBroker(t, b)
		fs = image
		b = open(t, Config{FS: fs})
	}
	ask := PopRequest{Queue: "q", Group: "g", Batch: 10}
	if _, err := b.Configure(context.Background(), tenantA, "q", func(o *Options) error { o.RetryLimit = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	mustPush(t, b, tenantA, items("q", "0", "a", "b", "c", "d"))
	r := mustPop(t, b, tenantA, ask)
	acks := []Ack{ackOf(&r, 1, Completed), ackOf(&r, 2, FailedOnce)}
	for i := range acks {
		acks[i].Group, acks[i].Error = "g", "why"
	}
	mustAck(t, b, tenantA, acks...)
	cut()
	want(t, "an old lease", mustAck(t, b, tenantA, acks[0])[0].Refused, ackNoLease)
	r = mustPop(t, b, tenantA, ask)
	want(t, "after a verdict", delivered(r), "0/0:a 0/2:c 0/3:d")
	want(t, "failures are counted", r.Messages[1].Retries, 1)
	cut()
	r = mustPop(t, b, tenantA, ask)
	want(t, "a lease is not kept", delivered(r), "0/0:a 0/2:c 0/3:d")
	last := ackOf(&r, 1, FailedOnce)
	last.Group, last.Error = "g", "why"
	want(t, "dead", mustAck(t, b, tenantA, last)[0].Dead, true)
	cut()
	dead, total, err := b.DeadLetters(tenantA, DeadQuery{Queue: "q", Limit: 10})
	if err != nil || total != 1 || string(dead[0].Payload) != "c" || dead[0].Error != "why" || dead[0].Retries != 2 {
		t.Errorf("dead letters: %+v, %d, %v", dead, total, err)
	}
	ask.Commit = true
	want(t, "the rest", delivered(mustPop(t, b, tenantA, ask)), "0/0:a 0/3:d")
	cut()
	want(t, "settled at delivery", delivered(mustPop(t, b, tenantA, ask)), "")
	if n, err := b.DeleteGroup(context.Background(), tenantA, "g", "", true); n != 1 || err != nil {
		t.Errorf("delete: %d, %v", n, err)
	}
	cut()
	ask.Commit = false
	want(t, "anew", delivered(mustPop(t, b, tenantA, ask)), "0/0:a 0/1:b 0/2:c 0/3:d")
}

// TestNativeTenants: ids of one tenant mean nothing to another.
func TestNativeTenants(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	mustPush(t, b, tenantB, items("q", "0", "b"))
	r := mustPop(t, b, tenantA, PopRequest{Queue: "q"})
	want(t, "refused", mustAck(t, b, tenantB, ackOf(&r, 0, Completed))[0].Refused, ackNoPartition)
	want(t, "renewed", b.Renew(tenantB, r.Lease).Partitions, 0)
	txn, err := b.Transaction(context.Background(), tenantB, items("q", "0", "c"), nil, ackOf(&r, 0, Completed))
	if err != nil || txn.Success || txn.Reason != ReasonAckRefused || txn.FailedIndex != 1 {
		t.Errorf("transaction: %+v, %v", txn, err)
	}
	want(t, "its own", delivered(mustPop(t, b, tenantB, PopRequest{Queue: "q", Batch: 10})), "0/0:b")
	want(t, "taken", mustAck(t, b, tenantA, ackOf(&r, 0, Completed))[0].Refused, "")
}

// TestPopBounds: what a call may not ask for.
func TestPopBounds(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	for i, c := range []struct {
		ask  PopRequest
		want error
	}{
		{PopRequest{}, ErrBadRequest},
		{PopRequest{Queue: "q", Conflate: true}, ErrBadRequest},
		{PopRequest{Queue: "q", Group: "g", Conflate: true, Commit: true}, ErrBadRequest},
		{PopRequest{Queue: "q", Group: strings.Repeat("g", MaxGroupBytes+1)}, ErrNameTooLong},
	} {
		if _, err := b.Pop(context.Background(), tenantA, c.ask); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
	if _, err := b.Ack(context.Background(), tenantA, make([]Ack, MaxAcks+1)); !errors.Is(err, ErrBadRequest) {
		t.Errorf("too many acks: %v", err)
	}
	for i := range MaxGroups {
		b.machine.deliveries.groupOf(b.catalog.find(tenantA, "q"), fmt.Sprint(i), subscription{})
	}
	if _, err := b.Pop(context.Background(), tenantA, PopRequest{Queue: "q", Group: "more"}); !errors.Is(err, ErrBadRequest) {
		t.Errorf("one group too many: %v", err)
	}
}

// TestDeliveryModel runs random native calls against the broker and a naive
// twin, with power cuts, retention and deletes in between.
func TestDeliveryModel(t *testing.T) {
	steps := 25
	if os.Getenv("QE_FULL") == "1" {
		steps = 400
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := &deliveryRun{clock: newClock(), fs: vfs.NewCrashableMem(), twin: map[string]*laneTwin{}, groups: map[string]*groupTwin{}}
		m.open(rt)
		defer func() { _ = m.b.Close() }()
		for range steps {
			m.step(rt)
		}
	})
}

const twinLease = 20 // s

type deliveryRun struct {
	clock  *testClock
	fs     *vfs.MemFS
	b      *Broker
	serial int
	twin   map[string]*laneTwin  // by partition
	groups map[string]*groupTwin // by group and partition
	held   []holdTwin
}

// laneTwin is a partition: its payloads from offset 0 on, and where it begins.
type laneTwin struct {
	payloads []string
	at       []int64 // µs
	start    int64
}

// groupTwin is a group's place in a partition.
type groupTwin struct {
	settled map[int64]bool
	fails   map[int64]int64
	lease   LeaseID
	until   int64 // µs
}

// holdTwin is what a pop handed out.
type holdTwin struct {
	group string
	r     PopResult
}

func (m *deliveryRun) open(rt *rapid.T) {
	b, err := Open(Config{FS: m.fs, Dir: "data", SegmentBytes: 16 << 10, Clock: m.clock.now, RetentionInterval: math.MaxInt64})
	if err != nil {
		rt.Fatal(err)
	}
	m.b = b
	if _, err := b.Configure(context.Background(), tenantA, "q", func(o *Options) error {
		o.LeaseTime, o.RetryLimit, o.RetentionEnabled, o.RetentionSeconds = twinLease, 2, true, 100
		return nil
	}); err != nil {
		rt.Fatal(err)
	}
}

func (m *deliveryRun) now() int64 { return m.clock.now().UnixMicro() }

func (m *deliveryRun) place(group, partition string) *groupTwin {
	key := group + "/" + partition
	if m.groups[key] == nil {
		m.groups[key] = &groupTwin{settled: map[int64]bool{}, fails: map[int64]int64{}}
	}
	return m.groups[key]
}

// open are the offsets a group has still to get, in order.
func (m *deliveryRun) unsettled(group, partition string) (list []int64) {
	l := m.twin[partition]
	if l == nil {
		return nil
	}
	g := m.place(group, partition)
	for o := l.start; o < int64(len(l.payloads)); o++ {
		if !g.settled[o] {
			list = append(list, o)
		}
	}
	return list
}

func (m *deliveryRun) step(rt *rapid.T) {
	switch n := rapid.IntRange(0, 99).Draw(rt, "step"); {
	case n < 25:
		m.push(rt)
	case n < 55:
		m.pop(rt)
	case n < 80:
		m.ack(rt)
	case n < 84:
		m.renew(rt)
	case n < 92:
		m.clock.pass(time.Duration(rapid.IntRange(0, 30_000).Draw(rt, "ms")) * time.Millisecond)
	case n < 95:
		m.retain(rt)
	default:
		m.cut(rt)
	}
}

func (m *deliveryRun) push(rt *rapid.T) {
	partition := rapid.SampledFrom([]string{"0", "1", "2"}).Draw(rt, "partition")
	var payloads []string
	for range rapid.IntRange(1, 5).Draw(rt, "count") {
		m.serial++
		payloads = append(payloads, fmt.Sprint(m.serial))
	}
	if _, err := m.b.Push(context.Background(), tenantA, items("q", partition, payloads...), nil); err != nil {
		rt.Fatal(err)
	}
	l := m.twin[partition]
	if l == nil {
		l = new(laneTwin)
		m.twin[partition] = l
	}
	l.payloads = append(l.payloads, payloads...)
	for range payloads {
		l.at = append(l.at, m.now())
	}
}

func (m *deliveryRun) pop(rt *rapid.T) {
	ask := PopRequest{
		Queue: "q", Group: rapid.SampledFrom([]string{"g", "h"}).Draw(rt, "group"),
		Batch: rapid.IntRange(1, 6).Draw(rt, "batch"), Partitions: rapid.IntRange(1, 3).Draw(rt, "partitions"),
		Commit: rapid.IntRange(0, 9).Draw(rt, "commit") == 0,
	}
	r, err := m.b.Pop(context.Background(), tenantA, ask)
	if err != nil {
		rt.Fatal(err)
	}
	got := map[string][]int64{}
	for i := range r.Messages {
		msg := &r.Messages[i]
		got[msg.Partition] = append(got[msg.Partition], msg.Offset)
		if p := m.twin[msg.Partition].payloads[msg.Offset]; p != string(msg.Payload) {
			rt.Fatalf("%s/%d is %s, want %s", msg.Partition, msg.Offset, msg.Payload, p)
		}
		if f := m.place(ask.Group, msg.Partition).fails[msg.Offset]; f != msg.Retries {
			rt.Fatalf("%s/%d was failed %d times, the twin says %d", msg.Partition, msg.Offset, msg.Retries, f)
		}
	}
	if len(got) > ask.Partitions || len(r.Messages) > ask.Batch {
		rt.Fatalf("%d messages of %d partitions for %+v", len(r.Messages), len(got), ask)
	}
	free, left := 0, ask.Batch-len(r.Messages)
	for partition := range m.twin {
		g := m.place(ask.Group, partition)
		open := m.unsettled(ask.Group, partition)
		if g.until > m.now() {
			if len(got[partition]) > 0 {
				rt.Fatalf("partition %s is held until %d and was delivered at %d", partition, g.until, m.now())
			}
			continue
		}
		n := len(got[partition])
		if n > len(open) || !slices.Equal(got[partition], open[:n]) {
			rt.Fatalf("partition %s: %v of %v", partition, got[partition], open)
		}
		if n > 0 && n < len(open) && left > 0 {
			rt.Fatalf("partition %s: %d of %d, and there was room", partition, n, len(open))
		}
		if len(open) > 0 && n == 0 {
			free++
		}
		if n == 0 {
			continue
		}
		if ask.Commit {
			for _, o := range got[partition] {
				g.settled[o] = true
				delete(g.fails, o)
			}
			continue
		}
		g.lease, g.until = r.Lease, m.now()+twinLease*1e6
	}
	if free > 0 && left > 0 && len(got) < ask.Partitions {
		rt.Fatalf("%d partitions had more, and there was room", free)
	}
	if len(r.Messages) > 0 && !ask.Commit {
		m.held = append(m.held, holdTwin{ask.Group, r})
	}
}

func (m *deliveryRun) ack(rt *rapid.T) {
	if len(m.held) == 0 {
		return
	}
	h := m.held[rapid.IntRange(0, len(m.held)-1).Draw(rt, "hold")]
	var acks []Ack
	var about []int
	for i := range h.r.Messages {
		if rapid.Bool().Draw(rt, "in") {
			status := AckStatus(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3}).Draw(rt, "status"))
			a := ackOf(&h.r, i, status)
			a.Group = h.group
			acks, about = append(acks, a), append(about, i)
		}
	}
	valid := make([]bool, len(acks))
	for k, i := range about {
		g := m.place(h.group, h.r.Messages[i].Partition)
		valid[k] = g.lease == h.r.Lease && g.until > m.now()
	}
	inTxn := rapid.Bool().Draw(rt, "txn")
	if inTxn {
		r, err := m.b.Transaction(context.Background(), tenantA, nil, nil, acks...)
		if err != nil || r.Success == slices.Contains(valid, false) {
			rt.Fatalf("transaction: %+v, %v, of %v", r, err, valid)
		}
		if !r.Success {
			return
		}
	} else {
		results, err := m.b.Ack(context.Background(), tenantA, acks)
		if err != nil {
			rt.Fatal(err)
		}
		for k := range results {
			if (results[k].Refused == "") != valid[k] {
				rt.Fatalf("ack %d: %+v, the twin says %v", k, results[k], valid[k])
			}
		}
	}
	m.settle(h, acks, about, valid)
}

// settle does to the twin what verdicts do.
func (m *deliveryRun) settle(h holdTwin, acks []Ack, about []int, valid []bool) {
	over := map[*groupTwin]bool{}
	for k, i := range about {
		msg := &h.r.Messages[i]
		g := m.place(h.group, msg.Partition)
		if !valid[k] || g.settled[msg.Offset] {
			continue
		}
		switch acks[k].Status {
		case Completed, DeadLetter:
			g.settled[msg.Offset] = true
		case RetryLater:
			over[g] = true
		case FailedOnce:
			if g.fails[msg.Offset]++; g.fails[msg.Offset] > 2 {
				g.settled[msg.Offset] = true
			} else {
				over[g] = true
			}
		}
		if g.settled[msg.Offset] {
			delete(g.fails, msg.Offset)
		}
	}
	for i := range h.r.Messages {
		g := m.place(h.group, h.r.Messages[i].Partition)
		if g.lease != h.r.Lease {
			continue
		}
		done := true
		for j := range h.r.Messages {
			if h.r.Messages[j].Partition == h.r.Messages[i].Partition && !g.settled[h.r.Messages[j].Offset] {
				done = false
			}
		}
		if done || over[g] {
			g.until, g.lease = 0, LeaseID{}
		}
	}
}

func (m *deliveryRun) renew(rt *rapid.T) {
	if len(m.held) == 0 {
		return
	}
	h := m.held[rapid.IntRange(0, len(m.held)-1).Draw(rt, "hold")]
	n := 0
	for _, g := range m.groups {
		if g.lease == h.r.Lease && g.until > m.now() {
			g.until = m.now() + twinLease*1e6
			n++
		}
	}
	if got := m.b.Renew(tenantA, h.r.Lease).Partitions; got != n {
		rt.Fatalf("renewed %d, the twin says %d", got, n)
	}
}

func (m *deliveryRun) retain(rt *rapid.T) {
	if err := m.b.Tidy(context.Background()); err != nil {
		rt.Fatal(err)
	}
	for name, l := range m.twin {
		for l.start < int64(len(l.at)) && l.at[l.start] < m.now()-100e6 {
			for _, group := range []string{"g", "h"} {
				m.place(group, name).settled[l.start] = true
				delete(m.place(group, name).fails, l.start)
			}
			l.start++
		}
	}
}

// cut loses the power: everything answered is there, no lease is.
func (m *deliveryRun) cut(rt *rapid.T) {
	image := m.fs.CrashClone(vfs.CrashCloneCfg{})
	if err := m.b.Close(); err != nil {
		rt.Fatal(err)
	}
	m.fs = image
	m.open(rt)
	for _, g := range m.groups {
		g.lease, g.until = LeaseID{}, 0
	}
}
