package session

import (
	"container/list"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Config bounds the sessions of a process.
type Config struct {
	Count *tenancy.Ceiling // sessions
	Bytes *tenancy.Ceiling // of memory
	Idle  time.Duration    // what was used since then does not make room for others
	Clock func() time.Time // nil: time.Now
	NewID func() int32     // a random id above 0
}

// Store holds the sessions of all tenants. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu    sync.Mutex                           // guards lines and, of each session, held, state and used
	lines map[tenancy.Key[struct{}]]*list.List // sessions of a tenant, the least recently used first
}

// state says who owns a session.
type state uint8

const (
	idle  state = iota
	inUse       // by its connection
	gone
)

// use is when a session was last used, and its element in its tenant's line.
type use struct {
	at   time.Time
	line *list.Element
}

// NewStore makes a Store.
func NewStore(cfg Config) *Store {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Store{cfg: cfg, lines: make(map[tenancy.Key[struct{}]]*list.List)}
}

// Open makes a session of partitions and what was told of them; in use, like
// after Use. taken reports ids that the connection has already. Nil means that
// there is no room: the client is served without a session.
func (st *Store) Open(s tenancy.Scope, byID bool, wants []Want, told func(i int) Told, taken func(id int32) bool) *Session {
	need := int64(sessionBytes)
	for i := range wants {
		need += costOf(&wants[i])
	}
	n := &Session{ByID: byID, store: st, scope: s, epoch: 1, state: inUse}
	if !st.admit(n, need) {
		return nil
	}
	for n.ID = st.cfg.NewID(); n.ID == 0 || taken(n.ID); n.ID = st.cfg.NewID() {
	}
	n.index = make(map[Place]*part, len(wants))
	for i := range wants {
		p, t := n.put(&wants[i]), told(i)
		if t.Code != 0 || t.High < 0 {
			t.High, t.Start = -1, -1
		}
		p.high, p.start, p.served = t.High, t.Start, t.Records
	}
	n.Rotate()
	st.resize(n, n.cost()) // a place named twice is one
	return n
}

// admit takes the room of a new session and puts it into its tenant's line.
func (st *Store) admit(n *Session, need int64) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.take(st.cfg.Count, n.scope, 1) {
		return false
	}
	if !st.take(st.cfg.Bytes, n.scope, need) {
		st.cfg.Count.Give(n.scope, 1)
		return false
	}
	n.held = need
	line := st.line(n.scope)
	n.used = use{at: st.cfg.Clock(), line: line.PushBack(n)}
	return true
}

func (st *Store) line(s tenancy.Scope) *list.List {
	key := tenancy.KeyOf(s, struct{}{})
	line, ok := st.lines[key]
	if !ok {
		line = list.New()
		st.lines[key] = line
	}
	return line
}

// take takes from a ceiling, at the cost of the same tenant's sessions that have
// been idle for long; st.mu is held.
func (st *Store) take(c *tenancy.Ceiling, s tenancy.Scope, n int64) bool {
	for !c.Take(s, n) {
		if !st.evict(s) {
			return false
		}
	}
	return true
}

// evict drops the tenant's session that was used least recently, if it has been
// idle for long enough; st.mu is held.
func (st *Store) evict(s tenancy.Scope) bool {
	line, ok := st.lines[tenancy.KeyOf(s, struct{}{})]
	if !ok {
		return false
	}
	since := st.cfg.Clock().Add(-st.cfg.Idle)
	for e := line.Front(); e != nil; e = e.Next() {
		old := e.Value.(*Session)
		if old.used.at.After(since) {
			return false
		}
		if old.state == idle {
			st.drop(old)
			return true
		}
	}
	return false
}

// Use takes a session for a request. False means that it is gone.
func (st *Store) Use(s *Session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if s.state == gone {
		return false
	}
	s.state = inUse
	return true
}

// Done gives a session back after a request.
func (st *Store) Done(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if s.state == gone {
		return
	}
	s.state, s.used.at = idle, st.cfg.Clock()
	st.line(s.scope).MoveToBack(s.used.line)
}

// Drop ends a session; one that is gone stays so.
func (st *Store) Drop(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if s.state != gone {
		st.drop(s)
	}
}

// drop gives back what a session holds; st.mu is held, and nobody uses it.
func (st *Store) drop(s *Session) {
	key := tenancy.KeyOf(s.scope, struct{}{})
	line := st.lines[key]
	if line.Remove(s.used.line); line.Len() == 0 {
		delete(st.lines, key)
	}
	st.cfg.Count.Give(s.scope, 1)
	st.cfg.Bytes.Give(s.scope, s.held)
	s.state, s.held, s.parts, s.index = gone, 0, nil, nil
}

// resize makes a session in use hold n bytes.
func (st *Store) resize(s *Session, n int64) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if n < s.held {
		st.cfg.Bytes.Give(s.scope, s.held-n)
	} else if !st.take(st.cfg.Bytes, s.scope, n-s.held) {
		return false
	}
	s.held = n
	return true
}
