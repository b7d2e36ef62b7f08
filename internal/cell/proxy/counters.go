package proxy

import "sync/atomic"

// Counters count requests by route, refused ones too, from the moment their
// route is known: a parked fetch is counted while it is parked.
type Counters struct {
	n [numRoutes]atomic.Int64
}

// Of returns one route's count.
func (c *Counters) Of(r Route) int64 { return c.n[r].Load() }

// All returns the counts by route name.
func (c *Counters) All() map[string]int64 {
	all := make(map[string]int64, numRoutes)
	for r := range numRoutes {
		all[r.String()] = c.n[r].Load()
	}
	return all
}

// add counts one request.
func (c *Counters) add(r Route) { c.n[r].Add(1) }
