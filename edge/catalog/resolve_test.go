package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/proxyclient"
)

func states(rs []catalog.Resolved) string {
	names := [...]string{"found", "illegal", "missing", "failed", "refused", "later"}
	var out []string
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%.9s=%s", r.Name, names[r.State]))
	}
	return strings.Join(out, " ")
}

func (r *rig) resolve(bearer string, create bool, names ...string) []catalog.Resolved {
	return r.Resolve(context.Background(), r.as(bearer), names, create)
}

func TestResolve(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 7)
	got := r.resolve("acme.1", false, "b", "a", "", "..", "né", strings.Repeat("x", 250), "__x")
	r.wants("states", states(got), "b=missing a=found =illegal ..=illegal né=illegal xxxxxxxxx=illegal __x=missing")
	if got[1].Topic != (catalog.Topic{Name: "a", QueueID: "id-a", ID: got[1].Topic.ID, Width: 7}) {
		t.Errorf("topic %+v", got[1].Topic)
	}
	r.calls("acme.1", 1, 1)
	if len(r.resolve("acme.1", true)) != 0 {
		t.Error("no names resolve to something")
	}
	// A missing name that is never created costs no second listing.
	r.wants("reserved", states(r.resolve("acme.1", true, "a", "__x", "")), "a=found __x=missing =illegal")
	r.calls("acme.1", 1, 1)
}

func TestResolveCreates(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 7)
	got := r.resolve("acme.1", true, "a", "new", "__x", "newer")
	r.wants("states", states(got), "a=found new=found __x=missing newer=found")
	if got[1].Topic != (catalog.Topic{Name: "new", QueueID: "id-new", ID: got[1].Topic.ID, Width: 4}) {
		t.Errorf("topic %+v", got[1].Topic)
	}
	r.calls("acme.1", 2, 1) // the cached one and exactly one more
	r.wants("configured", strings.Join(r.cell.configured(), " "), "acme.1/new acme.1/newer")
	r.wants("then listed", r.get("acme.2"), "a:7 new:4 newer:4")
	r.resolve("acme.1", true, "new")
	if n := len(r.cell.configured()); n != 2 {
		t.Errorf("%d configures", n)
	}
}

// A queue that has appeared is served; creating it would reset its settings.
func TestResolveDoesNotTouchWhatIsThere(t *testing.T) {
	r := newRig(t)
	r.get("acme.1")
	r.queue("acme", "elsewhere", 9)
	got := r.resolve("acme.1", true, "elsewhere")
	r.wants("states", states(got), "elsewhere=found")
	if got[0].Topic.Width != 9 || len(r.cell.configured()) != 0 {
		t.Errorf("topic %+v, configured %v", got[0].Topic, r.cell.configured())
	}
}

func TestResolveCreatesNothingBlindly(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.get("acme.1")
	r.cell.set(func(f *fakeCell) { f.listErr[""] = errDown })
	got := r.resolve("acme.1", true, "a", "new")
	r.wants("states", states(got), "a=found new=failed")
	if !errors.Is(got[1].Err, error(errDown)) || len(r.cell.configured()) != 0 {
		t.Errorf("error %v, configured %v", got[1].Err, r.cell.configured())
	}
	r.wants("nothing in hand", states(r.resolve("umbrella.1", true, "a", "", "__x")), "a=failed =illegal __x=missing")
}

func TestResolveCreatesAFew(t *testing.T) {
	r := newRig(t) // at most three
	got := r.resolve("acme.1", true, "a", "b", "c", "d", "e")
	r.wants("states", states(got), "a=found b=found c=found d=later e=later")
	r.wants("again", states(r.resolve("acme.1", true, "a", "b", "c", "d", "e")), "a=found b=found c=found d=found e=found")
	if n := len(r.cell.configured()); n != 5 {
		t.Errorf("%d configures", n)
	}
}

func TestResolveNameTwice(t *testing.T) {
	r := newRig(t)
	r.wants("states", states(r.resolve("acme.1", true, "a", "a")), "a=found a=found")
	if n := len(r.cell.configured()); n != 1 {
		t.Errorf("%d configures", n)
	}
}

func TestResolveRefused(t *testing.T) {
	r := newRig(t)
	r.cell.set(func(f *fakeCell) { f.confErr["acme.reader"] = status(403) })
	got := r.resolve("acme.reader", true, "a")
	r.wants("states", states(got), "a=refused")
	if e, ok := proxyclient.AsError(got[0].Err); !ok || e.Status != 403 {
		t.Errorf("error %v", got[0].Err)
	}
	r.wants("a sibling", states(r.resolve("acme.admin", true, "a")), "a=found")
}

// Many at once: one configure, and everybody has the topic.
func TestConcurrentCreatesShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) { f.confGate = gate })
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				r.wants("states", states(r.resolve(fmt.Sprintf("acme.%d", i%4), true, "new")), "new=found")
			})
			wg.Go(func() {
				r.wants("another tenant", states(r.resolve("umbrella.1", true, "new")), "new=found")
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		confs := r.cell.configured()
		slices.Sort(confs)
		if len(confs) != 2 || !strings.HasPrefix(confs[0], "acme.") || confs[1] != "umbrella.1/new" {
			t.Errorf("configured %v", confs)
		}
	})
}

// A refusal is its own credential's: the others ask, each credential once, and
// the first that may makes it for all.
func TestFollowersOfARefusedCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.cell.set(func(f *fakeCell) {
			f.confGate = gate
			f.confErr["acme.reader"] = status(403)
		})
		var wg sync.WaitGroup
		reader := func() {
			got := r.resolve("acme.reader", true, "new")
			e, _ := proxyclient.AsError(got[0].Err)
			if got[0].State != catalog.Refused && got[0].State != catalog.Found || got[0].State == catalog.Refused && e.Status != 403 {
				t.Errorf("the reader got %+v", got)
			}
		}
		wg.Go(reader)
		synctest.Wait()
		for range 10 {
			wg.Go(reader)
			wg.Go(func() { r.wants("states", states(r.resolve("acme.admin", true, "new")), "new=found") })
			wg.Go(func() { r.wants("states", states(r.resolve("acme.other", true, "new")), "new=found") })
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		made := 0
		for _, conf := range r.cell.configured() {
			if conf != "acme.reader/new" {
				made++
			}
		}
		if made != 1 {
			t.Errorf("configured %v", r.cell.configured())
		}
	})
}
