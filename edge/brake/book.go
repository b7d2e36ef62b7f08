package brake

import (
	"container/heap"
	"time"
)

// book knows the brakes of addresses, or of lanes: only of those of whom there is
// something to know, so it is small. It is bounded all the same. When it is full,
// the one gives way that would be forgotten soonest: whoever was refused most is
// remembered longest, so nobody gets rid of a long account by opening many short
// ones. Who is checked or waits never gives way.
//
// Strangers fill it, so nothing that they bring about looks through it.
type book[K comparable] struct {
	kind   Brake
	limits Limits
	wait   time.Duration
	most   int
	known  map[K]*brake
	names  map[*brake]K
	shelf  shelf
}

func newBook[K comparable](kind Brake, l Limits, wait time.Duration, most int) book[K] {
	return book[K]{
		kind: kind, limits: l, wait: wait, most: max(most, 1),
		known: make(map[K]*brake), names: make(map[*brake]K),
	}
}

// find is the brake under k, for somebody who comes to it; nil where the book is
// full of those that cannot give way. settle is called afterwards.
func (b *book[K]) find(now time.Time, k K) *brake {
	if br := b.known[k]; br != nil {
		b.take(br)
		return br
	}
	for len(b.shelf) > 0 && (!b.shelf[0].full.After(now) || len(b.known) >= b.most) {
		br := b.shelf[0]
		b.take(br)
		delete(b.known, b.names[br])
		delete(b.names, br)
	}
	if len(b.known) >= b.most {
		return nil
	}
	br := newBrake(b.kind, b.limits, b.wait)
	b.known[k], b.names[br] = br, k
	return br
}

// settle puts a brake at which nobody is any more among those that may give way.
func (b *book[K]) settle(br *brake, now time.Time) {
	if br != nil && br.shelf < 0 && br.isIdle() {
		br.full = br.fullAt(now)
		heap.Push(&b.shelf, br)
	}
}

func (b *book[K]) take(br *brake) {
	if br.shelf >= 0 {
		heap.Remove(&b.shelf, br.shelf)
	}
}

// shelf is a heap of the brakes at which nobody is: the first is full soonest.
type shelf []*brake

// Len implements heap.Interface.
func (s shelf) Len() int { return len(s) }

// Less implements heap.Interface.
func (s shelf) Less(i, j int) bool { return s[i].full.Before(s[j].full) }

// Swap implements heap.Interface.
func (s shelf) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].shelf, s[j].shelf = i, j
}

// Push implements heap.Interface.
func (s *shelf) Push(v any) {
	br := v.(*brake)
	br.shelf = len(*s)
	*s = append(*s, br)
}

// Pop implements heap.Interface.
func (s *shelf) Pop() any {
	last := len(*s) - 1
	br := (*s)[last]
	(*s)[last], br.shelf = nil, -1
	*s = (*s)[:last]
	return br
}
