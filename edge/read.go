package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// requests reads frames for the worker until the client leaves, or the
// connection must end.
func (c *conn) requests() error {
	for {
		f, err := c.nextFrame()
		if err != nil {
			return c.torn(err)
		}
		last := f.end != nil
		if !c.enqueue(f) {
			return c.cutOff()
		}
		if last {
			return nil // the worker will come to it
		}
	}
}

// enqueue hands a frame to the worker. It says no where nothing is served any
// more.
func (c *conn) enqueue(f frame) bool {
	select {
	case c.queue.slots <- struct{}{}:
	case <-c.life.Done():
		c.release(&f)
		return false
	}
	start, ok := c.queue.put(f)
	if !ok {
		c.release(&f)
		return false
	}
	if start {
		c.worker.Add(1)
		go c.work()
	}
	return true
}

// cutOff is why nothing is served any more: the drain's grace is over, or the
// worker has ended the service and knows why.
func (c *conn) cutOff() error {
	if c.life.Err() != nil {
		return wire.Closing(wire.Draining, nil)
	}
	return nil
}

// nextFrame reads one frame. Errors of the stream itself are returned; a frame
// that must not be served becomes one that ends the connection when its turn
// comes, so that requests before it keep their answers.
func (c *conn) nextFrame() (frame, error) {
	if err := c.awaitRequest(); err != nil {
		return frame{}, err
	}
	if over := c.ended.Load(); over != nil { // buffered bytes outlive the socket
		return frame{}, over
	}
	c.in.begin(0)
	size, err := c.readSize(c.srv.cfg.Limits.Frame)
	if err != nil {
		return ending(err)
	}
	c.leave.last -= wire.SizeBytes + size
	f, err := c.readPrefix(size)
	if err != nil {
		return ending(err)
	}
	if f.req.Row.Phase == api.AfterLogin && c.api.Over(c.srv.clock()) {
		c.release(&f)
		return ending(wire.Closing(wire.SessionExpired, nil))
	}
	if size > f.req.Row.MaxFrame {
		err := &wire.OversizeError{Declared: uint32(size), Limit: f.req.Row.MaxFrame}
		c.release(&f)
		return ending(wire.Closing(wire.FrameOversize, err))
	}
	held := time.Now()
	c.awaitUnmuted(&f, size)
	if err := c.reserve(&f, size, c.srv.cfg.Limits.FrameStall); err != nil {
		c.release(&f)
		return ending(err)
	}
	c.in.begin(size) // what it waited for room is not the client's time
	c.freed = time.Now()
	return c.readInTime(f, size, c.freed.Sub(held))
}

// readInTime reads what is left of a frame, which must be there before the login's
// lifetime has passed (KIP-368). What the gateway itself has held it for does not
// count.
func (c *conn) readInTime(f frame, size int, held time.Duration) (frame, error) {
	f, err := c.readRest(f, size)
	if err == nil && f.req.Row.Phase == api.AfterLogin && c.api.Over(c.srv.clock().Add(-held)) {
		c.release(&f)
		return ending(wire.Closing(wire.SessionExpired, nil))
	}
	return f, err
}

// ending makes a frame of a refusal; other errors stay errors.
func ending(err error) (frame, error) {
	switch closeOf(err).Reason {
	case wire.ClientCut, wire.ClientError, wire.ClientClosed, wire.ClientSlow, wire.Draining:
		return frame{}, err
	}
	return frame{end: err}, nil
}

// readLoginFrame reads one frame before login: small, and of the few APIs that
// are answered there. A raw frame is a bare token without a header.
func (c *conn) readLoginFrame(raw bool) (frame, error) {
	if err := c.awaitRequest(); err != nil {
		return frame{}, err
	}
	size, err := c.readSize(c.srv.cfg.Limits.PreauthFrame)
	if err != nil {
		return frame{}, err
	}
	if raw {
		return c.readRest(frame{buf: c.srv.frames.Get()}, size)
	}
	f, err := c.readPrefix(size)
	if err != nil {
		return f, err
	}
	return c.readRest(f, size)
}

// awaitRequest waits for the first byte of a request. An idle connection holds
// no read buffer.
func (c *conn) awaitRequest() error {
	if c.hasFirst {
		return nil // it was waited for before
	}
	buffered := 0
	if c.br != nil {
		buffered = c.br.Buffered()
	}
	if err := c.mayBegin(buffered); err != nil {
		return err
	}
	if buffered > 0 {
		return nil
	}
	c.putReader()
	if err := c.readFirst(); err != nil {
		return err
	}
	c.br = c.srv.readers.get(&c.in)
	return nil
}

func (c *conn) putReader() {
	if c.br != nil {
		c.srv.readers.put(c.br)
		c.br = nil
	}
}

