package offsets_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// read is what Read finds, by partition of topic t.
func (r *rig) read(bearer, group string, p ...int32) (map[int32]int64, error) {
	r.t.Helper()
	places := make([]offsets.Place, len(p))
	for i := range p {
		places[i] = offsets.Place{Topic: "t", Partition: p[i]}
	}
	got := map[int32]int64{}
	err := r.Read(r.t.Context(), r.as(bearer), group, places, func(i int, o offsets.Stored) error {
		got[places[i].Partition] = o.Offset
		return nil
	})
	return got, err
}

// walk is what Walk visits, in its order.
func (r *rig) walk(bearer, group string) ([]string, error) {
	r.t.Helper()
	var got []string
	err := r.Walk(r.t.Context(), r.as(bearer), group, func(topic string) bool { return topic != "hidden" },
		func(p offsets.Place, o offsets.Stored) error {
			got = append(got, fmt.Sprintf("%s/%d=%d", p.Topic, p.Partition, o.Offset))
			return nil
		})
	return got, err
}

func TestReadInCallsOf128(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(0, partitions(300)...))
	before := r.cell.count()
	got, err := r.read("acme.1", "g", append(partitions(400), 7, 7)...)
	if err != nil || len(got) != 300 || got[299] != 299 {
		t.Fatalf("%d offsets, %v", len(got), err)
	}
	if n := r.cell.count() - before; n != 4 {
		t.Errorf("%d calls for 402 places", n)
	}
	if got, err := r.read("umbrella.1", "g", partitions(10)...); len(got) != 0 || err != nil {
		t.Errorf("another tenant reads %v, %v", got, err)
	}
	if _, err := r.read("acme.1", "g"); err != nil || r.cell.count() != before+5 {
		t.Errorf("no places: %v", err)
	}
}

// left makes a cell leave keys out of an answer, as its byte budget does: they
// are neither rows nor missing.
func left(out func(key string) bool) func(call, []proxyclient.KVResult) []proxyclient.KVResult {
	return func(c call, res []proxyclient.KVResult) []proxyclient.KVResult {
		for i, op := range c.ops {
			if op.Op != proxyclient.KVGetMany {
				continue
			}
			res[i].Rows = slices.DeleteFunc(res[i].Rows, func(row proxyclient.KVRow) bool { return out(row.Key) })
			res[i].Missing = slices.DeleteFunc(res[i].Missing, out)
			for _, key := range op.Keys {
				if out(key) {
					res[i].Unread = append(res[i].Unread, key)
				}
			}
		}
		return res
	}
}

// A key of which nothing was said is asked for again, and is an error where the
// cell will not say: never "no offset".
func TestUnreadIsNotAbsent(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(0, partitions(20)...))
	for name, out := range map[string]func(string) bool{
		"a key that is there":     func(k string) bool { return k == key("g", 7) },
		"a key that is not there": func(k string) bool { return k == key("g", 30) },
		"all keys":                func(string) bool { return true },
	} {
		r.cell.set(func(f *fakeCell) { f.answer = left(out) })
		if got, err := r.read("acme.1", "g", partitions(40)...); !errors.Is(err, offsets.ErrUnread) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// A budget that takes five keys at a time gets through.
	r.cell.set(func(f *fakeCell) {
		f.answer = func(c call, res []proxyclient.KVResult) []proxyclient.KVResult {
			keys := c.ops[0].Keys
			return left(func(k string) bool { return slices.Index(keys, k) >= 5 })(c, res)
		}
	})
	if got, err := r.read("acme.1", "g", partitions(40)...); err != nil || len(got) != 20 {
		t.Errorf("%d offsets, %v", len(got), err)
	}
}

