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
func (a *answer) uuid(id [16]byte) { a.Buf = appendUUID(a.Buf, &id) }

// uuidText is how long an identifier is as a JSON text.
const uuidText = len(`"00000000-0000-0000-0000-000000000000"`)

// appendUUID appends an identifier as a JSON text.
func appendUUID(b []byte, id *[16]byte) []byte {
	b = append(b, `"00000000-0000-0000-0000-000000000000"`...)
	text := b[len(b)-uuidText:]
	hexDigits(text[1:], id[:4])
	hexDigits(text[10:], id[4:6])
	hexDigits(text[15:], id[6:8])
	hexDigits(text[20:], id[8:10])
	hexDigits(text[25:], id[10:])
	return b
}

// hexDigits writes bytes as digits over the front of text.
func hexDigits(text, of []byte) {
	const digits = "0123456789abcdef"
	for i, v := range of {
		text[2*i], text[2*i+1] = digits[v>>4], digits[v&0x0f]
	}
}

// appendText appends a JSON text. What must be escaped is rare.
func appendText(b, text []byte) []byte {
	if !isPlain(text) {
		w := jx.Writer{Buf: b}
		w.ByteStr(text)
		return w.Buf
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// Time layouts: fetch and listings show milliseconds, fetch/offsets
// microseconds (cell-http §3.5, §3.6).
const (
	millis = `"2006-01-02T15:04:05.000Z"`
	micros = `"2006-01-02T15:04:05.000000Z"`
)

// time writes an instant in UTC.
func (a *answer) time(t time.Time, layout string) { a.Buf = t.UTC().AppendFormat(a.Buf, layout) }
