package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// bubble runs a test in a bubble of its own time.
func bubble(t *testing.T, fn func(t *testing.T, r *rig), opts ...func(*offsets.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, newRig(t, opts...)) })
}

// What is written, to the letter.
func TestCommitWrites(t *testing.T) {
	r := newRig(t, func(c *offsets.Config) { c.Clock = func() time.Time { return time.UnixMilli(1790000000000) } })
	e := []offsets.Entry{
		{Place: offsets.Place{Topic: "orders", Partition: 3}, Offset: 9, Metadata: "m\"\x01é", QueueID: "7b1f"},
		{Place: offsets.Place{Topic: "orders", Partition: 4}, Offset: -1},
	}
	if n, err := r.Commit(t.Context(), r.as("acme.1"), "a:b", 1, func() string { return "consumer" }, e); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	want := map[string]string{
		"qk:group:a%3Ab:orders:3": `{"offset":9,"metadata":"m\"\u0001é","ts":1790000000000,"qid":"7b1f"}`,
		"qk:group:a%3Ab:orders:4": `{"offset":-1,"metadata":"","ts":1790000000000}`,
		"qk:groups:a%3Ab":         `{"pt":"consumer","ts":1790000000000}`,
	}
	for key, value := range want {
		if got := r.cell.rows["acme"][key]; got != value {
			t.Errorf("%s is %s, want %s", key, got, value)
		}
	}
	if len(r.cell.rows["acme"]) != len(want) || r.cell.count() != 2 {
		t.Errorf("%d rows in %d calls", len(r.cell.rows["acme"]), r.cell.count())
	}
}

// While one call is under way the commits that come share the next, in their
// order: for each place the last one wins, and nobody is answered before.
func TestWaitingCommitsShareACall(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0)) // the group is listed
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		var waiting []<-chan outcome
		for i := range 50 {
			waiting = append(waiting, r.commit(t.Context(), "acme.1", "g", entries(int64(100+i), int32(i%40))))
			synctest.Wait()
		}
		g.letGo <- nil
		if got := <-first; got != (outcome{1, nil}) {
			t.Error(got)
		}
		synctest.Wait()
		shared := <-g.reached
		if n := len(shared.keys()); n != 40 {
			t.Errorf("%d keys in the shared call", n)
		}
		for i, w := range waiting {
			if len(w) > 0 {
				t.Errorf("commit %d was answered before its write", i)
			}
		}
		g.letGo <- nil
		for _, w := range waiting {
			if got := <-w; got != (outcome{1, nil}) {
				t.Error(got)
			}
		}
		for p := range 40 {
			want := int64(100 + p)
			if p < 10 {
				want += 40
			}
			if got := r.cell.offset(t, "acme", key("g", p)); got != want {
				t.Errorf("partition %d is at %d, want %d", p, got, want)
			}
		}
		if n := len(r.cell.commits()); n != 3 {
			t.Errorf("%d calls for 52 commits", n)
		}
	})
}

// Another credential of the tenant waits its turn, and is never sent with
// somebody else's bearer. What it is refused ends only its own.
func TestCredentialsDoNotShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) {
			f.before = func(c call) error {
				if err := g.hold(c); err != nil {
					return err
				}
				if c.bearer == "acme.2" {
					return status(403)
				}
				return nil
			}
		})
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		var one, two []<-chan outcome
		for i := range 6 {
			one = append(one, r.commit(t.Context(), "acme.1", "g", entries(20, int32(2*i))))
			synctest.Wait()
			two = append(two, r.commit(t.Context(), "acme.2", "g", entries(30, int32(2*i+1))))
			synctest.Wait()
		}
		for _, want := range []struct {
			bearer string
			writes int
		}{{"acme.1", 6}, {"acme.2", 6}} {
			g.letGo <- nil
			if c := <-g.reached; c.bearer != want.bearer || len(c.keys()) != want.writes {
				t.Errorf("a call of %s with %d writes, want %+v", c.bearer, len(c.keys()), want)
			}
			if len(g.reached) > 0 {
				t.Error("two calls of one group at a time")
			}
		}
		g.letGo <- nil
		<-first
		for i := range 6 {
			if got := <-one[i]; got != (outcome{1, nil}) {
				t.Error(got)
			}
			if got := <-two[i]; !refused(got.err) || got.written != 0 {
				t.Error(got)
			}
		}
	})
}

