package session

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

type cell struct{}

func (cell) ListQueuesAs(context.Context, tenancy.Claim) (int, error) { return 0, nil }

func (cell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()}, nil
}

func scopeOf(tb testing.TB, cluster string) tenancy.Scope {
	tb.Helper()
	v := tenancy.NewVerifier[int](cell{}, tenancy.VerifierConfig{})
	p, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(cluster), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return p.Scope
}

// world is a store with a clock, and everything it holds.
type world struct {
	*Store
	count, bytes *tenancy.Ceiling
	now          time.Time
	ids          int32
}

func newWorld(count, bytes int64, reserve float64) *world {
	w := &world{count: tenancy.NewCeiling(count, reserve), bytes: tenancy.NewCeiling(bytes, reserve), now: time.Unix(1_800_000_000, 0)}
	w.Store = NewStore(Config{
		Count: w.count, Bytes: w.bytes, Idle: time.Minute,
		Clock: func() time.Time { return w.now }, NewID: func() int32 { w.ids++; return w.ids },
	})
	return w
}

func (w *world) open(s tenancy.Scope, wants ...Want) *Session {
	n := w.Open(s, false, wants, func(int) Told { return Told{High: -1, Start: -1} }, func(int32) bool { return false })
	if n != nil {
		w.Done(n)
	}
	return n
}

func places(n int) (wants []Want) {
	for i := range n {
		wants = append(wants, Want{Place: Place{Topic: "t", Partition: int32(i)}})
	}
	return wants
}

// partState is all a client knows of a partition, or what is true of it.
type partState struct {
	high, start int64
	code        int16
}

// A client that only applies what it is told knows everything, after any
// sequence of what happens to logs and of what it asks for.
func FuzzSession(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint16(200))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(10, 1<<20, 0)
		s := scopeOf(t, "acme")
		logs := map[Place]partState{}
		for i := range int32(12) {
			logs[Place{Topic: fmt.Sprint("t", i%3), Partition: i}] = partState{}
		}
		somePlace := func() Place {
			i := r.Int32N(14) // two of them are nowhere
			return Place{Topic: fmt.Sprint("t", i%3), Partition: i}
		}
		truth := func(p Place) partState {
			if st, ok := logs[p]; !ok || st.code != 0 {
				return partState{-1, -1, max(st.code, 3)}
			}
			return logs[p]
		}
		told := func(p Place, blind bool) Told {
			if blind {
				return Told{High: -1, Start: -1}
			}
			st := truth(p)
			return Told{High: st.high, Start: st.start, Code: st.code, Records: st.code == 0 && r.IntN(4) == 0}
		}
		client := map[Place]partState{}
		var wants []Want
		for range r.IntN(6) {
			wants = append(wants, Want{Place: somePlace(), Offset: r.Int64N(9), MaxBytes: 1})
		}
		n := w.Open(s, false, wants, func(i int) Told {
			st := told(wants[i].Place, false)
			client[wants[i].Place] = partState{st.High, st.Start, st.Code}
			return st
		}, func(int32) bool { return false })
		asked := map[Place]Want{}
		for _, want := range wants {
			asked[want.Place] = want
		}
		w.Done(n)
		for range min(steps, 500) {
			for range r.IntN(4) { // what happens to logs
				p := somePlace()
				if st, ok := logs[p]; ok {
					st.high += r.Int64N(2)
					st.start = min(st.high, st.start+r.Int64N(2))
					st.code = []int16{0, 0, 0, 6}[r.IntN(4)]
					logs[p] = st
				}
			}
			var more []Want
			var less []Place
			for range r.IntN(3) {
				want := Want{Place: somePlace(), Offset: r.Int64N(9), MaxBytes: r.Int32N(9)}
				more = append(more, want)
				asked[want.Place] = want
			}
			for range r.IntN(3) {
				p := somePlace()
				less = append(less, p)
				delete(asked, p)
				delete(client, p)
			}
			if epoch := n.Epoch(); !w.Use(n) || !n.Update(more, less) || n.Epoch() != epoch+1 {
				t.Fatal("the session is gone")
			}
			blind := r.IntN(5) == 0 // the cell was not asked
			seen := map[Place]Want{}
			var order []Place
			n.Each(func(want *Want) {
				seen[want.Place] = *want
				order = append(order, want.Place)
			})
			if !maps.Equal(seen, asked) {
				t.Fatalf("asked %v, kept %v", asked, seen)
			}
			for i, p := range order {
				st := told(p, blind)
				changed := n.Changed(i, st)
				if changed {
					client[p] = partState{st.High, st.Start, st.Code}
				}
				if known := client[p] == (partState{st.High, st.Start, st.Code}); !blind && !known {
					t.Fatalf("%v: the client knows %v, true is %v", p, client[p], st)
				}
				if st.Records && !changed {
					t.Fatalf("%v: records were left out", p)
				}
			}
			n.Rotate()
			w.Done(n)
			if held := w.bytes.Held(s); held != n.cost() {
				t.Fatalf("%d bytes held, %d in use", held, n.cost())
			}
		}
		w.Drop(n)
		w.Drop(n)
		if w.count.Total() != 0 || w.bytes.Total() != 0 || len(w.lines) != 0 {
			t.Fatalf("left: %d sessions, %d bytes, %d lines", w.count.Total(), w.bytes.Total(), len(w.lines))
		}
	})
}

