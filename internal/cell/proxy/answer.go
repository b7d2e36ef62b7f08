package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-faster/jx"
)

const (
	// flushBytes is how much of an answer is gathered before it is sent.
	flushBytes = 256 << 10
	// directBytes is from where on a payload is sent without being copied.
	directBytes = 64 << 10
	// keptBytes is the largest buffer that goes back to the pool.
	keptBytes = 2 * flushBytes
)

// answer writes one response: short ones whole, with their length; long ones
// in parts, so that no answer is in memory twice.
type answer struct {
	jx.Writer
	c       *call
	status  int
	started bool
	err     error // first write error: the client is gone, the rest is dropped
}

// newAnswer begins a response; the caller releases it.
func (p *Proxy) newAnswer(c *call, status int) *answer {
	a, ok := p.answers.Get().(*answer)
	if !ok {
		a = new(answer)
	}
	a.Reset()
	a.c, a.status, a.started, a.err = c, status, false, nil
	c.status = status
	return a
}

// release gives the answer's buffer back.
func (p *Proxy) release(a *answer) {
	a.c = nil
	if cap(a.Buf) <= keptBytes {
		p.answers.Put(a)
	}
}

// flushIfFull sends what is gathered once it is worth a write.
func (a *answer) flushIfFull() {
	if len(a.Buf) >= flushBytes {
		a.flush()
	}
}

// payload adds raw JSON, copied only when it is short.
func (a *answer) payload(raw []byte) {
	if len(raw) == 0 {
		a.Null()
		return
	}
	if len(raw) < directBytes {
		a.Raw(raw)
		return
	}
	a.flush()
	a.send(raw)
}

// flush sends what is gathered.
func (a *answer) flush() {
	a.send(a.Buf)
	a.Buf = a.Buf[:0]
}

// send writes one part under a deadline of its own, so that a slow reader of a
// long answer is kept and a stuck one is not.
func (a *answer) send(part []byte) {
	if a.err != nil {
		return
	}
	_ = http.NewResponseController(a.c.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if !a.started {
		a.started = true
		a.c.w.WriteHeader(a.status)
	}
	var n int
	n, a.err = a.c.w.Write(part)
	a.c.sent += int64(n)
}

// finish sends the rest.
func (a *answer) finish() {
	if !a.started {
		setHeader(a.c.w, "Content-Length", strconv.Itoa(len(a.Buf)))
	}
	a.flush()
}

// int writes an integer.
func (a *answer) int(n int64) { a.Int64(n) }

// uuid writes an identifier as a string.
func (a *answer) uuid(id [16]byte) {
	const digits = "0123456789abcdef"
	a.Buf = append(a.Buf, '"')
	for i, b := range id {
		switch i {
		case 4, 6, 8, 10:
			a.Buf = append(a.Buf, '-')
		}
		a.Buf = append(a.Buf, digits[b>>4], digits[b&0x0f])
	}
	a.Buf = append(a.Buf, '"')
}

// Time layouts: fetch and listings show milliseconds, fetch/offsets
// microseconds (cell-http §3.5, §3.6).
const (
	millis = `"2006-01-02T15:04:05.000Z"`
	micros = `"2006-01-02T15:04:05.000000Z"`
)

// time writes an instant in UTC.
func (a *answer) time(t time.Time, layout string) { a.Buf = t.UTC().AppendFormat(a.Buf, layout) }
