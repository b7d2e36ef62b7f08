package edge

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// How a connection ends by the gateway's own decision (B7): between requests,
// with the answers to all that was received, and by a half-close, so that the
// client reads them before it meets the end. What the client had on its way by
// then is read for a while, and what asks for no answer is served: its records
// are nowhere else any more.

// Bounds of a connection's age.
const (
	ageJitter   = 0.2              // part of the age that chance takes off, so that not all come back at once
	agePatience = 30 * time.Second // at most: how long a gap between requests is waited for
)

// leave is how a connection comes to its planned end. The reader owns it.
type leave struct {
	due     time.Time   // too old from then on: ends at the first gap between requests; zero: never
	overdue time.Time   // ends behind the request under way, gap or not
	last    int         // bytes of the frames that are still read, once begun
	begun   bool        // the end has been seen
	gap     atomic.Bool // a worker that rests wakes the reader
}

// after sets the connection's age; chance is from 0 to 1.
func (l *leave) after(now time.Time, age time.Duration, chance float64) {
	if age > 0 {
		l.due = now.Add(age - time.Duration(chance*ageJitter*float64(age)))
		l.overdue = l.due.Add(min(age/5, agePatience))
	}
}

func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// within cuts a deadline to one of the times that matter.
func (l *leave) within(deadline time.Time) time.Time {
	for _, t := range []time.Time{l.due, l.overdue} {
		if !t.IsZero() && t.Before(deadline) && time.Now().Before(t) {
			return t
		}
	}
	return deadline
}

// mayBegin says whether another request may be read, buffered bytes of which
// have come. A client that never pauses is left behind what has come.
func (c *conn) mayBegin(buffered int) error {
	reason := wire.Draining
	switch {
	case !c.loggedIn.Load():
		return nil
	case c.draining.Load():
	case passed(c.leave.overdue):
		reason = wire.ConnectionAge
		buffered = max(buffered, 1) // one more request may come
	default:
		return nil
	}
	if !c.leave.begun {
		c.leave.begun, c.leave.last = true, buffered
	}
	if c.draining.Load() && buffered == 0 || c.leave.last <= 0 {
		return wire.Closing(reason, nil)
	}
	return nil
}

// mayWait is mayBegin for a reader that has set its deadline and is about to
// wait for a byte.
func (c *conn) mayWait() error {
	if !c.loggedIn.Load() {
		return nil
	}
	if c.draining.Load() {
		return wire.Closing(wire.Draining, nil)
	}
	if passed(c.leave.due) {
		c.leave.gap.Store(true) // before idleSince: one of the two is seen
		if _, idle := c.queue.idleSince(); idle {
			return wire.Closing(wire.ConnectionAge, nil)
		}
	}
	return nil
}

// rested wakes a reader that waits for the gap between two requests.
func (c *conn) rested() {
	if c.leave.gap.Load() {
		c.poke()
	}
}

// poke wakes the reader where it waits for a request; in the middle of one it
// goes on.
func (c *conn) poke() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// drain asks the connection to end between requests.
//
// One that is logging in finishes that first: some clients take an end before
// their first answer for a wrong address and give their records up.
func (c *conn) drain() {
	c.draining.Store(true)
	c.stopPoll()
	if c.loggedIn.Load() {
		c.poke()
	}
}

// polite reports ends that are the gateway's decision while the client may still
// have answers to read.
func polite(r wire.Reason) bool {
	switch r {
	case wire.SessionExpired, wire.LoginRefused, wire.FrameOversize, wire.FrameShort, wire.UnknownAPI, wire.UnknownVersion, wire.Malformed,
		wire.AcksZeroFailed, wire.AnswerTooLarge, wire.CapacityBytes:
		return true
	}
	return planned(r)
}

// planned reports polite ends between two requests for no fault of the client's:
// what it had on its way is good.
func planned(r wire.Reason) bool {
	switch r {
	case wire.Draining, wire.ConnectionAge, wire.ClientIdle:
		return true
	}
	return false
}

// torn names the end of a connection that drained while a frame of it did not
// come.
func (c *conn) torn(err error) error {
	if c.in.torn() && closeOf(err).Reason == wire.ClientSlow {
		return wire.Closing(wire.Draining, nil)
	}
	return err
}

// halfClose tells the client that no more answers come and waits for it to
// close: an end that met unread bytes of the client's would be a reset, and
// could take the last answer with it.
func (c *conn) halfClose(r wire.Reason) {
	until := time.Now().Add(c.srv.cfg.Limits.Linger)
	if !c.closeWrite() {
		return
	}
	if planned(r) && !c.in.torn() {
		c.serveLate(until)
	}
	c.linger(time.Until(until))
}

// closeWrite tells the client that no more answers come.
func (c *conn) closeWrite() bool {
	hc, ok := c.nc.(interface{ CloseWrite() error })
	return ok && hc.CloseWrite() == nil
}

// serveLate serves what arrives until then and wants no answer: an acks=0
// produce. What wants one is thrown away, and its client sends it again over
// another connection.
func (c *conn) serveLate(until time.Time) {
	c.in.until, c.in.draining = until, nil
	for c.awaitLate(until) {
		f, ok := c.lateFrame()
		if !ok {
			break
		}
		if f.buf == nil {
			continue
		}
		if !c.enqueue(f) {
			break
		}
	}
	c.worker.Wait()
}

// awaitLate waits for the first byte of a frame. A waiting connection holds no
// read buffer. One that was cut meanwhile is served no more.
func (c *conn) awaitLate(until time.Time) bool {
	if c.ended.Load() != nil {
		return false
	}
	if c.br != nil && c.br.Buffered() > 0 {
		return true
	}
	c.putReader()
	for {
		if c.nc.SetReadDeadline(until) != nil {
			return false
		}
		_, err := io.ReadFull(c.nc, c.first[:])
		if err == nil {
			c.hasFirst = true
			c.br = c.srv.readers.get(&c.in)
			return true
		}
		if !isTimeout(err) || !time.Now().Before(until) { // else a poke
			return false
		}
	}
}

// lateFrame reads a frame that is to be served; one that is not has no buffer
// any more. ok is false where nothing more can be read.
func (c *conn) lateFrame() (f frame, ok bool) {
	c.in.begin(0)
	size, err := c.readSize(c.srv.cfg.Limits.Frame)
	if err != nil {
		return frame{}, false
	}
	c.in.begin(size)
	if f, err = c.readPrefix(size); err != nil {
		return frame{}, false
	}
	if size > f.req.Row.MaxFrame || c.api.Over(c.srv.clock()) {
		c.release(&f)
		return frame{}, false
	}
	if !f.req.Mergeable() { // no Produce
		c.release(&f)
		_, err = io.CopyN(io.Discard, c.br, int64(size-wire.PrefixBytes))
		return frame{}, err == nil
	}
	if err = c.reserve(&f, size, time.Until(c.in.until)); err != nil {
		c.release(&f)
		return frame{}, false
	}
	if f, err = c.readInTime(f, size, 0); err != nil || f.end != nil {
		return frame{}, false
	}
	if !api.WantsNoAnswer(f.req) {
		c.release(&f)
	}
	return f, true
}
