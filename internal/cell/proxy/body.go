package proxy

import (
	"errors"
	"io"
	"math/bits"
	"net/http"
	"os"
	"time"
)

// firstBodyBytes is what is taken for a body before any of it has arrived; a
// declared length may raise it to trustedBodyBytes, never further.
const (
	firstBodyBytes   = 16 << 10
	trustedBodyBytes = 1 << 20
)

// bodyBuffer holds one request body. It goes back to the pool when the request
// has been answered: nothing may keep a part of it.
type bodyBuffer struct{ b []byte }

// readBody reads the whole body under the cap. Memory grows with what has
// arrived, not with what was announced. The caller releases the buffer.
func (p *Proxy) readBody(c *call) (*bodyBuffer, *refusal) {
	if c.r.ContentLength > p.maxBody {
		return nil, bodyTooLarge()
	}
	buf := p.bodies.Take()
	if err := p.fill(c, buf); err != nil {
		p.giveBack(buf)
		return nil, bodyRefusal(err)
	}
	c.received = int64(len(buf.b))
	return buf, nil
}

// giveBack ends the use of a body.
func (p *Proxy) giveBack(buf *bodyBuffer) { p.bodies.Put(buf, int64(cap(buf.b))) }

// limitBody bounds the time a body may take, also one that is refused unread:
// the server reads on behind such an answer, to keep the connection. It is the
// wall clock's time, as a connection's deadline is.
func (p *Proxy) limitBody(c *call) {
	if c.r.ContentLength != 0 {
		// Only a recorder in a test has no deadlines.
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(p.bodyTimeout))
	}
}

// fill reads the body to its end, and lifts the deadline again: a long poll
// may follow.
func (p *Proxy) fill(c *call, buf *bodyBuffer) error {
	body := http.MaxBytesReader(c.w, c.r.Body, p.maxBody)
	b := buf.b[:0]
	// One byte more than announced, so that the end is seen without growing.
	if want := min(max(c.r.ContentLength+1, firstBodyBytes), trustedBodyBytes); int64(cap(b)) < want {
		b = make([]byte, 0, 1<<bits.Len64(uint64(want-1))) // for the next one, too, which may be a little longer
	}
	for {
		if len(b) == cap(b) {
			b = p.grow(b)
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == nil {
			continue
		}
		buf.b = b
		if !errors.Is(err, io.EOF) {
			return err
		}
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
		return nil
	}
}

// grow doubles a buffer, up to the cap and the byte that shows the end.
func (p *Proxy) grow(b []byte) []byte {
	bigger := make([]byte, len(b), min(2*int64(cap(b)), p.maxBody+1))
	copy(bigger, b)
	return bigger
}

// bodyRefusal explains a body that could not be read; nothing was done.
func bodyRefusal(err error) *refusal {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "request_timeout", "the body did not arrive in time")
	default:
		return refuse(http.StatusBadRequest, "bad_body", "bad body: it ended early")
	}
}
