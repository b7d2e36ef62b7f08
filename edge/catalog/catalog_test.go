package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/proxyclient"
)

const second = time.Second

func TestGetIsFreshForThreeSeconds(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.wants("first", r.get("acme.1"), "a:4")
	r.queue("acme", "b", 1)
	r.advance(3*second - 1)
	r.wants("within 3 s", r.get("acme.2"), "a:4")
	r.calls("acme.1", 1, 1)
	r.calls("acme.2", 0, 0)
	r.advance(1)
	r.wants("after 3 s", r.get("acme.2"), "a:4 b:4")
	r.calls("acme.2", 1, 1) // b is new: does it have a record?
}

func TestTenantsNeverMeet(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "orders", 9)
	r.queue("umbrella", "orders", 5)
	r.queue("umbrella", "secret", 5)
	r.wants("acme", r.get("acme.1"), "orders:9")
	r.wants("umbrella", r.get("umbrella.1"), "orders:5 secret:5")
	r.wants("acme again", r.get("acme.1"), "orders:9")
	r.Invalidate(r.as("acme.1"))
	r.get("umbrella.1")
	r.calls("umbrella.1", 1, 1)
}

// Whoever finds an old list while somebody else refreshes is served at once. A
// list is a heavy query: waiting for it would stall every produce every three
// seconds.
func TestGetNeverWaitsForAnothersRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		r.get("acme.1")
		r.queue("acme", "b", 1)
		r.advance(3 * second)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		const callers = 50
		got := make(chan string, callers)
		for i := range callers { // all at the moment it expires
			go func() { got <- r.get(fmt.Sprintf("acme.%d", i%3)) }()
		}
		synctest.Wait()
		if len(got) != callers-1 {
			t.Errorf("%d of %d wait", callers-len(got), callers)
		}
		for len(got) > 0 {
			r.wants("meanwhile", <-got, "a:4")
		}
		close(gate)
		r.wants("who refreshed", <-got, "a:4 b:4")
	})
}

func TestGetWithNothingInHandSharesOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { r.wants("shared", r.get(fmt.Sprintf("acme.%d", i%2)), "a:4") })
		}
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := r.Get(ctx, r.as("acme.9")); !errors.Is(err, context.Canceled) {
			t.Errorf("a waiter whose client left: %v", err)
		}
		close(gate)
		wg.Wait()
		if n := r.cell.listed("acme.0") + r.cell.listed("acme.1"); n != 1 {
			t.Errorf("%d listings", n)
		}
	})
}

func TestFailureWithAnOldList(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.get("acme.1")
	r.cell.set(func(f *fakeCell) { f.listErr[""] = errDown })
	for range 5 {
		r.advance(time.Hour)
		r.wants("down", r.get("acme.1"), "a:4")
		r.wants("down", r.get("acme.2"), "a:4") // no call of its own: nobody can be asked
	}
	r.calls("acme.1", 6, 1+5)
	r.calls("acme.2", 0, 0)
	r.cell.set(func(f *fakeCell) { f.listErr[""] = nil })
	r.queue("acme", "b", 1)
	r.advance(3 * second)
	r.wants("up again", r.get("acme.2"), "a:4 b:4")
}

// A credential that may not list costs one call in three seconds, and keeps its
// siblings neither from listing nor from asking in their own time.
func TestOneCredentialsRefusal(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.listErr["acme.producer"] = status(403) })
	for range 3 {
		if got := r.get("acme.producer"); got == "a:4" {
			t.Errorf("a refused credential got %q", got)
		}
		r.fresh("acme.producer")
	}
	r.calls("acme.producer", 1, 1)
	r.wants("sibling", r.get("acme.1"), "a:4")
	r.wants("the refused one, while a list is there", r.get("acme.producer"), "a:4")
	for i := range 5 {
		r.advance(3 * second)
		r.queue("acme", fmt.Sprintf("b%d", i), 1)
		r.get("acme.producer") // it is always first
		r.fresh("acme.producer")
		if got := r.get("acme.1"); r.cell.listed("acme.1") != i+2 {
			t.Fatalf("after %d expiries the sibling has %q", i+1, got)
		}
	}
	r.calls("acme.producer", 6, 5)
}

