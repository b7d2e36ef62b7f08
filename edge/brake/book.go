package brake

import "time"

// book knows the brakes of addresses, or of lanes: only of those of whom there is
// something to know, so it is small. It is bounded all the same. When it is full,
// the one gives way that would be forgotten soonest: whoever was refused most is
// remembered longest, so nobody gets rid of a long account by opening many short
// ones. Who is checked or waits never gives way.
type book[K comparable] struct {
	limits Limits
	wait   time.Duration
	most   int
	known  map[K]*brake
	sweep  int // known ones at which those are dropped that are like new
}

// sweepFrom is how few brakes are not worth looking through.
const sweepFrom = 64

func newBook[K comparable](l Limits, wait time.Duration, most int) book[K] {
	return book[K]{limits: l, wait: wait, most: max(most, 1), known: make(map[K]*brake), sweep: sweepFrom}
}

// find is the brake under k; nil where the book is full of those that cannot give
// way.
func (b *book[K]) find(now time.Time, k K) *brake {
	if br := b.known[k]; br != nil {
		return br
	}
	if !b.makeRoom(now) {
		return nil
	}
	br := newBrake(b.limits, b.wait)
	b.known[k] = br
	return br
}

func (b *book[K]) makeRoom(now time.Time) bool {
	if len(b.known) >= min(b.sweep, b.most) {
		for k, br := range b.known {
			if br.isForgettable(now) {
				delete(b.known, k)
			}
		}
		b.sweep = max(2*len(b.known), sweepFrom)
	}
	if len(b.known) < b.most {
		return true
	}
	var gives K
	found, most := false, 0.0
	for k, br := range b.known {
		if tokens := br.refusals.TokensAt(now); br.isIdle() && (!found || tokens > most) {
			gives, found, most = k, true, tokens
		}
	}
	if found {
		delete(b.known, gives)
	}
	return found
}