func refused(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Status == 403
}

// For one place the order is that of arrival, across credentials too: a commit
// does not go with earlier ones of its credential past somebody who waits with
// the same place.
func TestOrderAcrossCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		all := []<-chan outcome{r.commit(t.Context(), "acme.1", "g", entries(10, 9))}
		<-g.reached
		for _, c := range []struct {
			bearer string
			at     int64
			p      int32
		}{{"acme.1", 1, 0}, {"acme.2", 2, 1}, {"acme.1", 3, 1}, {"acme.1", 4, 2}, {"acme.2", 5, 2}, {"acme.1", 6, 1}} {
			all = append(all, r.commit(t.Context(), c.bearer, "g", entries(c.at, c.p)))
			synctest.Wait()
		}
		var sent []string
		for len(sent) < 3 {
			g.letGo <- nil
			c := <-g.reached
			sent = append(sent, fmt.Sprint(c.bearer, " ", strings.Join(c.keys(), " ")))
		}
		g.letGo <- nil
		for _, c := range all {
			if got := <-c; got.err != nil {
				t.Error(got.err)
			}
		}
		want := []string{
			"acme.1 qk:group:g:t:0 qk:group:g:t:2",
			"acme.2 qk:group:g:t:1 qk:group:g:t:2",
			"acme.1 qk:group:g:t:1",
		}
		if !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
		if a, b := r.cell.offset(t, "acme", key("g", 1)), r.cell.offset(t, "acme", key("g", 2)); a != 6 || b != 5 {
			t.Errorf("the last are %d and %d, want 6 and 5", a, b)
		}
	})
}

// Groups do not wait for each other, nor do tenants with the same group.
func TestGroupsAreIndependent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for _, c := range []string{"acme.1", "umbrella.1"} {
			r.mustCommit(c, "g", entries(1, 0))
			r.mustCommit(c, "h", entries(1, 0))
		}
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		var all []<-chan outcome
		for i, at := range []string{"acme.1 g", "acme.1 h", "umbrella.1 g", "umbrella.1 h"} {
			bearer, group, _ := strings.Cut(at, " ")
			all = append(all, r.commit(t.Context(), bearer, group, entries(int64(10*(i+1)), 0)))
		}
		synctest.Wait()
		if n := len(g.reached); n != 4 {
			t.Errorf("%d calls are under way, want 4", n)
		}
		for range all {
			g.letGo <- nil
		}
		for _, c := range all {
			<-c
		}
		for at, want := range map[[2]string]int64{{"acme", "g"}: 10, {"acme", "h"}: 20, {"umbrella", "g"}: 30, {"umbrella", "h"}: 40} {
			if got := r.cell.offset(t, at[0], key(at[1], 0)); got != want {
				t.Errorf("%v is at %d, want %d", at, got, want)
			}
		}
	})
}

// A lost answer is everybody's who shared the call, and nobody's who did not.
func TestLostAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g, n := newGate(), 0
		r.cell.set(func(f *fakeCell) {
			f.before = g.hold
			f.after = func(call, []proxyclient.KVResult) error {
				if n++; n == 2 {
					return errDown
				}
				return nil
			}
		})
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		var shared []<-chan outcome
		for p := range 3 {
			shared = append(shared, r.commit(t.Context(), "acme.1", "g", entries(20, int32(p))))
			synctest.Wait()
		}
		g.letGo <- nil
		<-g.reached
		later := r.commit(t.Context(), "acme.1", "g", entries(30, 0))
		synctest.Wait()
		g.letGo <- nil
		<-g.reached
		g.letGo <- nil
		if got := <-first; got.err != nil {
			t.Error(got.err)
		}
		for _, c := range shared {
			if got := <-c; !errors.Is(got.err, error(errDown)) || got.written != 0 {
				t.Error(got)
			}
		}
		if got := <-later; got.err != nil {
			t.Error(got.err)
		}
	})
}