func TestWalkByPages(t *testing.T) {
	r := newRig(t)
	e := entries(0, partitions(300)...)
	for _, topic := range []string{"t-1", "t.2", "t0", "hidden", "u"} {
		e = append(e, offsets.Entry{Place: offsets.Place{Topic: topic, Partition: 1}, Offset: 5})
	}
	r.mustCommit("acme.1", "g", e)
	r.mustCommit("acme.1", "g2", entries(9, 1))
	r.cell.rows["acme"]["qk:group:g:t:007"] = `not even JSON`
	r.cell.rows["acme"]["qk:group:g:t"] = `neither`
	before := r.cell.count()
	got, err := r.walk("acme.1", "g")
	if err != nil || len(got) != 304 {
		t.Fatalf("%d offsets, %v", len(got), err)
	}
	if n := r.cell.count() - before; n != 3 {
		t.Errorf("%d calls for 307 rows", n)
	}
	seen := map[string]int{}
	last := ""
	for _, text := range got {
		topic, _, _ := strings.Cut(text, "/")
		if topic != last {
			seen[topic]++
		}
		last = topic
	}
	for topic, n := range seen {
		if n != 1 {
			t.Errorf("the partitions of %s are in %d places", topic, n)
		}
	}
	if got, err := r.walk("umbrella.1", "g"); len(got) != 0 || err != nil {
		t.Errorf("another tenant reads %v, %v", got, err)
	}
}

// A page that does not get on ends the walk, and so does a row without an offset.
func TestWalkThatCannotEnd(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(0, partitions(3)...))
	r.cell.set(func(f *fakeCell) {
		f.answer = func(_ call, res []proxyclient.KVResult) []proxyclient.KVResult {
			res[0].Truncated, res[0].NextAfter = true, ""
			return res
		}
	})
	if _, err := r.walk("acme.1", "g"); !errors.Is(err, offsets.ErrUnread) {
		t.Error(err)
	}
	n := 0
	r.cell.set(func(f *fakeCell) {
		f.answer = func(_ call, res []proxyclient.KVResult) []proxyclient.KVResult {
			n++
			res[0].Truncated, res[0].NextAfter = true, fmt.Sprintf("qk:group:g:%09d", n)
			return res
		}
	})
	if _, err := r.walk("acme.1", "g"); err == nil || n != 4096 {
		t.Errorf("%v after %d pages", err, n)
	}
	r.cell.set(func(f *fakeCell) { f.answer = nil })
	for _, bad := range []string{`{}`, `null`, `{"offset":"9"}`, `{"offset":1.5}`, `9`} {
		r.cell.rows["acme"][key("g", 1)] = bad
		if _, err := r.walk("acme.1", "g"); err == nil {
			t.Errorf("%s was taken for an offset or for none", bad)
		}
		if _, err := r.read("acme.1", "g", 1); err == nil {
			t.Errorf("%s was taken for an offset or for none", bad)
		}
	}
	r.cell.rows["acme"][key("g", 1)] = `{"offset":9}`
	if got, err := r.read("acme.1", "g", 1); err != nil || got[1] != 9 {
		t.Errorf("the least that a row may hold: %v, %v", got, err)
	}
}

