package turn

import (
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Seat is where a connection takes its turns: one at a time, and by one goroutine
// at a time.
type Seat struct {
	line   *Line
	tenant *tenant
	id     tenancy.ID

	// The line's lock guards the rest.
	state      state
	asleep     bool          // somebody sleeps until ready
	ready      chan struct{} // nil until it is needed
	since      int           // the tick at which it began to wait, or got its turn
	prev, next *Seat         // in the one chain it is in
}

type state uint8

const (
	standing state = iota
	waiting
	holding
)

// Enter gives a connection of a tenant its seat. It is left once, when nobody
// uses it.
func (l *Line) Enter(s tenancy.Scope) *Seat {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := s.ID()
	t := l.tenants[id]
	if t == nil {
		t = &tenant{rank: -1}
		l.tenants[id] = t
	}
	t.seats++
	return &Seat{line: l, tenant: t, id: id}
}

// Leave gives the seat up, and the turn that it may have.
func (s *Seat) Leave() {
	s.Give(0)
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	if s.tenant.seats--; s.tenant.seats == 0 {
		delete(s.line.tenants, s.id)
	}
}

// Take waits for a turn, which Give ends: for as long as done does not, and for
// longestWait at most. Then the request is served without one.
func (s *Seat) Take(done <-chan struct{}) {
	l := s.line
	l.mu.Lock()
	l.take(s)
	if s.state != waiting {
		l.mu.Unlock()
		return
	}
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
	}
	s.asleep, l.waited = true, true
	l.stats.Waiting++
	l.mu.Unlock()

	began := time.Now()
	woken := false
	select {
	case <-s.ready:
		woken = true
	case <-done:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Waiting--
	l.stats.Waits++
	l.stats.Waited += time.Since(began)
	if woken {
		return
	}
	if s.asleep {
		s.asleep = false
		l.leave(s)
		return
	}
	<-s.ready // it was woken in the same instant
}

// Give ends the turn, if there still is one. The bytes are those that were read and
// made in it, or after it: the tenant's next turn comes the later.
func (s *Seat) Give(bytes int) {
	l := s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charge(s.tenant, bytes)
	if s.state == holding {
		l.end(s)
		l.serve()
	}
}

// chain is seats one behind the other.
type chain struct {
	first, last *Seat
	n           int
}

func (c *chain) push(s *Seat) {
	s.prev, s.next = c.last, nil
	if c.last == nil {
		c.first = s
	} else {
		c.last.next = s
	}
	c.last = s
	c.n++
}

func (c *chain) remove(s *Seat) {
	if s.prev == nil {
		c.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		c.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	c.n--
}
