package edge

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

// checksAtOnce bounds the credentials that the cell is asked about at one time.
const checksAtOnce = 16

// watch knows which credentials have connections open, and asks the cell about
// each again every so often (B4): one question however many connections. Those
// of a credential that the cell no longer takes are ended.
type watch struct {
	every   time.Duration
	asking  *tenancy.Ceiling // questions under way: a tenant whose cluster hangs leaves some to others (B6)
	clock   func() time.Time
	revoked func(context.Context, tenancy.Scope) bool
	log     *zap.Logger

	mu   sync.Mutex // guards open; never held over a call
	open map[tenancy.Credential]*watched
}

// watched is one credential under one lane: the credential holds the Host.
type watched struct {
	scope tenancy.Scope
	conns map[*conn]struct{}
	due   time.Time
	busy  bool // the cell is being asked
}

func newWatch(every time.Duration, reserve float64, clock func() time.Time, revoked func(context.Context, tenancy.Scope) bool, log *zap.Logger) *watch {
	return &watch{
		every: every, asking: tenancy.NewCeiling(checksAtOnce, reserve), clock: clock, revoked: revoked, log: log,
		open: make(map[tenancy.Credential]*watched),
	}
}

// add begins to watch a connection; checked is when the cell took its
// credential.
func (w *watch) add(c *conn, s tenancy.Scope, checked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.open[s.Credential()]
	if e == nil {
		e = &watched{scope: s, conns: make(map[*conn]struct{}), due: checked.Add(w.every)}
		w.open[s.Credential()] = e
	}
	e.conns[c] = struct{}{}
}

// drop forgets a connection.
func (w *watch) drop(c *conn, s tenancy.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.open[s.Credential()]
	if e == nil {
		return
	}
	if delete(e.conns, c); len(e.conns) == 0 {
		delete(w.open, s.Credential())
	}
}

// run asks until ctx ends. How exact it is, a tick, is a small part of what it
// promises.
func (w *watch) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(min(w.every/10, time.Second))
	defer tick.Stop()
	var checks sync.WaitGroup
	defer checks.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range w.take() {
			checks.Add(1)
			go w.check(ctx, e, &checks)
		}
	}
}

// take returns the credentials whose time has come.
func (w *watch) take() []*watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	var due []*watched
	for _, e := range w.open {
		if !e.busy && !now.Before(e.due) {
			e.busy = true
			due = append(due, e)
		}
	}
	return due
}

// check asks about one credential, when there is room for one more question.
func (w *watch) check(ctx context.Context, e *watched, checks *sync.WaitGroup) {
	defer checks.Done()
	n, err := w.asking.Wait(ctx, e.scope, 1)
	if err != nil {
		return
	}
	revoked := w.wanted(e) && w.revoked(ctx, e.scope)
	w.asking.Give(e.scope, n)
	endAll(w.settle(e, revoked), wire.Revoked)
	if revoked {
		w.log.Info("a credential was revoked: its connections are closed", zap.Stringer("tenant", e.scope.ID()))
	}
}

// wanted reports whether there still are connections: it may have waited.
func (w *watch) wanted(e *watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(e.conns) > 0
}

// settle notes that a credential was asked about; the connections of a revoked
// one are returned. Whoever logs in with it from now on, by a check that was
// remembered, is watched anew: from that check on.
func (w *watch) settle(e *watched, revoked bool) []*conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.busy, e.due = false, w.clock().Add(w.every)
	if !revoked {
		return nil
	}
	if cred := e.scope.Credential(); w.open[cred] == e {
		delete(w.open, cred)
	}
	conns := make([]*conn, 0, len(e.conns))
	for c := range e.conns {
		conns = append(conns, c)
	}
	return conns
}
