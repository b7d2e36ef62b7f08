package tenancy

import (
	"context"
	"sync"
)

// Ceiling bounds one process-wide resource and keeps a reserve (B6): a tenant
// that already holds the reserve's fraction of the ceiling may only use what
// lies below the reserve, so one tenant alone never shuts the door on another.
type Ceiling struct {
	limit   int64
	reserve int64

	mu       sync.Mutex // guards the fields below
	total    int64
	byTenant map[ID]int64
	waiting  []*waiter
}

type waiter struct {
	id    ID
	n     int64
	ready chan struct{}
}

// NewCeiling makes a ceiling of limit units of which the fraction reserve
// (0 … 0.9) is kept.
func NewCeiling(limit int64, reserve float64) *Ceiling {
	return &Ceiling{
		limit:    limit,
		reserve:  int64(float64(limit) * reserve),
		byTenant: make(map[ID]int64),
	}
}

// Take takes n units for a tenant, or reports false and takes nothing.
func (c *Ceiling) Take(s Scope, n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(s.ID(), n)
}

// TakeUnproved takes n units for a connection that has not logged in. Its
// owner bounds how many there may be. Promote or GiveUnproved ends it.
func (c *Ceiling) TakeUnproved(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total+n > c.limit {
		return false
	}
	c.total += n
	return true
}

// Promote turns n unproved units into the tenant's, or reports false and
// leaves them unproved.
func (c *Ceiling) Promote(s Scope, n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total -= n
	if c.take(s.ID(), n) {
		return true
	}
	c.total += n
	return false
}

// Give returns n units of a tenant.
func (c *Ceiling) Give(s Scope, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := s.ID()
	if c.byTenant[id] -= n; c.byTenant[id] <= 0 {
		delete(c.byTenant, id)
	}
	c.give(n)
}

// GiveUnproved returns n unproved units.
func (c *Ceiling) GiveUnproved(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.give(n)
}

// Wait takes n units for a tenant, waiting in line while there is no room. An
// n above what the tenant could ever hold is cut to that, so that one large
// request waits for an empty house instead of for ever. It returns what it
// took, to be given back, or the context's error and nothing taken.
func (c *Ceiling) Wait(ctx context.Context, s Scope, n int64) (int64, error) {
	id := s.ID()
	n = min(n, c.limit-c.reserve)
	c.mu.Lock()
	if c.take(id, n) {
		c.mu.Unlock()
		return n, nil
	}
	w := &waiter{id: id, n: n, ready: make(chan struct{})}
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()

	select {
	case <-w.ready:
		return n, nil
	case <-ctx.Done():
	}
	if !c.leave(w) { // admitted in the same instant
		c.Give(s, n)
	}
	return 0, ctx.Err()
}

// Total is how many units are taken, unproved ones included.
func (c *Ceiling) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Held is how many units a tenant holds.
func (c *Ceiling) Held(s Scope) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byTenant[s.ID()]
}

// Limit is the ceiling itself.
func (c *Ceiling) Limit() int64 { return c.limit }

// take is the rule; c.mu is held.
func (c *Ceiling) take(id ID, n int64) bool {
	room := c.limit
	if c.byTenant[id]+n > c.reserve {
		room -= c.reserve
	}
	if c.total+n > room {
		return false
	}
	c.total += n
	c.byTenant[id] += n
	return true
}

// give returns units and lets in, in their order, those that now fit. One that
// does not fit holds back its own tenant only; c.mu is held.
func (c *Ceiling) give(n int64) {
	c.total -= n
	held := map[ID]bool(nil)
	kept := c.waiting[:0]
	for _, w := range c.waiting {
		if !held[w.id] && c.take(w.id, w.n) {
			close(w.ready)
			continue
		}
		if held == nil {
			held = make(map[ID]bool)
		}
		held[w.id] = true
		kept = append(kept, w)
	}
	clear(c.waiting[len(kept):])
	c.waiting = kept
}

// leave takes w out of the line; false means that it was already let in.
func (c *Ceiling) leave(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.waiting {
		if other == w {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}