// The index: written with the first commit in this process, tried again until it
// is there, and again for a member's protocol.
func TestIndex(t *testing.T) {
	r := newRig(t)
	s := r.as("acme.1")
	fail := true
	r.cell.set(func(f *fakeCell) {
		f.before = func(c call) error {
			if fail && strings.HasPrefix(c.ops[0].Key, "qk:groups:") {
				return status(500)
			}
			return nil
		}
	})
	written := func() (n int) {
		for _, c := range r.cell.calls {
			if strings.HasPrefix(c.ops[0].Key, "qk:groups:") && c.ops[0].Op == proxyclient.KVPut {
				n++
			}
		}
		return n
	}
	r.mustCommit("acme.1", "g", entries(1, 0)) // does not fail
	if k, err := r.Look(t.Context(), s, []string{"g"}); err != nil || !k[0].Exists {
		t.Errorf("a group that is not in the index is not known: %v, %v", k, err)
	}
	fail = false
	r.mustCommit("acme.1", "g", entries(2, 0))
	r.mustCommit("acme.1", "g", entries(3, 0))
	r.mustCommit("acme.2", "g", entries(3, 0)) // another key of the tenant
	if n := written(); n != 2 {
		t.Errorf("the index was written %d times", n)
	}
	asked := 0
	consumer := func() string { asked++; return "consumer" }
	for range 3 {
		if _, err := r.Commit(t.Context(), s, "g", 1, consumer, entries(4, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := written(); n != 3 || asked != 1 {
		t.Errorf("the index was written %d times, the protocol asked for %d times", n, asked)
	}
	r.mustCommit("umbrella.1", "other", entries(1, 0))
	for i := range 130 {
		r.cell.rows["acme"][fmt.Sprintf("qk:groups:x%03d", i)] = `{"pt":7}`
	}
	r.cell.rows["acme"]["qk:groups:a:b"] = `{}` // nobody's
	got, more, err := r.Groups(t.Context(), s, 1000)
	if err != nil || more || len(got) != 131 || got[0] != (offsets.Group{ID: "g", ProtocolType: "consumer"}) {
		t.Errorf("%d groups, %v, %v", len(got), more, err)
	}
	if got, more, err := r.Groups(t.Context(), s, 100); err != nil || !more || len(got) != 100 {
		t.Errorf("%d groups, more %v, %v", len(got), more, err)
	}
}

func TestLook(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(1, 0))
	r.cell.set(func(f *fakeCell) {
		f.rows["acme"]["qk:groups:listed"] = `{"pt":"connect"}`
		f.rows["acme"]["qk:group:bare:t:0"] = `{"offset":1}`
	})
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("none%d", i))
	}
	ids = append(ids, "g", "listed", "bare", "g")
	before := r.cell.count()
	got, err := r.Look(t.Context(), r.as("acme.1"), ids)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]offsets.Known{300: {Exists: true}, 301: {Exists: true, ProtocolType: "connect"}, 302: {Exists: true}, 303: {Exists: true}}
	for i, k := range got {
		if k != want[i] {
			t.Errorf("%s: %+v, want %+v", ids[i], k, want[i])
		}
	}
	if n := r.cell.count() - before; n != 3 {
		t.Errorf("%d calls for %d groups", n, len(ids))
	}
	r.cell.set(func(f *fakeCell) { f.answer = left(func(string) bool { return true }) })
	if _, err := r.Look(t.Context(), r.as("acme.1"), ids); !errors.Is(err, offsets.ErrUnread) {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) {
	r := newRig(t)
	r.mustCommit("acme.1", "g", entries(0, partitions(600)...))
	r.mustCommit("umbrella.1", "g", entries(0, partitions(3)...))
	places := make([]offsets.Place, 0, 302)
	for p := range 300 {
		places = append(places, offsets.Place{Topic: "t", Partition: int32(2 * p)})
	}
	places = append(places, places[0], offsets.Place{Topic: "none", Partition: 1})
	if err := r.Delete(t.Context(), r.as("acme.1"), "g", places); err != nil {
		t.Fatal(err)
	}
	got, err := r.walk("acme.1", "g")
	if err != nil || len(got) != 300 || slices.Contains(got, "t/0=0") || !slices.Contains(got, "t/1=1") {
		t.Errorf("%d are left, %v", len(got), err)
	}
	if got, _ := r.walk("umbrella.1", "g"); len(got) != 3 {
		t.Errorf("another tenant has %d left", len(got))
	}
}

func always() error { return nil }

