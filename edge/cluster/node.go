package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Store is the registry at the cell.
type Store interface {
	// Exchange puts the own row, where the call says so, and reads all rows, in one
	// call. A put that lost is no error.
	Exchange(ctx context.Context, c Call) (Answer, error)
	// Remove deletes the own row if it has this version. Where it has another, that
	// is the answer's, with whose it is.
	Remove(ctx context.Context, version int64) (Answer, error)
}

// Config is what a Node works with.
type Config struct {
	Cluster        string
	Self           Member
	Heartbeat, TTL time.Duration // TTL: how long a row lives; three heartbeats at least
	Store          Store
	Clock          func() time.Time // monotonic; nil: time.Now

	// Release has the groups let go that are not this node's, by the view, or all;
	// nil: there are none.
	Release func(v *View, all bool)
	// Tell is told what an operator should know; nil: nobody is.
	Tell func(n Notice, detail string)
}

// Node is one gateway of a cluster. Its methods may be called from anywhere.
type Node struct {
	cfg  Config
	view atomic.Pointer[View]
	wake chan struct{} // somebody has joined waiting

	mu      sync.Mutex // guards the fields below
	waiting []chan struct{}
	ended   bool
}

// leaveBudget is what the row's removal may take when the process ends.
const leaveBudget = 2 * time.Second

// New makes a node, which is nobody until it runs.
func New(cfg Config) *Node {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Release == nil {
		cfg.Release = func(*View, bool) {}
	}
	if cfg.Tell == nil {
		cfg.Tell = func(Notice, string) {}
	}
	n := &Node{cfg: cfg, wake: make(chan struct{}, 1)}
	n.view.Store(viewOf(cfg.Cluster, cfg.Self.ID, []Member{cfg.Self}))
	return n
}

// View is how the cluster looks now, without a call.
func (n *Node) View() *View { return n.view.Load() }

// Incarnation tells this process from others with its id.
func (n *Node) Incarnation() int64 { return n.cfg.Self.Incarnation }

// Coordinates reports whether this node may coordinate groups now.
func (n *Node) Coordinates() bool { return n.View().Coordinates(n.cfg.Clock()) }

// Owns reports whether this node coordinates a group, as far as it knows.
func (n *Node) Owns(group string) bool {
	v := n.View()
	return v.Coordinates(n.cfg.Clock()) && v.Owns(group)
}

// Confirm asks the registry, and then reports whether this node coordinates a
// group. Who asks meanwhile shares the call. The error is ctx's.
func (n *Node) Confirm(ctx context.Context, group string) (bool, error) {
	done := make(chan struct{})
	n.mu.Lock()
	ended := n.ended
	if !ended {
		n.waiting = append(n.waiting, done)
	}
	n.mu.Unlock()
	if ended {
		return false, nil
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
	select {
	case <-done:
		return n.Owns(group), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Run keeps the node's row until ctx ends, and removes it then. The error is a
// *TwinError: another process has the id and is alive.
func (n *Node) Run(ctx context.Context) error {
	st := newState(rules{n.cfg.Cluster, n.cfg.Self, n.cfg.Heartbeat, n.cfg.TTL}, n.cfg.Clock())
	defer n.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ev event = tick{}
		var waiting []chan struct{}
		select {
		case <-ctx.Done():
			n.leave(ctx, st)
			return nil
		case <-timer.C:
		case <-n.wake:
			ev, waiting = refresh{}, n.taken()
		}
		err := n.do(ctx, st, st.step(n.cfg.Clock(), ev))
		serve(waiting)
		if err != nil {
			return err
		}
		timer.Reset(max(0, st.next.Sub(n.cfg.Clock())))
	}
}

// do does what a step wants done, and what comes of that.
func (n *Node) do(ctx context.Context, st *state, effects []effect) error {
	for len(effects) > 0 {
		e := effects[0]
		effects = effects[1:]
		switch e := e.(type) {
		case ask:
			effects = append(effects, n.exchange(ctx, st, e.call)...)
		case publish:
			n.view.Store(e.view)
		case release:
			n.cfg.Release(n.View(), e.all)
		case tell:
			n.cfg.Tell(e.what, e.detail)
		case fatal:
			return e.err
		}
	}
	return nil
}

// exchange makes a call. Its time is bounded so that two may fail before the row
// runs out.
func (n *Node) exchange(ctx context.Context, st *state, c Call) []effect {
	began := n.cfg.Clock()
	call, cancel := context.WithTimeout(ctx, n.cfg.TTL/3)
	defer cancel()
	a, err := n.cfg.Store.Exchange(call, c)
	if ctx.Err() != nil {
		return nil // the process ends: what came of the call is seen when the row is removed
	}
	if err != nil {
		return st.step(n.cfg.Clock(), failed{began, err})
	}
	return st.step(n.cfg.Clock(), answered{began, a})
}

// leave stops coordinating, and then removes the row: nobody owns a group twice.
// A heartbeat that was cut off may have renewed the row.
func (n *Node) leave(ctx context.Context, st *state) {
	was := st.phase
	_ = n.do(ctx, st, st.step(n.cfg.Clock(), leave{}))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveBudget)
	defer cancel()
	version := st.version
	if was == lost || was == watching {
		return // it is another's
	}
	for range 2 {
		a, err := n.cfg.Store.Remove(ctx, version)
		if err != nil || a.Applied || a.Version == 0 || a.Winner.Incarnation != n.cfg.Self.Incarnation {
			return
		}
		version = a.Version
	}
}

// taken are those who wait for a call that has not begun yet.
func (n *Node) taken() []chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.waiting
	n.waiting = nil
	return out
}

func serve(waiting []chan struct{}) {
	for _, done := range waiting {
		close(done)
	}
}

// end serves who waits still: nothing is owned any more.
func (n *Node) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	serve(n.taken())
}
