package edge

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Bounds of writing an answer.
const (
	writeChunk   = 256 << 10        // what must be taken within writeTimeout
	writeTimeout = 30 * time.Second // for one chunk: a slow reader is fine, a stopped one is not
)

// work answers queued requests, in order, until there are none. requests starts
// it and waits for it.
func (c *conn) work() {
	var run []frame
	defer c.worker.Done()
	defer func() { c.abandon(run) }()
	defer c.recovered()
	for {
		c.sitOutMute()
		c.takeTurn()
		if c.ended.Load() != nil { // cut: revoked, or out of time. What waits was asked of nobody
			c.releaseAll(c.queue.kill())
			return
		}
		run = c.queue.take(run[:0], c.srv.cfg.Coalesce, c.srv.clock)
		if len(run) == 0 {
			c.seat.Give(0)
			c.rested()
			return
		}
		c.charge(run)
		err := c.answer(run)
		c.releaseAll(run)
		if err != nil {
			c.finish(err)
			return
		}
	}
}

// finish ends the service for a reason. Where the client may still have answers
// to read, the close is left to the reader, which is asked to stop.
func (c *conn) finish(err error) {
	c.releaseAll(c.queue.kill())
	if !polite(closeOf(err).Reason) {
		c.end(err)
		return
	}
	c.verdict = err
	c.closeWrite() // at once: the reader may be in the middle of a frame
	c.drain()
}

// abandon gives back what a panic has left, and frees a reader that waits for a
// slot: nobody serves this connection any more.
func (c *conn) abandon(run []frame) {
	c.releaseAll(run)
	if c.ended.Load() != nil {
		c.releaseAll(c.queue.kill())
	}
}

func (c *conn) releaseAll(frames []frame) {
	for i := range frames {
		c.release(&frames[i])
	}
}

// answer serves a run of requests and writes their answers in order. Answers
// made before an error are written first.
func (c *conn) answer(run []frame) error {
	if run[0].end != nil {
		return run[0].end
	}
	out := c.srv.answers.Get()
	defer c.srv.answers.Put(out)
	defer c.api.Written()
	err := c.serveRun(run, out)
	c.giveTurn(run, len(*out)+wire.LentBytes(c.api.Lent()))
	c.mute()
	if werr := c.writeAnswer(*out, c.api.Lent()); err == nil {
		err = werr
	}
	if refusal, refused := c.api.Refused(); refused && err == nil { // of another login
		err = wire.Closing(wire.LoginRefused, errors.New(refusal.Log))
	}
	return err
}

func (c *conn) serveRun(run []frame, out *[]byte) error {
	var err error
	if len(run) > 1 {
		reqs := make([]api.Request, len(run))
		ctx := c.life
		for i := range run {
			reqs[i] = run[i].req
		}
		for i := range reqs {
			ctx = c.traced(c.life, &reqs[i]) // what they share is the last one's
		}
		var ok bool
		if *out, ok, err = c.srv.handlers.ServeProduce(ctx, c.api, reqs, *out); ok {
			return err
		}
	}
	defer func() { c.serving = nil }()
	for i := range run {
		c.serving = &run[i]
		ctx := c.traced(c.life, &run[i].req)
		if *out, err = c.srv.handlers.Serve(ctx, c.api, run[i].req, *out); err != nil {
			return err
		}
	}
	return nil
}

// park gives back what the frame being served holds, before its answer.
func (c *conn) park() {
	if c.serving != nil {
		c.release(c.serving)
	}
}

// writeAnswer sends an answer of which parts may lie elsewhere.
func (c *conn) writeAnswer(out []byte, lent []wire.Lent) error {
	if len(lent) == 0 {
		return c.write(out)
	}
	if err := c.srv.writers.Write(&answerWriter{c: c}, out, lent); err != nil {
		return err
	}
	return c.written()
}

// write sends bytes to the client.
func (c *conn) write(b []byte) error {
	w := answerWriter{c: c}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return c.written()
}

// written moves the deadline past the time that a connection may be idle: between
// two answers TLS itself writes where a client asks for new keys (RFC 8446 §4.6.3),
// and a deadline that has passed would end the connection for that.
func (c *conn) written() error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.Limits.Idle + writeTimeout)); err != nil {
		return wire.Closing(wire.ClientError, err)
	}
	return nil
}

// answerWriter sends an answer to the client. Each writeChunk of it has a deadline
// of its own, whatever parts it comes in: with one for each of many small parts a
// client that takes next to nothing would hold the answer's memory for hours.
type answerWriter struct {
	c    *conn
	left int // of the chunk whose deadline is set
}

func (w *answerWriter) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		if w.left == 0 {
			if err := w.c.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return sent, wire.Closing(wire.ClientError, err)
			}
			w.left = writeChunk
		}
		n, err := w.c.nc.Write(b[sent:min(len(b), sent+w.left)])
		sent += n
		w.left -= n
		if err != nil {
			if isTimeout(err) {
				return sent, wire.Closing(wire.ClientSlow, err)
			}
			return sent, wire.Closing(wire.ClientError, err)
		}
	}
	return len(b), nil
}

// isProbe reports whether a handshake ended without a byte of TLS: a balancer's
// probe opens and closes.
func isProbe(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