// readFirst reads one byte into c.first, for as long as the connection may idle.
// A connection whose request is being served is not idle.
func (c *conn) readFirst() error {
	deadline := c.in.until
	if deadline.IsZero() {
		deadline = time.Now().Add(c.srv.cfg.Limits.Idle)
	}
	for {
		deadline = c.leave.within(c.withinSession(deadline))
		if err := c.nc.SetReadDeadline(deadline); err != nil {
			return wire.Closing(wire.ClientError, err)
		}
		if err := c.mayWait(); err != nil { // after the deadline was set: a poke wins, or is seen here
			return err
		}
		_, err := io.ReadFull(c.nc, c.first[:])
		if err == nil {
			c.hasFirst, c.spoke = true, true
			return nil
		}
		if !isTimeout(err) {
			return streamError(err, true)
		}
		if err := c.mayWait(); err != nil {
			return err
		}
		if !c.in.until.IsZero() {
			return wire.Closing(wire.LoginTimeout, nil)
		}
		if c.sessionOver() {
			return wire.Closing(wire.SessionExpired, nil)
		}
		if deadline = c.idleDeadline(); !deadline.After(time.Now()) {
			return wire.Closing(wire.ClientIdle, nil)
		}
	}
}

// sessionSlack is how long past its end a login may stay unused: another one may
// be on its way, behind requests that came in time. Where those were held, by a
// mute or for want of room, that may be long after the end.
const sessionSlack = time.Second

// sessionEnd is when an unused login is given up; zero: never.
func (c *conn) sessionEnd() time.Time {
	end := c.api.Ends()
	if end.IsZero() {
		return end
	}
	if end.Before(c.freed) {
		end = c.freed
	}
	return end.Add(sessionSlack)
}

// withinSession cuts a deadline to the end of the login's lifetime.
func (c *conn) withinSession(deadline time.Time) time.Time {
	if end := c.sessionEnd(); !end.IsZero() && end.Before(deadline) {
		return end
	}
	return deadline
}

func (c *conn) sessionOver() bool { return passed(c.sessionEnd()) }

// idleDeadline is when the connection will have been idle for too long.
func (c *conn) idleDeadline() time.Time {
	rested, idle := c.queue.idleSince()
	if !idle {
		return time.Now().Add(c.srv.cfg.Limits.Idle)
	}
	return rested.Add(c.srv.cfg.Limits.Idle)
}

// readSize reads the length prefix and meets it with a limit.
func (c *conn) readSize(limit int) (int, error) {
	var b [wire.SizeBytes]byte
	n := 0
	if c.hasFirst {
		b[0], n, c.hasFirst = c.first[0], 1, false
	}
	if _, err := io.ReadFull(c.br, b[n:]); err != nil {
		return 0, streamError(err, false)
	}
	size, err := wire.Size(b, limit)
	if err != nil {
		return 0, wire.Closing(wire.FrameOversize, err)
	}
	return size, nil
}

// readPrefix reads which API a frame is and whether we have it.
func (c *conn) readPrefix(size int) (frame, error) {
	f := frame{buf: c.srv.frames.Get()}
	if size < wire.PrefixBytes {
		c.release(&f)
		return frame{}, wire.Closing(wire.FrameShort, nil)
	}
	var err error
	if f.buf, err = c.srv.frames.Read(c.br, f.buf, wire.PrefixBytes); err != nil {
		c.release(&f)
		return frame{}, streamError(err, false)
	}
	f.req.Prefix, _ = wire.ParsePrefix(*f.buf)
	if f.req.Row, err = c.srv.handlers.Lookup(f.req.Prefix); err != nil {
		c.release(&f)
		return frame{}, err
	}
	if f.req.Row.Phase == api.AfterLogin && !c.api.Proved() {
		c.release(&f)
		return frame{}, wire.Closing(wire.BeforeLogin, errors.New(f.req.Row.Name))
	}
	return f, nil
}

// reserve takes the memory a request may need from the process's ceiling, waiting for room.
func (c *conn) reserve(f *frame, size int, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(c.entry, wait) // of one that has ended, nobody waits
	defer cancel()
	var err error
	if f.cost, err = c.srv.inFlight.Wait(ctx, c.scope, f.req.Row.Weigh(size)); err != nil {
		return wire.Closing(wire.CapacityBytes, err)
	}
	return nil
}

// readRest reads what is left of a frame as it arrives.
func (c *conn) readRest(f frame, size int) (frame, error) {
	var err error
	if f.buf, err = c.srv.frames.Read(c.br, f.buf, size); err != nil {
		c.release(&f)
		return frame{}, streamError(err, false)
	}
	f.req.Frame, f.req.Arrived = *f.buf, time.Now()
	return f, nil
}

// release gives back what a frame holds.
func (c *conn) release(f *frame) {
	if f.cost > 0 {
		c.srv.inFlight.Give(c.scope, f.cost)
		f.cost = 0
	}
	if f.buf != nil {
		c.srv.frames.Put(f.buf)
		f.buf = nil
	}
}

// streamError names what ended a read. between says that no byte of a frame had
// come.
func streamError(err error, between bool) error {
	switch {
	case isTimeout(err):
		return wire.Closing(wire.ClientSlow, err)
	case between && errors.Is(err, io.EOF):
		return wire.Closing(wire.ClientClosed, nil)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return wire.Closing(wire.ClientCut, err)
	}
	return wire.Closing(wire.ClientError, err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
