package api

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/queen-mq/queen-edge/edge/session"
	"github.com/queen-mq/queen-edge/edge/slab"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Conn is one connection's protocol state: its login, and what it has learned
// about its producers. One goroutine at a time uses it.
type Conn struct {
	Login *sasl.Exchange
	Lane  sni.Lane
	User  string // label of the login, for logs only
	Host  string // where the client is, as groups show it: /192.0.2.1
	// From is the address that the login brakes know the client by.
	From netip.Prefix
	// Poll ends when nobody waits for a long poll any more: the client has left,
	// or the gateway drains.
	Poll context.Context
	// Park gives the memory of the request that is being served back before it is
	// answered; its frame must not be looked at any more. Nil: there is nothing to
	// give back.
	Park func()
	// Admit takes the tenant's place for this connection, or returns why the
	// connection ends instead; checked is when the cell took its credential.
	Admit func(s tenancy.Scope, checked time.Time) error
	// Throttle returns what the answer under construction asks its client to wait,
	// in whole milliseconds; named is the timeout its request names, 0 for none. Nil:
	// nobody is asked to.
	Throttle func(named time.Duration) time.Duration
	// Renewed is told of another credential of the same tenant that the connection
	// has logged in with again; nil: nobody is told.
	Renewed func(s tenancy.Scope, checked time.Time)
	// LoginEnded is told how each login ended, by whoever serves the connection;
	// nil: nobody is told.
	LoginEnded func(LoginEnd)
	// Deed is told what requests of this connection have changed for good, for the
	// audit log; nil: nobody is told.
	Deed func(Deed)

	scope  tenancy.Scope
	proved bool
	ends   atomic.Int64 // of the login, in milliseconds since 1970; 0: never
	since  time.Time    // of the last login
	order  *txn.Order
	txns   *txn.Session
	held   *txn.Coordinator // that txns belongs to, once proved
	// fetches are the connection's fetch sessions, the oldest first. Others of the
	// tenant may have taken a session's room: then it is there and gone.
	fetches  []*session.Session
	sessions *session.Store
	refuse   *Refusal
	answer   lease       // memory of the answers under construction, until Written
	memory   pieces      // of what lies elsewhere than in their bytes
	lent     []wire.Lent // of that, what is to be written
	swell    int         // memory that a byte of the last Produce took
}

// Refusal is a refused login: the connection closes once its answer was read.
type Refusal struct{ Log string }

// NewConn starts a connection that has proved nothing.
func (h *Handlers) NewConn(login *sasl.Exchange, lane sni.Lane) *Conn {
	return &Conn{Login: login, Lane: lane, order: txn.NewOrder(nil), txns: txn.NewSession()}
}

// Prove gives the connection its Scope, once: its tenant never changes during a
// connection.
func (h *Handlers) Prove(c *Conn, s tenancy.Scope) {
	if c.proved {
		panic("api: a connection's Scope was about to change")
	}
	c.scope, c.proved = s, true
	c.held = h.cfg.Txns
	c.answer = lease{ceiling: h.cfg.Answers, scope: s}
	c.sessions = h.cfg.Sessions
	c.order = txn.NewOrder(room{scope: s, ceiling: h.cfg.Producers})
}

// Over reports that the login's lifetime has passed: nothing but another login is
// answered any more (KIP-368). Any goroutine may ask.
func (c *Conn) Over(now time.Time) bool {
	end := c.ends.Load()
	return end > 0 && now.UnixMilli() >= end
}

// Ends is when the login's lifetime passes; zero: never. Any goroutine may ask.
func (c *Conn) Ends() time.Time {
	if end := c.ends.Load(); end > 0 {
		return time.UnixMilli(end)
	}
	return time.Time{}
}

// Proved reports whether the connection has a Scope.
func (c *Conn) Proved() bool { return c.proved }

// Scope is the proved tenant; without one it panics.
func (c *Conn) Scope() tenancy.Scope {
	if !c.proved {
		panic("api: Scope of a connection that has not logged in")
	}
	return c.scope
}

// Refused returns the refusal of the login, if there was one.
func (c *Conn) Refused() (Refusal, bool) {
	if c.refuse == nil {
		return Refusal{}, false
	}
	return *c.refuse, true
}

// borrow is memory for a response whose parts lie in it. It goes back when the
// response has been written.
func (c *Conn) borrow(pool *slab.Pool) *pieces {
	c.memory.pool = pool
	return &c.memory
}

// Lent are the parts of the answers made so far that lie elsewhere, until
// Written.
func (c *Conn) Lent() []wire.Lent { return c.lent }

// answerRoom waits for the memory an answer will take before it is made. The
// connection of one that gets none is closed: an answer without its topics would
// tell the client that they are gone.
func (c *Conn) answerRoom(ctx context.Context, n int64, wait time.Duration) error {
	if err := c.answer.wait(ctx, n, wait); err != nil {
		return wire.Closing(wire.CapacityBytes, err)
	}
	c.answer.base = c.answer.taken
	return nil
}

// park is for a request that may wait for long, once all that it needs of its
// frame has been copied and is counted elsewhere.
func (c *Conn) park() {
	if c.Park != nil {
		c.Park()
	}
}

// keptParts is for how many parts of its next answer a connection keeps room:
// nobody counts it, and it may be idle for ever.
const keptParts = 64

// Written says that the answers made so far are on their way: their memory is
// free.
func (c *Conn) Written() {
	clear(c.lent[:cap(c.lent)])
	if c.lent = c.lent[:0]; cap(c.lent) > keptParts {
		c.lent = nil
	}
	c.memory.release()
	c.answer.release()
}

// Close gives back what the connection holds.
func (c *Conn) Close() {
	c.Written()
	c.order.Close()
	for _, s := range c.fetches {
		c.sessions.Drop(s)
	}
	c.fetches = nil
	if c.held != nil {
		c.held.Close(c.txns)
	}
}

// room bounds the producer states of all connections, with the tenants' reserve.
type room struct {
	scope   tenancy.Scope
	ceiling *tenancy.Ceiling
}

func (r room) Take() bool { return r.ceiling.Take(r.scope, 1) }
func (r room) Give(n int) { r.ceiling.Give(r.scope, int64(n)) }