// A waiter that leaves takes its own commit along and no other, whether it is in
// the line, or was to make the call for all, or is making it.
func TestLeavingWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		leads, leaveLead := context.WithCancel(t.Context())
		first := r.commit(leads, "acme.1", "g", entries(10, 0))
		<-g.reached
		ctx, leave := context.WithCancel(t.Context())
		gone := r.commit(ctx, "acme.1", "g", entries(20, 1)) // it would make the next call
		synctest.Wait()
		stays := r.commit(t.Context(), "acme.1", "g", entries(30, 2))
		synctest.Wait()
		leave()
		if got := <-gone; !errors.Is(got.err, context.Canceled) {
			t.Error(got)
		}
		leaveLead() // its call is under way
		g.letGo <- nil
		if got := <-first; got != (outcome{1, nil}) {
			t.Error(got)
		}
		<-g.reached
		g.letGo <- nil
		if got := <-stays; got != (outcome{1, nil}) {
			t.Error(got)
		}
		if a, b, c := r.cell.offset(t, "acme", key("g", 0)), r.cell.offset(t, "acme", key("g", 1)), r.cell.offset(t, "acme", key("g", 2)); a != 10 || b != -1 || c != 30 {
			t.Errorf("stored %d, %d, %d", a, b, c)
		}
	})
}

// Whoever is in a call that is under way has the outcome of that call, though
// its client leaves meanwhile.
func TestLeavingDuringItsCall(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		leader := r.commit(t.Context(), "acme.1", "g", entries(20, 1))
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		rides := r.commit(ctx, "acme.1", "g", entries(30, 2))
		synctest.Wait()
		g.letGo <- nil
		<-g.reached
		leave()
		synctest.Wait()
		if len(rides) > 0 {
			t.Error("answered before its write")
		}
		g.letGo <- nil
		for _, c := range []<-chan outcome{first, leader, rides} {
			if got := <-c; got != (outcome{1, nil}) {
				t.Error(got)
			}
		}
	})
}

// A cell that does not answer keeps nobody for ever, and the line goes on.
func TestPatience(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		began := time.Now()
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		waits := r.commit(t.Context(), "acme.1", "g", entries(20, 1))
		got := <-waits
		if !errors.Is(got.err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), got)
		}
		synctest.Wait()
		g.letGo <- nil // it comes to the store after its time
		if got := <-first; !errors.Is(got.err, context.DeadlineExceeded) {
			t.Error(got)
		}
		r.cell.set(func(f *fakeCell) { f.before = nil })
		r.mustCommit("acme.1", "g", entries(30, 1))
	}, func(c *offsets.Config) { c.Patience = 2 * time.Second })
}

// A call that panics ends with its own commit; the others go on.
func TestPanic(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		s, first := r.as("acme.1"), make(chan any, 1)
		go func() {
			defer func() { first <- recover() }()
			_, _ = r.Commit(t.Context(), s, "g", 1, nil, entries(10, 0))
		}()
		<-g.reached
		r.cell.set(func(f *fakeCell) { f.after = func(call, []proxyclient.KVResult) error { f.after = nil; panic("cell") } })
		waits := r.commit(t.Context(), "acme.1", "g", entries(20, 0))
		synctest.Wait()
		g.letGo <- nil
		<-g.reached
		g.letGo <- nil
		if got := <-waits; got.err != nil {
			t.Error(got.err)
		}
		if p := <-first; p == nil {
			t.Error("the panic was swallowed")
		}
	})
}

// A wide commit goes in chunks, in order; after one that fails no other is sent.
func TestChunks(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(0, partitions(300)...))
	calls := r.cell.commits()
	if len(calls) != 2 || len(calls[0].ops) != 256 || len(calls[1].ops) != 44 {
		t.Fatalf("%d calls", len(calls))
	}
	for p := range 300 {
		if got := r.cell.offset(t, "acme", key("g", p)); got != int64(p) {
			t.Fatalf("partition %d is at %d", p, got)
		}
	}
	n := 0
	r.cell.set(func(f *fakeCell) {
		f.before = func(call) error {
			if n++; n == 2 {
				return errDown
			}
			return nil
		}
	})
	if got := <-r.commit(t.Context(), "acme.1", "g", entries(1000, partitions(700)...)); got.written != 256 || !errors.Is(got.err, error(errDown)) || n != 2 {
		t.Errorf("%+v after %d calls", got, n)
	}
}