func TestFailureWithNothingIsReplayedToItsCredential(t *testing.T) {
	r := newRig(t)
	r.cell.set(func(f *fakeCell) { f.listErr[""] = errDown })
	for range 3 {
		if _, err := r.Get(t.Context(), r.as("acme.1")); !errors.Is(err, error(errDown)) {
			t.Errorf("got %v", err)
		}
		if _, err := r.Fresh(t.Context(), r.as("acme.1")); !errors.Is(err, error(errDown)) {
			t.Errorf("got %v", err)
		}
	}
	r.calls("acme.1", 1, 1)
	r.get("acme.2")
	r.calls("acme.2", 1, 1)
	r.advance(3*second - 1)
	r.get("acme.1")
	r.calls("acme.1", 1, 1)
	r.advance(1)
	r.cell.set(func(f *fakeCell) { f.listErr[""] = nil })
	r.wants("after 3 s", r.get("acme.1"), "")
	r.calls("acme.1", 2, 2)
}

// Who waits for another credential's call, and that call fails, asks for itself.
func TestWaiterOfAFailedCallMakesItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate, f.listErr["acme.bad"] = gate, status(403) })
		got := make(chan string, 10)
		var wg sync.WaitGroup
		wg.Go(func() { r.get("acme.bad") })
		synctest.Wait()
		for range 5 {
			wg.Go(func() { got <- r.get("acme.good") })
			wg.Go(func() {
				if _, err := r.Get(t.Context(), r.as("acme.bad")); err == nil {
					t.Error("the refused credential got a list")
				}
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		for range 5 {
			r.wants("waiter", <-got, "a:4")
		}
		r.calls("acme.bad", 1, 1)
		r.calls("acme.good", 1, 1)
	})
}

// A recent listing is one of the last 3 seconds, or none: it does not fall back
// to what is old while the cell cannot be asked, nor while somebody else asks.
func TestRecentIsNeverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		recent := func(bearer string) string { return show(r.Recent(t.Context(), r.as(bearer))) }
		r.queue("acme", "a", 1)
		r.wants("nothing in hand", recent("acme.1"), "a:4")
		r.queue("acme", "b", 1)
		r.advance(3*second - 1)
		r.wants("within 3 s", recent("acme.2"), "a:4")
		r.advance(1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		var wg sync.WaitGroup
		wg.Go(func() { r.get("acme.1") })
		synctest.Wait()
		got := make(chan string, 1)
		wg.Go(func() { got <- recent("acme.2") })
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("while somebody else reads it is answered %q", <-got)
		}
		close(gate)
		r.wants("what somebody else has read", <-got, "a:4 b:4")
		wg.Wait()
		r.calls("acme.1", 2, 2)
		r.calls("acme.2", 0, 0)

		r.cell.set(func(f *fakeCell) { f.listErr[""], f.gate = errDown, nil })
		r.advance(3 * second)
		for range 3 {
			r.wants("down", recent("acme.1"), "error: "+errDown.Error())
		}
		r.wants("an old one will do for others", r.get("acme.1"), "a:4 b:4")
		r.calls("acme.1", 3, 3)
	})
}

func TestFreshBypassesTheCache(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.get("acme.1")
	r.queue("acme", "b", 1)
	r.wants("fresh", r.fresh("acme.1"), "a:4 b:4")
	r.wants("and then cached", r.get("acme.1"), "a:4 b:4")
	r.calls("acme.1", 2, 1)
	// It never falls back to what is old.
	r.cell.set(func(f *fakeCell) { f.listErr[""] = errDown })
	if got := r.fresh("acme.1"); got != "error: "+errDown.Error() {
		t.Errorf("fresh of a cell that is down: %q", got)
	}
	r.wants("cached", r.get("acme.1"), "a:4 b:4")
}