// What a client knows is not told again.
func TestChangedOnce(t *testing.T) {
	w := newWorld(9, 1<<20, 0)
	n := w.open(scopeOf(t, "acme"), places(1)...)
	for i, step := range []struct {
		told Told
		want bool
	}{
		{Told{High: 5, Start: 0}, true},
		{Told{High: 5, Start: 0}, false},
		{Told{High: -1, Start: -1}, false},
		{Told{High: 5, Start: 0}, false},
		{Told{High: 5, Start: 0, Records: true}, true},
		{Told{High: 5, Start: 2}, true},
		{Told{High: 6, Start: 2}, true},
		{Told{High: -1, Start: -1, Code: 3}, true},
		{Told{High: -1, Start: -1, Code: 3}, true},
		{Told{High: 6, Start: 2}, true},
		{Told{High: 6, Start: 2}, false},
	} {
		if got := n.Changed(0, step.told); got != step.want {
			t.Errorf("step %d, %+v: changed %v", i, step.told, got)
		}
	}
}

// What was served comes last the next time, so that no partition waits for ever
// behind one that is always full.
func TestRotate(t *testing.T) {
	w := newWorld(9, 1<<20, 0)
	n := w.open(scopeOf(t, "acme"), places(5)...)
	for _, i := range []int{0, 3} {
		n.Changed(i, Told{High: 1, Records: true})
	}
	n.Rotate()
	var got []int32
	n.Each(func(w *Want) { got = append(got, w.Partition) })
	if fmt.Sprint(got) != "[1 2 4 0 3]" {
		t.Errorf("order %v", got)
	}
}

// Epochs count on behind the largest, without 0 and −1.
func TestEpochs(t *testing.T) {
	w := newWorld(9, 1<<20, 0)
	n := w.open(scopeOf(t, "acme"), places(1)...)
	if n.Epoch() != 1 {
		t.Errorf("first epoch %d", n.Epoch())
	}
	n.epoch = 1<<31 - 1
	if n.advance(); n.Epoch() != 1 {
		t.Errorf("epoch %d behind the largest", n.Epoch())
	}
}

// A tenant's sessions make room for its own only, and only those that nobody
// uses and nobody used for a while.
func TestEviction(t *testing.T) {
	w := newWorld(8, 1<<20, 0.25) // six for one tenant
	acme, globex := scopeOf(t, "acme"), scopeOf(t, "globex")
	theirs := w.open(globex, places(1)...)
	var own []*Session
	for range 5 {
		own = append(own, w.open(acme, places(1)...))
		w.now = w.now.Add(time.Second)
	}
	if own[4] == nil || w.open(acme, places(1)...) != nil {
		t.Fatal("room for other than five sessions beside another tenant's one")
	}
	w.now = w.now.Add(time.Minute)
	if !w.Use(own[0]) { // a long poll
		t.Fatal("the session is gone")
	}
	if w.open(acme, places(1)...) == nil {
		t.Fatal("no room, though one was idle")
	}
	if w.Use(own[1]) || !w.Use(own[2]) || !w.Use(theirs) {
		t.Error("the session that made room is not the one that was idle longest")
	}
	w.Done(own[0])
	if !w.Use(own[0]) {
		t.Error("a session in use made room")
	}
	if w.count.Held(acme) != 5 || w.count.Held(globex) != 1 {
		t.Errorf("%d and %d sessions", w.count.Held(acme), w.count.Held(globex))
	}
	if small := w.open(globex, places(1)...); small == nil {
		t.Error("no room for a tenant that has little")
	}
}

// Memory is taken before it is used. A session that cannot grow is gone, and the
// client begins anew.
func TestGrowth(t *testing.T) {
	w := newWorld(9, sessionBytes+3*(partBytes+1), 0)
	s := scopeOf(t, "acme")
	if w.open(s, places(4)...) != nil {
		t.Fatal("a session larger than the room")
	}
	n := w.open(s, places(2)...)
	if !w.Use(n) || !n.Update(places(3), nil) || n.Len() != 3 {
		t.Fatal("no room for a third partition")
	}
	if !n.Update(nil, []Place{places(1)[0].Place}) || n.Len() != 2 || w.bytes.Held(s) != n.cost() {
		t.Fatalf("%d partitions, %d bytes", n.Len(), w.bytes.Held(s))
	}
	if n.Update(places(4), nil) || w.Use(n) || w.bytes.Total() != 0 || w.count.Total() != 0 {
		t.Error("a session outgrew its room")
	}
}

// A place named twice is one partition, as it was named last.
func TestOpenTwice(t *testing.T) {
	w := newWorld(9, 1<<20, 0)
	s := scopeOf(t, "acme")
	n := w.open(s, Want{Place: Place{Topic: "t"}, Offset: 1}, Want{Place: Place{Topic: "t"}, Offset: 2})
	n.Each(func(w *Want) {
		if w.Offset != 2 {
			t.Errorf("offset %d", w.Offset)
		}
	})
	if n.Len() != 1 || w.bytes.Held(s) != n.cost() {
		t.Errorf("%d partitions, %d bytes", n.Len(), w.bytes.Held(s))
	}
}
