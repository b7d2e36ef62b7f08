package txn

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Key names a transactional id of a tenant.
type Key = tenancy.Key[string]

// Config is what a Coordinator works with.
type Config struct {
	Store       Store
	Limits      Limits
	Open        *tenancy.Ceiling // transactional ids held by the process
	Staged      *tenancy.Ceiling // bytes of all stages
	Incarnation int64            // of this process, for operators who read the rows
	Patience    time.Duration    // how long a request waits for another one of its id; 0: 5 s
	Clock       func() time.Time // nil: time.Now
	Token       func() string    // fresh write ids; nil: random
}

// sweepEvery is how often time is looked at (kafka-surface §9).
const sweepEvery = time.Second

// Coordinator holds the stages of all tenants. It is safe for concurrent use.
type Coordinator struct {
	cfg     Config
	machine machine
	counted [endings]atomic.Int64

	mu      sync.Mutex // guards the fields below
	entries map[Key]*entry
	idle    map[tenancy.ID]*list.List // those without a transaction, the longest idle first
	groups  map[Key]map[*entry]bool   // by group: who has offsets of it staged
}

// entry is one held transactional id. Whoever has its turn may move its stage.
type entry struct {
	key  Key
	turn chan struct{} // of one token

	// The turn's holder writes these; others read them under mu.
	mu      sync.Mutex
	stage   *Stage
	scope   tenancy.Scope // of the last request
	session *Session      // of the last request

	// The Coordinator's mu guards these.
	place  *list.Element // in idle; nil: it has a transaction
	busy   bool          // somebody has the turn
	dead   bool
	groups []string // it is registered for
}

// Session is one connection, as far as its transactional ids go.
type Session struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	used   map[*entry]bool
}

// NewSession starts a connection's session.
func NewSession() *Session { return &Session{used: make(map[*entry]bool)} }

// New makes a Coordinator that holds nothing.
func New(cfg Config) *Coordinator {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Token == nil {
		cfg.Token = newToken
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	return &Coordinator{
		cfg: cfg, machine: machine{limits: cfg.Limits},
		entries: make(map[Key]*entry), idle: make(map[tenancy.ID]*list.List), groups: make(map[Key]map[*entry]bool),
	}
}

const defaultPatience = 5 * time.Second

// Run looks after deadlines until ctx ends.
func (c *Coordinator) Run(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.Sweep()
		}
	}
}

// Sweep ends what has run out of time. An id that a request is at is left to it.
func (c *Coordinator) Sweep() {
	for _, e := range c.all() {
		c.pass(e)
	}
}

// pass lets time pass for one entry, if nobody is at it.
func (c *Coordinator) pass(e *entry) {
	select {
	case <-e.turn:
	default:
		return
	}
	if !c.begin(e) {
		e.turn <- struct{}{}
		return
	}
	defer c.leave(e, false)
	var ev event = tick{}
	if e.session.over() {
		ev = closed{}
	}
	c.step(e, ev)
}

func (c *Coordinator) all() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*entry, 0, len(c.entries))
	for _, e := range c.entries {
		all = append(all, e)
	}
	return all
}

// do serves one request: it takes the id's turn, and goes from step to step
// until there is a reply.
func (c *Coordinator) do(ctx context.Context, by Caller, need int64, make_ func(request) event) Reply {
	e, out := c.enter(ctx, by.Scope, by.ID)
	if e == nil {
		return Reply{Outcome: out}
	}
	defer c.leave(e, true)
	c.use(e, by.Scope, by.Session)
	req := request{Producer: by.Producer, Token: c.cfg.Token()}
	if need > 0 {
		req.NoRoom = !c.cfg.Staged.Take(by.Scope, need)
		if !req.NoRoom {
			req.Took = need
		}
	}
	var ev event = make_(req)
	for {
		r, call := c.step(e, ev)
		if call == nil {
			return r
		}
		ev = c.perform(ctx, e, call)
	}
}

// step moves the stage and does what can be done at once. It returns the reply,
// or the call to make.
func (c *Coordinator) step(e *entry, ev event) (Reply, effect) {
	e.mu.Lock()
	effects := c.machine.step(e.stage, c.cfg.Clock(), ev)
	c.count(e.stage)
	e.mu.Unlock()
	var (
		out  Reply
		call effect
	)
	for _, f := range effects {
		switch f := f.(type) {
		case reply:
			out = Reply(f)
		case free:
			c.cfg.Staged.Give(e.scope, f.Bytes)
		case forget:
			c.forget(e)
		default:
			call = f
		}
	}
	return out, call
}

// perform makes a call.
func (c *Coordinator) perform(ctx context.Context, e *entry, call effect) event {
	if w, ok := call.(writeRow); ok {
		var b Bundle
		if w.Bundle {
			b = e.stage.bundle()
		}
		row := w.Row
		row.Incarnation, row.Timestamp = c.cfg.Incarnation, c.cfg.Clock().UnixMilli()
		r, err := c.cfg.Store.Write(ctx, e.scope, e.key.Name(), row.Encode(), w.Expect, b)
		return rowWritten{Applied: r.Applied, Version: r.Version, Value: r.Value, Err: err}
	}
	value, version, err := c.cfg.Store.Read(ctx, e.scope, e.key.Name())
	return rowRead{Value: value, Version: version, Err: err}
}

// use makes the request's connection the one that the id belongs to.
func (c *Coordinator) use(e *entry, s tenancy.Scope, session *Session) {
	e.mu.Lock()
	old := e.session
	e.scope, e.session = s, session
	e.mu.Unlock()
	if old != session {
		old.drop(e)
	}
	session.add(e)
}

func (s *Session) add(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[e] = true
}

func (s *Session) drop(e *entry) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, e)
}

func (s *Session) over() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// entries of the session at this moment.
func (s *Session) entries() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*entry, 0, len(s.used))
	for e := range s.used {
		all = append(all, e)
	}
	return all
}

// Close says that the connection has ended. What it had open is orphaned, never
// dropped: another connection may go on with it.
func (c *Coordinator) Close(s *Session) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, e := range s.entries() {
		c.pass(e)
	}
}
