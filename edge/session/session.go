package session

import (
	"math"
	"slices"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Place is a partition as the client names it: by its topic's name, or from
// Fetch 13 on by the topic's id.
type Place struct {
	Topic     string
	ID        [16]byte
	Partition int32
}

// Want is what a client asks of a partition.
type Want struct {
	Place
	Offset   int64
	MaxBytes int32
}

// Told is what an answer says of a partition beside its records.
type Told struct {
	High, Start int64 // −1 where the answer does not know them
	Code        int16
	Records     bool // there are some
}

// part is a partition of a session.
type part struct {
	Want
	high, start int64 // last told; −1: nothing, or an error
	served      bool  // the answer under way has records of it
}

// Epochs of a request (KIP-227): 0 asks for a new session and −1 for none. The
// others count.
const (
	New  = 0
	None = -1
)

// Session is one session. Between Use and Done its connection owns it; else the
// Store does.
type Session struct {
	ID   int32 // never 0
	ByID bool  // its places are named by topic id

	store *Store
	scope tenancy.Scope
	epoch int32 // of the next request
	parts []*part
	index map[Place]*part
	bytes int64 // what the parts take
	held  int64 // of the store's bytes; the store's lock guards it
	state state // the store's lock guards it
	used  use   // the store's lock guards it
}

// What a session and a partition of it take in memory: what is kept, and what a
// request makes of it while it is served.
const (
	sessionBytes = 1 << 10
	partBytes    = 1 << 10
)

func costOf(w *Want) int64 { return partBytes + int64(len(w.Topic)) }

// Len is the number of partitions.
func (s *Session) Len() int { return len(s.parts) }

// Epoch is the epoch that the next request must carry.
func (s *Session) Epoch() int32 { return s.epoch }

// advance goes to the next epoch; 0 and −1 are left out.
func (s *Session) advance() {
	if s.epoch == math.MaxInt32 {
		s.epoch = 0
	}
	s.epoch++
}

// put adds a partition at the end, or changes what is asked of it.
func (s *Session) put(w *Want) *part {
	if p, ok := s.index[w.Place]; ok {
		p.Want = *w
		return p
	}
	p := &part{Want: *w, high: -1, start: -1}
	s.parts = append(s.parts, p)
	s.index[w.Place] = p
	s.bytes += costOf(w)
	return p
}

// Update goes one epoch on with what a request adds, changes and, after that,
// forgets. False means that there was no room: the session is gone.
func (s *Session) Update(wants []Want, forgotten []Place) bool {
	need := s.cost()
	for i := range wants {
		if _, known := s.index[wants[i].Place]; !known {
			need += costOf(&wants[i])
		}
	}
	if need > s.cost() && !s.store.resize(s, need) {
		s.store.Drop(s)
		return false
	}
	for i := range wants {
		s.put(&wants[i])
	}
	s.forget(forgotten)
	if s.cost() < need { // something was forgotten, or named twice
		s.store.resize(s, s.cost())
	}
	s.advance()
	return true
}

func (s *Session) forget(places []Place) {
	gone := false
	for _, place := range places {
		if p, ok := s.index[place]; ok {
			delete(s.index, place)
			s.bytes -= costOf(&p.Want)
			gone = true
		}
	}
	if gone {
		s.parts = slices.DeleteFunc(s.parts, func(p *part) bool { return s.index[p.Place] != p })
	}
}

func (s *Session) cost() int64 { return sessionBytes + s.bytes }

// Each calls fn for every partition, in the order in which they are served.
func (s *Session) Each(fn func(w *Want)) {
	for _, p := range s.parts {
		fn(&p.Want)
	}
}

// Changed notes what an answer says of the partition at a position of Each, and
// reports whether the client has to be told: there are records, an error, or
// bounds that it does not know. An answer that knows nothing is none.
func (s *Session) Changed(i int, t Told) bool {
	p := s.parts[i]
	switch {
	case t.Code != 0:
		p.high, p.start = -1, -1 // its end will be told
		return true
	case t.High < 0:
		return t.Records
	}
	changed := t.Records || t.High != p.high || t.Start != p.start
	p.high, p.start, p.served = t.High, t.Start, t.Records
	return changed
}

// Rotate puts the partitions whose records were told last: where an answer has
// no room for all, the others come first the next time.
func (s *Session) Rotate() {
	n := 0
	var served []*part
	for _, p := range s.parts {
		if p.served {
			p.served = false
			served = append(served, p)
			continue
		}
		s.parts[n] = p
		n++
	}
	copy(s.parts[n:], served)
}