// Long metadata makes chunks of fewer writes, and a place that is there twice is
// written once, as it came last.
func TestChunksByBytes(t *testing.T) {
	r := newRig(t)
	e := entries(0, partitions(200)...)
	for i := range e {
		e[i].Metadata = strings.Repeat("\x01", offsets.MaxMetadata)
	}
	e = append(e, entries(7, 199)...)
	r.mustCommit("acme.1", "g", e)
	for _, c := range r.cell.commits() {
		size := 0
		for _, op := range c.ops {
			size += len(op.Key) + len(op.Value)
		}
		if size > 1<<20 {
			t.Errorf("a call of %d bytes", size)
		}
	}
	if got := r.cell.offset(t, "acme", key("g", 199)); got != 7 {
		t.Errorf("the partition that was there twice is at %d", got)
	}
}

// What a cell refuses for its content is sent again commit by commit, so that no
// good commit pays for a bad one.
func TestOneBadCommit(t *testing.T) {
	for _, code := range []int{400, 413} {
		bubble(t, func(t *testing.T, r *rig) {
			r.mustCommit("acme.1", "g", entries(1, 0))
			g := newGate()
			bad := func(c call) error {
				if slices.Contains(c.keys(), key("g", 2)) {
					return status(code)
				}
				return nil
			}
			r.cell.set(func(f *fakeCell) { f.before = g.hold })
			first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
			<-g.reached
			var shared []<-chan outcome
			for p := range 4 {
				shared = append(shared, r.commit(t.Context(), "acme.1", "g", entries(20, int32(p))))
				synctest.Wait()
			}
			r.cell.set(func(f *fakeCell) { f.before = bad })
			g.letGo <- nil
			<-first
			for p, c := range shared {
				if got := <-c; (got.err != nil) != (p == 2) {
					t.Errorf("%d, partition %d: %v", code, p, got)
				}
			}
		})
	}
}

// Commits that wait have a ceiling, of which one tenant leaves a part.
func TestCeiling(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		r.mustCommit("umbrella.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		first := r.commit(t.Context(), "acme.1", "g", entries(10, partitions(70)...))
		<-g.reached
		if got := <-r.commit(t.Context(), "acme.1", "g", entries(20, partitions(10)...)); !errors.Is(got.err, offsets.ErrFull) {
			t.Error(got)
		}
		other := r.commit(t.Context(), "umbrella.1", "g", entries(20, partitions(10)...))
		<-g.reached
		g.letGo <- nil
		g.letGo <- nil
		for _, c := range []<-chan outcome{first, other} {
			if got := <-c; got.err != nil {
				t.Error(got.err)
			}
		}
		r.cell.set(func(f *fakeCell) { f.before = nil })
		r.mustCommit("acme.1", "g", entries(20, partitions(70)...)) // the room was given back
	}, func(c *offsets.Config) { c.Waiting = tenancy.NewCeiling(100, 0.25) })
}

// Many groups, credentials and leavers at once: every commit that was answered
// well is there, or a later one of its place. For the race detector.
func TestCrowd(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	n := 0
	r.cell.set(func(f *fakeCell) {
		f.before = func(call) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n%17 == 0 {
				return errDown
			}
			return nil
		}
	})
	const workers, rounds = 24, 60
	last := make([]int64, workers) // acknowledged, by worker; each has a partition of its own
	var wg sync.WaitGroup
	for w := range workers {
		s := r.as(fmt.Sprintf("acme.%d", w%3))
		wg.Go(func() {
			for i := range rounds {
				ctx, leave := context.WithCancel(context.Background())
				if (w+i)%7 == 0 {
					leave()
				}
				got, err := r.Commit(ctx, s, fmt.Sprintf("g%d", w%2), 1, nil, entries(int64(i+1), int32(w)))
				leave()
				if err == nil && got == 1 {
					last[w] = int64(i + 1)
				}
			}
		})
	}
	wg.Wait()
	for w := range workers {
		if got := r.cell.offset(t, "acme", key(fmt.Sprintf("g%d", w%2), w)); got < last[w] {
			t.Errorf("worker %d has %d acknowledged and %d stored", w, last[w], got)
		}
	}
}