// A call under way when Fresh begins may have read before: it is waited for, and
// then one more is made, which those that wait share.
func TestFreshIsNeverOlderThanItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		var wg sync.WaitGroup
		wg.Go(func() { r.wants("older", r.get("acme.1"), "a:4") })
		synctest.Wait()
		r.queue("acme", "b", 1) // after the call under way has read
		for range 10 {
			wg.Go(func() { r.wants("fresh", r.fresh("acme.1"), "a:4 b:4") })
		}
		synctest.Wait()
		r.calls("acme.1", 1, 1)
		close(gate)
		wg.Wait()
		r.calls("acme.1", 2, 1)

		hold := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = hold })
		wg.Go(func() { r.fresh("acme.1") })
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := r.Fresh(ctx, r.as("acme.1")); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting with no time left: %v", err)
		}
		close(hold)
		wg.Wait()
	})
}

// A leader whose client leaves does not fail those who wait for its call.
func TestLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.Get(ctx, r.as("acme.1")) })
		synctest.Wait()
		wg.Go(func() { r.wants("waiter", r.get("acme.2"), "a:4") })
		synctest.Wait()
		leave()
		close(gate)
		wg.Wait()
		r.calls("acme.2", 0, 0)
	})
}

// What was being read when the tenant was invalidated must not come back.
func TestInvalidateDuringARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.queue("acme", "a", 1)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.gate = gate })
		var wg sync.WaitGroup
		wg.Go(func() { r.get("acme.1") })
		synctest.Wait()
		r.cell.set(func(f *fakeCell) { f.gate = nil })
		r.queue("acme", "b", 1)
		r.Invalidate(r.as("acme.1"))
		r.wants("after it", r.get("acme.2"), "a:4 b:4")
		close(gate)
		wg.Wait()
		r.wants("after the old call came home", r.get("acme.1"), "a:4 b:4")
		r.calls("acme.1", 1, 1)
		r.calls("acme.2", 1, 1)
	})
}

// A login's listing spares the first Metadata its own, but never the widths.
func TestWarm(t *testing.T) {
	r := newRig(t)
	queues := []proxyclient.Queue{{ID: "id-a", Name: "a", Partitions: 1}}
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)} })
	r.Warm(r.as("acme.1"), queues, r.clock())
	r.advance(1)
	r.wants("warmed", r.get("acme.1"), "a:12")
	r.calls("acme.1", 0, 1)
	r.advance(3 * second)
	r.Warm(r.as("acme.2"), queues, r.clock())
	r.wants("warmed again, widths known", r.get("acme.1"), "a:12")
	r.calls("acme.1", 0, 1)
	// One that is older than 3 s is not used.
	r.Warm(r.as("umbrella.1"), nil, r.clock())
	r.advance(3 * second)
	r.queue("umbrella", "u", 1)
	r.wants("too old", r.get("umbrella.1"), "u:4")
}

// A slow login must not bring back what was before.
func TestWarmIsNeverAStepBack(t *testing.T) {
	r := newRig(t)
	old := []proxyclient.Queue{{ID: "id-a", Name: "a", Partitions: 1}}
	r.queue("acme", "a", 1)
	r.get("acme.1")
	r.advance(1)
	began := r.clock()
	r.advance(1)
	r.queue("acme", "b", 1)
	r.fresh("acme.1")
	r.Warm(r.as("acme.1"), old, began)
	r.wants("a refresh was later", r.get("acme.1"), "a:4 b:4")

	began = r.clock()
	r.advance(1)
	r.queue("acme", "c", 1)
	r.Invalidate(r.as("acme.1"))
	r.Warm(r.as("acme.1"), old, began)
	r.wants("the tenant was invalidated later", r.get("acme.1"), "a:4 b:4 c:4")
}

// A bypassing read does not take a login's listing, nor join a call that did.
func TestFreshDoesNotTakeALoginsListing(t *testing.T) {
	r := newRig(t)
	r.Warm(r.as("acme.1"), []proxyclient.Queue{}, r.clock())
	r.queue("acme", "a", 1)
	r.wants("fresh", r.fresh("acme.1"), "a:4")
}

