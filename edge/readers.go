package edge

import (
	"bufio"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// readerSize is the read buffer of a connection that is being served: two TLS
// records. An idle connection has none.
const readerSize = 32 << 10

// readerPool lends read buffers to connections that have bytes to read.
type readerPool struct{ p sync.Pool }

func (p *readerPool) get(r io.Reader) *bufio.Reader {
	if br, ok := p.p.Get().(*bufio.Reader); ok {
		br.Reset(r)
		return br
	}
	return bufio.NewReaderSize(r, readerSize)
}

func (p *readerPool) put(br *bufio.Reader) {
	br.Reset(nil)
	p.p.Put(br)
}

// stallReader gives every read its own deadline: a frame may take long, but
// never be silent for long, nor come a byte at a time. A fixed deadline (login)
// wins where it is earlier. A deadline that others set, to wake a reader that
// waits for a request, does not end a read.
type stallReader struct {
	nc       net.Conn
	stall    time.Duration
	rate     int           // bytes a second
	frame    time.Time     // when the frame must be here
	until    time.Time     // zero: none
	linger   time.Duration // what is under way when the gateway drains may take this long
	draining *atomic.Bool  // nil: nobody drains
	hurry    time.Time     // when what drains must be here; zero: nothing does
}

// begin says that size bytes of a frame are to come from now on.
func (r *stallReader) begin(size int) {
	r.frame = time.Now().Add(r.stall + time.Duration(size)*time.Second/time.Duration(r.rate))
}

func (r *stallReader) Read(b []byte) (int, error) {
	for {
		d := r.deadline(time.Now())
		if err := r.nc.SetReadDeadline(d); err != nil {
			return 0, err
		}
		if r.drains() { // after the deadline was set: a poke wins, or is seen here
			continue
		}
		n, err := r.nc.Read(b)
		if err == nil || !isTimeout(err) || !time.Now().Before(d) {
			return n, err
		}
	}
}

// drains notes that the gateway has begun to drain.
func (r *stallReader) drains() bool {
	if !r.hurry.IsZero() || r.draining == nil || !r.draining.Load() {
		return false
	}
	r.hurry = time.Now().Add(r.linger)
	return true
}

// torn reports that what was under way did not come in time.
func (r *stallReader) torn() bool { return passed(r.hurry) }

func (r *stallReader) deadline(now time.Time) time.Time {
	d := now.Add(r.stall)
	for _, earlier := range []time.Time{r.frame, r.until, r.hurry} {
		if !earlier.IsZero() && earlier.Before(d) {
			d = earlier
		}
	}
	return d
}
