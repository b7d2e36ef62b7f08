package tenancy

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates bounds how often each tenant does one thing (B6): a bucket for each, all
// of one size, that fills at one rate. A tenant that does more is in debt, and
// the debt has a bound too, so that a flood of an hour is not paid for by hours.
//
// A tenant whose bucket is full is forgotten: it is one that was never seen. The
// nil Rates has no limit. It is safe for concurrent use.
type Rates struct {
	limit rate.Limit
	burst int
	most  time.Duration // the deepest debt

	mu      sync.Mutex // guards the fields below
	buckets map[ID]*rate.Limiter
	swept   time.Time
}

// sweepRates is how often full buckets are looked for.
const sweepRates = 10 * time.Second

// NewRates makes a limit of perSecond for each tenant, of which burst may come at
// once after a rest, and debts of at most most. Both numbers are 1 at least.
func NewRates(perSecond, burst int, most time.Duration) *Rates {
	return &Rates{
		limit: rate.Limit(max(perSecond, 1)), burst: max(burst, 1), most: most,
		buckets: make(map[ID]*rate.Limiter),
	}
}

// Take counts n for a tenant, whatever it owes, and returns how long it takes
// until they are within its rate: 0 if they are.
func (r *Rates) Take(s Scope, n int, now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bucket(s.ID(), now)
	var owed time.Duration
	for range n { // one by one: a bucket may be smaller than n
		taken := b.ReserveN(now, 1)
		if owed = taken.DelayFrom(now); owed > r.most {
			taken.CancelAt(now)
			return r.most
		}
	}
	return owed
}

// Allow counts one for a tenant if that is within its rate, or reports false and
// counts nothing.
func (r *Rates) Allow(s Scope, now time.Time) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bucket(s.ID(), now).AllowN(now, 1)
}

// Tenants is how many are remembered.
func (r *Rates) Tenants() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.buckets)
}

// bucket finds a tenant's; r.mu is held.
func (r *Rates) bucket(id ID, now time.Time) *rate.Limiter {
	r.sweep(now)
	b := r.buckets[id]
	if b == nil {
		b = rate.NewLimiter(r.limit, r.burst)
		r.buckets[id] = b
	}
	return b
}

// sweep forgets the tenants that have rested; r.mu is held.
func (r *Rates) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepRates {
		return
	}
	r.swept = now
	for id, b := range r.buckets {
		if b.TokensAt(now) >= float64(r.burst) {
			delete(r.buckets, id)
		}
	}
}