func TestFreshDoesNotJoinACallThatDid(t *testing.T) {
	for i := range 10 { // who of the two kinds leads is chance
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			gate, kvGate := make(chan struct{}), make(chan struct{})
			r.cell.set(func(f *fakeCell) { f.gate, f.listErr["acme.bad"] = gate, status(403) })
			var wg sync.WaitGroup
			wg.Go(func() { r.get("acme.bad") })
			synctest.Wait()
			r.Warm(r.as("acme.1"), []proxyclient.Queue{}, r.clock())
			r.queue("acme", "a", 1)
			if i%2 == 0 {
				wg.Go(func() { r.get("acme.1") })
			}
			wg.Go(func() { r.wants("fresh", r.fresh("acme.2"), "a:4") })
			if i%2 == 1 {
				wg.Go(func() { r.get("acme.1") })
			}
			synctest.Wait()
			r.cell.set(func(f *fakeCell) { f.kvGate = kvGate })
			close(gate)
			synctest.Wait()
			close(kvGate)
			wg.Wait()
		})
	}
}

func TestTenantsAreBounded(t *testing.T) {
	r := newRig(t, func(c *catalog.Config) { c.MaxTenants = 3 })
	for i := range 4 {
		r.get(fmt.Sprintf("t%d.1", i))
		r.get("t0.1") // read often: it stays
	}
	r.get("t0.1")
	r.calls("t0.1", 1, 1)
	r.get("t1.1")
	r.calls("t1.1", 2, 2)
}

// Failures of many credentials of one tenant are bounded too.
func TestFailuresAreBounded(t *testing.T) {
	r := newRig(t)
	r.cell.set(func(f *fakeCell) { f.listErr[""] = status(403) })
	for i := range 300 {
		r.get(fmt.Sprintf("acme.%d", i))
	}
	r.get("acme.299")
	r.calls("acme.299", 1, 1)
}

func TestListing(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"z", "a.b-C_1", "__consumer_offsets", "né", ".", "..", "with space", "m"} {
		r.queue("acme", name, 1)
	}
	l, err := r.Get(t.Context(), r.as("acme.1"))
	r.wants("listing", show(l, err), "a.b-C_1:4 m:4 z:4")
	if topic, ok := l.Find("m"); !ok || topic.QueueID != "id-m" {
		t.Errorf("found %+v, %v", topic, ok)
	}
	for _, name := range []string{"", "b", "zz", "__consumer_offsets"} {
		if _, ok := l.Find(name); ok {
			t.Errorf("found %q", name)
		}
	}
}

// Anything at once, for the race detector, and to see that each tenant only ever
// sees its own.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t, func(c *catalog.Config) { c.MaxTenants = 2 })
	tenants := []string{"acme", "umbrella", "initech"}
	for _, name := range tenants {
		r.queue(name, "only-"+name, 1)
	}
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			name := tenants[g%3]
			s := r.as(fmt.Sprintf("%s.%d", name, g))
			for i := range 150 {
				var l *catalog.Listing
				var err error
				switch i % 5 {
				case 0:
					l, err = r.Fresh(t.Context(), s)
				case 1:
					r.advance(second)
					r.Invalidate(s)
					continue
				case 2:
					r.Warm(s, []proxyclient.Queue{{Name: "only-" + name, ID: "id-only-" + name}}, r.clock())
					continue
				case 3:
					res := r.Resolve(t.Context(), s, []string{"only-" + name, "made-" + name}, true)
					if res[0].State != catalog.Found || res[1].State != catalog.Found {
						t.Errorf("resolved %+v", res)
					}
					continue
				default:
					l, err = r.Get(t.Context(), s)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, topic := range l.Topics() {
					if topic.Name != "only-"+name && topic.Name != "made-"+name {
						t.Errorf("%s sees %s", name, topic.Name)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, name := range tenants {
		n := 0
		for _, conf := range r.cell.configured() {
			if conf[len(conf)-len("/made-"+name):] == "/made-"+name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("made-%s was configured %d times", name, n)
		}
	}
}
