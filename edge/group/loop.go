package group

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/tenancy"
)

// live is a group that is served: its state, who waits, and its timer. An idle
// group has no goroutine; the timer's runs for a step.
type live struct {
	c     *Coordinator
	key   tenancy.Key[string]
	scope tenancy.Scope // whose places below the ceilings it has

	mu      sync.Mutex // guards the fields below
	st      *state
	ended   bool
	waiting map[uint64]chan answer
	last    uint64 // who asked last
	wake    *wake  // the timer that is set; nil: none
	held    int64  // bytes taken below the ceiling
}

func newLive(c *Coordinator, s tenancy.Scope, groupID string, st *state) *live {
	return &live{c: c, key: tenancy.KeyOf(s, groupID), scope: s, st: st, waiting: make(map[uint64]chan answer)}
}

// ask brings an event to the group and waits for its answer; false: the group
// has ended. Where ctx ends first, the group learns that nobody waits any more.
func (g *live) ask(ctx context.Context, weight int, ev func(to uint64) event) (answer, bool) {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return answer{}, false
	}
	if !g.reserve(weight) {
		g.run(tickEvent{}) // a group that was made for this is not kept
		g.mu.Unlock()
		return answer{code: kerr.CoordinatorNotAvailable}, true
	}
	g.last++
	to, ch := g.last, make(chan answer, 1)
	g.waiting[to] = ch
	g.run(ev(to))
	g.mu.Unlock()

	select {
	case a := <-ch:
		return a, true
	case <-ctx.Done():
		return g.give(to, ch), true
	}
}

// give ends a wait; an answer that came in the same instant still counts.
func (g *live) give(to uint64, ch chan answer) answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		delete(g.waiting, to)
		g.run(goneEvent{to})
	}
	select {
	case a := <-ch:
		return a
	default:
		return answer{code: kerr.CoordinatorNotAvailable}
	}
}

// run takes a step and does what it wants done; g.mu is held.
func (g *live) run(ev event) {
	for _, e := range g.st.step(g.c.cfg.Clock(), ev) {
		switch e := e.(type) {
		case reply:
			g.deliver(e.to, e.with)
		case rebalanced:
			g.c.counted[e.reason].Add(1)
		case retire:
			g.retire(kerr.CoordinatorNotAvailable)
		}
	}
	if g.ended {
		return
	}
	g.settle()
	g.arm()
}

// deliver never blocks: a channel has room for its one answer.
func (g *live) deliver(to uint64, a answer) {
	if ch, ok := g.waiting[to]; ok {
		delete(g.waiting, to)
		ch <- a
	}
}

// look lets fn read the state; false: the group has ended.
func (g *live) look(fn func(*state)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	fn(g.st)
	return true
}

// end takes the group out of service; code is the answer to whoever waits.
func (g *live) end(code *kerr.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.retire(code)
	}
}

// export ends the group and returns what it was.
func (g *live) export() (State, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return State{}, false
	}
	out := g.st.export(g.c.cfg.Clock())
	g.retire(kerr.CoordinatorNotAvailable)
	return out, true
}

// retire gives everything back. Whoever waits is told by the code to look for the
// coordinator again; g.mu is held.
func (g *live) retire(code *kerr.Error) {
	g.ended = true
	g.disarm()
	for to := range g.waiting {
		g.deliver(to, answer{code: code})
	}
	g.free()
	g.c.leave(g)
}

// reserve takes room for what an event may add to the group; g.mu is held.
func (g *live) reserve(n int) bool {
	if g.c.cfg.Bytes == nil || n <= 0 {
		return true
	}
	if !g.c.cfg.Bytes.Take(g.scope, int64(n)) {
		return false
	}
	g.held += int64(n)
	return true
}

// settle gives back what the group does not take after all; g.mu is held.
func (g *live) settle() {
	if spare := g.held - int64(g.st.memory()); g.c.cfg.Bytes != nil && spare > 0 {
		g.c.cfg.Bytes.Give(g.scope, spare)
		g.held -= spare
	}
}

func (g *live) free() {
	if g.held > 0 {
		g.c.cfg.Bytes.Give(g.scope, g.held)
		g.held = 0
	}
}

// wake is one set timer of a group.
type wake struct {
	g     *live
	at    time.Time
	timer *time.Timer
}

// arm sets the timer. One that fires too early only looks; signs of life, which
// put deadlines off all the time, need not touch it. g.mu is held.
func (g *live) arm() {
	next := g.st.next()
	if next.IsZero() || g.wake != nil && !g.wake.at.After(next) {
		return
	}
	g.disarm()
	w := &wake{g: g, at: next}
	g.wake = w
	g.c.wakes.Add(1)
	w.timer = time.AfterFunc(next.Sub(g.c.cfg.Clock()), w.fire)
}

func (g *live) disarm() {
	if g.wake != nil && g.wake.timer.Stop() {
		g.c.wakes.Done()
	}
	g.wake = nil
}

// fire is the timer's goroutine.
func (w *wake) fire() {
	defer w.g.c.wakes.Done()
	g := w.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	if g.wake == w {
		g.wake = nil
	}
	g.run(tickEvent{})
}
