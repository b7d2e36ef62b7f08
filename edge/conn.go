package edge

import (
	"bufio"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/turn"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// conn is one connection. serve's goroutine owns it and reads; a worker answers
// while there are requests to answer.
type conn struct {
	srv      *Server
	nc       net.Conn   // TLS where there is TLS
	hello    *helloConn // below it; nil: a plaintext listener
	raw      net.Conn   // what was accepted
	client   net.Addr   // where the client is: behind a balancer, what that says
	accepted time.Time
	life     context.Context    // ends when the connection is cut
	poll     context.Context    // ends when nobody waits for a long poll any more
	stopPoll context.CancelFunc // ends poll
	api      *api.Conn
	queue    *queue
	pace     *pace      // nil: there is no rate to keep
	seat     *turn.Seat // of a connection that is promoted
	worker   sync.WaitGroup
	place    *list.Element // in the door's list; the door's lock guards it
	scope    tenancy.Scope // with promoted: set by promote
	promoted bool
	watched  tenancy.Scope // what the watch knows the connection by: the worker's after the login

	entry     context.Context    // ends when the connection ends: nobody waits for its login any more
	stopEntry context.CancelFunc // ends entry

	in       stallReader
	br       *bufio.Reader // nil while idle
	first    [1]byte       // read while waiting for a request
	hasFirst bool
	spoke    bool      // a byte of a request has come
	freed    time.Time // when the last request began to be read to its end: no mute, nor want of room, held it any more
	leave    leave
	draining atomic.Bool
	loggedIn atomic.Bool
	ended    atomic.Pointer[wire.Close] // why, once; the first reason stands
	serving  *frame                     // the worker's; nil: none
	verdict  error                      // the worker's, for serve: set before the worker ends
}

func (s *Server) newConn(life context.Context, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, raw: nc, client: nc.RemoteAddr(), accepted: s.clock(), life: life, queue: newQueue()}
	c.entry, c.stopEntry = context.WithCancel(life)
	c.poll, c.stopPoll = context.WithCancel(c.entry)
	c.leave.after(time.Now(), s.cfg.ConnectionMaxAge, rand.Float64())
	c.in = stallReader{stall: s.cfg.Limits.FrameStall, rate: s.cfg.Limits.FrameRate, linger: s.cfg.Limits.Linger}
	if s.tls != nil {
		c.hello = &helloConn{Conn: nc}
		c.nc = tls.Server(c.hello, s.tls.TLS())
	}
	c.in.nc = c.nc
	return c
}

// serve is the connection's life, top to bottom.
func (c *conn) serve() {
	defer c.srv.wg.Done()
	defer c.close()
	defer c.recovered()

	if err := c.proxied(); err != nil {
		c.end(err)
		return
	}
	lane, err := c.handshake()
	if err != nil {
		c.end(err)
		return
	}
	c.api = c.srv.handlers.NewConn(sasl.New(c.srv.cfg.SASL), lane)
	c.api.Park = c.park
	c.api.Renewed, c.api.LoginEnded = c.renewed, c.loginEnded
	if c.pace = newPace(c.srv.limits); c.pace != nil {
		c.api.Throttle, c.queue.bell = c.throttle, make(chan struct{}, 1)
	}
	c.api.Poll, c.api.Admit = c.poll, c.promote
	c.api.Host, c.api.From = clientHost(c.client), clientNet(c.client)
	c.auditing()
	if err := c.login(); err != nil {
		c.end(c.probed(err))
		return
	}
	c.in.draining = &c.draining
	c.loggedIn.Store(true)
	err = c.requests()
	c.stopPoll() // nobody waits any more
	c.worker.Wait()
	if c.verdict != nil {
		err = c.verdict
	}
	if reason := closeOf(err).Reason; polite(reason) {
		c.halfClose(reason)
	}
	c.end(c.probed(err))
}

// probed names the end of a connection on which no byte of a request came: a
// balancer looks whether somebody listens, and whether they speak TLS.
func (c *conn) probed(err error) error {
	if c.spoke {
		return err
	}
	switch closeOf(err).Reason {
	case wire.ClientClosed, wire.ClientError:
		return wire.Closing(wire.ProbeClosed, err)
	}
	return err
}

