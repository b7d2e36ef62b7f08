package turn

import (
	"container/heap"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Bounds, in ticks of Every.
const (
	longestTurn = 2   // a turn that is kept for longer is over: 50 to 75 ms
	longestWait = 200 // who has waited for so long, 5 s, goes on without a turn
)

// fixedCost is what a request costs beside its bytes, in bytes: its calls and
// wake-ups take about what as many bytes do. It is due with the turn; the bytes are
// when they are known, at its end.
const fixedCost = 16 << 10

// Line is who waits for a turn, and who has one. It is safe for concurrent use.
type Line struct {
	least   int     // turns that there are at least
	reserve float64 // part of them that one tenant leaves to others; 0: nobody ever waits

	mu      sync.Mutex // guards the fields below, and all tenants and seats
	limit   int        // turns that there are; 0: as many as are taken
	closed  bool
	held    chain // the oldest first
	tenants map[tenancy.ID]*tenant
	next    ranking // tenants that wait
	now     int64   // what the tenant that was served last had had by then
	places  uint64  // given to tenants that began to wait, for ties
	tick    int
	peak    int // most turns held since the last tick
	calm    int // ticks in a row in which nobody waited
	waited  bool
	stats   Stats
}

// Stats are counters, and what there is now.
type Stats struct {
	Waiting int           // requests that wait for a turn
	Limit   int           // turns that there are; 0: nobody waits
	Waits   int64         // requests that have waited
	Waited  time.Duration // for how long in all
}

// tenant is one that has connections.
type tenant struct {
	seats   int
	held    int
	waiting chain
	had     int64  // what it has been served, in bytes, on the line's scale
	place   uint64 // when it began to wait
	rank    int    // in the ranking; −1: it is not there
}

// New makes a line of which at least 2 turns, or least, are handed out at once.
// The fraction reserve of them, and one at least, is what one tenant that waits
// alone leaves to those who come; with none, 0, nobody ever waits.
func New(least int, reserve float64) *Line {
	return &Line{least: max(least, 2), reserve: reserve, tenants: make(map[tenancy.ID]*tenant)}
}

// Stats are what there is to tell.
func (l *Line) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Limit = l.limit
	return s
}

// most is what one tenant may hold of the turns while nobody else is in line.
func (l *Line) most() int {
	kept := max(int(float64(l.limit)*l.reserve), 1)
	return max(l.limit-kept, 1)
}

// take puts a seat in line and serves the line; l.mu is held.
func (l *Line) take(s *Seat) {
	s.since = l.tick
	if l.limit == 0 {
		l.grant(s)
		return
	}
	t := s.tenant
	if t.waiting.n == 0 {
		l.places++
		t.had, t.place = max(t.had, l.now), l.places
	}
	s.state = waiting
	t.waiting.push(s)
	l.rank(t)
	l.serve()
}

// serve hands out what turns there are; l.mu is held.
func (l *Line) serve() {
	for len(l.next) > 0 && (l.limit == 0 || l.held.n < l.limit) {
		t := l.next[0]
		if len(l.next) == 1 && l.limit > 0 && t.held >= l.most() {
			return
		}
		s := t.waiting.first
		t.waiting.remove(s)
		l.now = max(l.now, t.had)
		t.had += fixedCost
		s.since = l.tick
		l.grant(s)
		l.rank(t)
	}
}

// grant gives a seat, which is in no chain, a turn; l.mu is held.
func (l *Line) grant(s *Seat) {
	s.state = holding
	s.tenant.held++
	l.held.push(s)
	l.peak = max(l.peak, l.held.n)
	if s.asleep {
		s.asleep = false
		s.ready <- struct{}{} // there is room for one
	}
}

// charge adds to what a tenant has had; l.mu is held.
func (l *Line) charge(t *tenant, bytes int) {
	if l.limit > 0 && bytes > 0 {
		t.had += int64(bytes)
		l.rank(t)
	}
}

// end takes a turn back; l.mu is held.
func (l *Line) end(s *Seat) {
	s.state = standing
	l.held.remove(s)
	s.tenant.held--
}

// leave takes a seat out of the line without a turn; l.mu is held.
func (l *Line) leave(s *Seat) {
	s.state = standing
	s.tenant.waiting.remove(s)
	l.rank(s.tenant)
	if s.asleep {
		s.asleep = false
		s.ready <- struct{}{}
	}
}

// rank puts a tenant where it belongs; l.mu is held.
func (l *Line) rank(t *tenant) {
	waits := t.waiting.n > 0
	switch {
	case waits && t.rank < 0:
		heap.Push(&l.next, t)
	case waits:
		heap.Fix(&l.next, t.rank)
	case t.rank >= 0:
		heap.Remove(&l.next, t.rank)
	}
}

// ranking is the tenants that wait: the one that has had least first, of equals the
// one that has waited longer. It is a heap.
type ranking []*tenant

func (r ranking) Len() int { return len(r) }
func (r ranking) Less(i, j int) bool {
	if r[i].had != r[j].had {
		return r[i].had < r[j].had
	}
	return r[i].place < r[j].place
}

func (r ranking) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].rank, r[j].rank = i, j
}

func (r *ranking) Push(x any) {
	t := x.(*tenant)
	t.rank = len(*r)
	*r = append(*r, t)
}

func (r *ranking) Pop() any {
	old := *r
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*r = old[:len(old)-1]
	t.rank = -1
	return t
}