func TestDeleteGroup(t *testing.T) {
	r := newRig(t)
	s := r.as("acme.1")
	all := append(entries(0, partitions(600)...), offsets.Entry{Place: offsets.Place{Topic: "u"}})
	r.mustCommit("acme.1", "g", all)
	r.mustCommit("acme.1", "g2", entries(0, 1))
	r.mustCommit("umbrella.1", "g", entries(0, 1))
	n := 0
	r.cell.set(func(f *fakeCell) {
		f.before = func(call) error {
			if n++; n == 4 {
				return errDown
			}
			return nil
		}
	})
	if found, err := r.DeleteGroup(t.Context(), s, "g", always); !errors.Is(err, error(errDown)) || !found {
		t.Errorf("%v, %v", found, err)
	}
	if k, err := r.Look(t.Context(), s, []string{"g"}); err != nil || !k[0].Exists {
		t.Errorf("half deleted, and not listed: %v, %v", k, err)
	}
	for _, want := range []bool{true, false} {
		if found, err := r.DeleteGroup(t.Context(), s, "g", always); err != nil || found != want {
			t.Errorf("found %v, %v, want %v", found, err, want)
		}
	}
	if k, err := r.Look(t.Context(), s, []string{"g", "g2"}); err != nil || k[0].Exists || !k[1].Exists {
		t.Errorf("%v, %v", k, err)
	}
	left := slices.Sorted(maps.Keys(r.cell.rows["acme"]))
	if !slices.Equal(left, []string{"qk:group:g2:t:1", "qk:groups:g2"}) || len(r.cell.rows["umbrella"]) != 2 {
		t.Errorf("left are %v", left)
	}
	r.mustCommit("acme.1", "g", entries(5, 0)) // lists it again
	if _, ok := r.cell.rows["acme"]["qk:groups:g"]; !ok {
		t.Error("a group that was deleted and has committed again is not listed")
	}
}

// A deletion is alone with its group: no commit is under way meanwhile, and
// those that wait come after it, in their order.
func TestDeleteWaitsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		s := r.as("acme.1")
		first := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		before := r.commit(t.Context(), "acme.1", "g", entries(20, 0))
		synctest.Wait()
		deleted := make(chan error, 1)
		go func() {
			deleted <- r.Delete(context.Background(), s, "g", []offsets.Place{{Topic: "t"}, {Topic: "t", Partition: 1}})
		}()
		synctest.Wait()
		after := r.commit(t.Context(), "acme.1", "g", entries(30, 1))
		synctest.Wait()
		g.letGo <- nil
		for _, kind := range []proxyclient.KVKind{proxyclient.KVPut, proxyclient.KVDelete, proxyclient.KVPut} {
			if c := <-g.reached; c.ops[0].Op != kind || len(c.ops) > 2 {
				t.Errorf("%v, want %v", c.ops, kind)
			}
			g.letGo <- nil
		}
		<-first
		<-before
		<-after
		if err := <-deleted; err != nil {
			t.Error(err)
		}
		if a, b := r.cell.offset(t, "acme", key("g", 0)), r.cell.offset(t, "acme", key("g", 1)); a != -1 || b != 30 {
			t.Errorf("stored %d and %d", a, b)
		}
	})
}

// Whether a group may go is asked in its turn: a commit that was before it is
// stored by then, and one that comes meanwhile is written after it.
func TestDeleteGroupAsksInItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.mustCommit("acme.1", "g", entries(1, 0))
		g := newGate()
		r.cell.set(func(f *fakeCell) { f.before = g.hold })
		s, refusal := r.as("acme.1"), errors.New("it has members")
		before := r.commit(t.Context(), "acme.1", "g", entries(10, 0))
		<-g.reached
		asked, deleted := int64(-1), make(chan error, 1)
		go func() {
			_, err := r.DeleteGroup(context.Background(), s, "g", func() error {
				asked = r.cell.offset(t, "acme", key("g", 0))
				return refusal
			})
			deleted <- err
		}()
		synctest.Wait()
		if asked != -1 {
			t.Error("asked while a commit is under way")
		}
		g.letGo <- nil
		<-before
		if err := <-deleted; !errors.Is(err, refusal) || asked != 10 {
			t.Errorf("%v; at that time %d was stored, want 10", err, asked)
		}
		if left := r.cell.offset(t, "acme", key("g", 0)); left != 10 {
			t.Errorf("left is %d", left)
		}
	})
}