// promote turns the connection's place into one of its tenant's. The error says
// why the connection ends instead: the tenant may hold no more, or the place was
// needed for another.
func (c *conn) promote(s tenancy.Scope, checked time.Time) error {
	full := error(wire.Closing(wire.CapacityTenant, nil))
	if !c.srv.door.prove(c, func() bool { full = c.srv.admit(s); return full == nil }) {
		return full
	}
	c.scope, c.promoted, c.watched = s, true, s
	c.seat = c.srv.turns.Enter(s)
	c.srv.watch.add(c, s, checked)
	return nil
}

// renewed watches the connection under the credential it has logged in with
// again.
func (c *conn) renewed(s tenancy.Scope, checked time.Time) {
	c.srv.watch.drop(c, c.watched)
	c.watched = s
	c.srv.watch.add(c, s, checked)
}

// end ends the connection for a reason; the first one stands. It may be called
// from any goroutine: closing the socket wakes whoever uses it.
func (c *conn) end(err error) {
	reason := closeOf(err)
	if c.ended.CompareAndSwap(nil, reason) {
		c.stopEntry() // poll is below it
		c.cut()
	}
}

// cut closes the socket. A TLS close_notify could block behind a client that
// does not read, and sets a longer deadline of its own: the socket beneath is
// closed in time whatever becomes of it.
func (c *conn) cut() {
	_ = c.nc.SetDeadline(time.Now().Add(closeTimeout))
	if tc, ok := c.nc.(*tls.Conn); ok {
		sure := time.AfterFunc(closeTimeout, func() { _ = tc.NetConn().Close() })
		defer sure.Stop()
	}
	_ = c.nc.Close()
}

const closeTimeout = time.Second

// endAll ends connections for one reason, none waiting for another.
func endAll(conns []*conn, reason wire.Reason) {
	var ends sync.WaitGroup
	for _, c := range conns {
		ends.Add(1)
		go c.endIn(&ends, reason)
	}
	ends.Wait()
}

func (c *conn) endIn(ends *sync.WaitGroup, reason wire.Reason) {
	defer ends.Done()
	c.end(wire.Closing(reason, nil))
}

// closeOf makes any error the one reason it stands for.
func closeOf(err error) *wire.Close {
	var c *wire.Close
	if errors.As(err, &c) {
		return c
	}
	if err == nil {
		return wire.Closing(wire.ClientClosed, nil)
	}
	return wire.Closing(wire.ClientError, err)
}

// close gives back everything the connection held and says why it ended.
func (c *conn) close() {
	c.end(nil)
	c.worker.Wait()
	for _, f := range c.queue.kill() {
		c.release(&f)
	}
	if c.br != nil {
		c.srv.readers.put(c.br)
	}
	if c.api != nil {
		c.api.Close()
	}
	// The tenant's part before the place: whoever sees the place free finds the
	// room of its tenant free as well.
	if c.promoted {
		c.seat.Leave()
		c.srv.watch.drop(c, c.watched)
		c.srv.conns.Give(c.scope, 1)
	}
	c.srv.door.leave(c)
	c.logClose()
}

func (c *conn) logClose() {
	reason := c.ended.Load()
	if reason.Reason == wire.Revoked {
		c.auditRevoked()
	}
	c.srv.closed.add(reason.Reason, reason.Err, c.logged)
}

// logged is what the log says of the connection at its end.
func (c *conn) logged() []zap.Field {
	fields := []zap.Field{zap.String("peer", c.client.String())}
	if c.api != nil && c.api.User != "" {
		fields = append(fields, zap.String("user", c.api.User), zap.String("lane", c.api.Lane.Name()))
	}
	if c.promoted {
		fields = append(fields, zap.Stringer("tenant", c.scope.ID()))
	}
	return fields
}

// recovered turns a panic into the end of this connection alone. The value is
// logged by its type only: it could hold bytes of a client.
func (c *conn) recovered() {
	if v := recover(); v != nil {
		c.srv.log.Error("panic in a connection", zap.String("type", typeName(v)), zap.Stack("stack"))
		c.end(wire.Closing(wire.Internal, nil))
	}
}
