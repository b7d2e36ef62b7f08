package tenancy

import (
	"context"
	"maps"
	"math"
	"sync"
)

// Ceiling bounds one process-wide resource and keeps a reserve (B6): a tenant
// that already holds the reserve's fraction of the ceiling may only use what
// lies below the reserve, so one tenant alone never shuts the door on another.
//
// One tenant alone holds at most limit − reserve, whatever the fraction: where
// the reserve is more than half, a tenant stops being a small one at what lies
// below it.
type Ceiling struct {
	limit   int64
	reserve int64 // for small tenants only
	small   int64 // a tenant that holds no more is a small one
	each    int64 // most of one tenant; 0: what the ceiling leaves it

	mu       sync.Mutex // guards the fields below
	total    int64
	byTenant map[ID]int64
	lines    ceilingLines
}

// NewCeiling makes a ceiling of limit units of which the fraction reserve
// (0 … 0.9) is kept, rounded up: a small ceiling keeps one too, if it has two.
func NewCeiling(limit int64, reserve float64) *Ceiling {
	const rounding = 1e-9 // 0.07·100 is a little more than 7
	kept := int64(math.Ceil(float64(limit)*reserve - rounding))
	kept = max(min(kept, limit-1), 0)
	return &Ceiling{
		limit:    limit,
		reserve:  kept,
		small:    min(kept, limit-kept),
		byTenant: make(map[ID]int64),
	}
}

// PerTenant sets a limit for every tenant on its own, beside what the ceiling leaves
// it: n units, but one taking of more than that while the tenant holds nothing.
// 0 is none. It is called before the first Take, and returns c.
func (c *Ceiling) PerTenant(n int64) *Ceiling {
	c.each = n
	return c
}

// Full reports whether a tenant's own limit, not the ceiling, keeps it from n
// units more.
func (c *Ceiling) Full(s Scope, n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full(s.ID(), n)
}

// Take takes n units for a tenant, or reports false and takes nothing.
func (c *Ceiling) Take(s Scope, n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(s.ID(), n)
}

// Give returns n units of a tenant.
func (c *Ceiling) Give(s Scope, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := s.ID()
	if c.byTenant[id] -= n; c.byTenant[id] <= 0 {
		delete(c.byTenant, id)
	}
	c.total -= n
	c.admit()
}

// Wait takes n units for a tenant, waiting while there is no room, in line
// behind those of the same tenant that wait. An n above what the tenant could
// ever hold is cut to that, so that one large request waits for an empty house
// instead of for ever. It returns what it took, to be given back, or the
// context's error and nothing taken.
func (c *Ceiling) Wait(ctx context.Context, s Scope, n int64) (int64, error) {
	id := s.ID()
	n = min(n, c.limit-c.reserve)
	c.mu.Lock()
	if !c.lines.has(id) && c.take(id, n) {
		c.mu.Unlock()
		return n, nil
	}
	w := &waiter{id: id, n: n, ready: make(chan struct{})}
	c.lines.add(w)
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

// Total is how many units are taken.
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

// Each calls fn with what each tenant holds, in no order.
func (c *Ceiling) Each(fn func(id ID, n int64)) {
	c.mu.Lock()
	held := maps.Clone(c.byTenant)
	c.mu.Unlock()
	for id, n := range held {
		fn(id, n)
	}
}

// Most is what one tenant can hold.
func (c *Ceiling) Most() int64 { return c.limit - c.reserve }

// Limit is the ceiling itself.
func (c *Ceiling) Limit() int64 { return c.limit }

// take is the rule; c.mu is held.
func (c *Ceiling) take(id ID, n int64) bool {
	if n <= 0 {
		return true // nothing is taken, and no tenant is kept for it
	}
	if c.full(id, n) {
		return false
	}
	room := c.limit
	if n > c.small-c.byTenant[id] {
		room -= c.reserve
	}
	if n > room-c.total {
		return false
	}
	c.total += n
	c.byTenant[id] += n
	return true
}

// full is a tenant's own limit; c.mu is held.
func (c *Ceiling) full(id ID, n int64) bool {
	held := c.byTenant[id]
	return c.each > 0 && held > 0 && n > c.each-held
}

// admit lets in, in their order, those that now fit. One that does not fit
// holds back its own tenant only; c.mu is held.
func (c *Ceiling) admit() {
	c.lines.each(func(w *waiter) bool {
		if !c.take(w.id, w.n) {
			return false
		}
		close(w.ready)
		return true
	})
}

// leave takes w out of the line; false means that it was already let in. Those
// whom it held back may go now.
func (c *Ceiling) leave(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines.remove(w) {
		return false
	}
	c.admit()
	return true
}
