package edge

import (
	"bufio"
	"io"
	"net"
	"sync"
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
// wins where it is earlier.
type stallReader struct {
	nc    net.Conn
	stall time.Duration
	rate  int       // bytes a second
	frame time.Time // when the frame must be here
	until time.Time // zero: none
}

// begin says that size bytes of a frame are to come from now on.
func (r *stallReader) begin(size int) {
	r.frame = time.Now().Add(r.stall + time.Duration(size)*time.Second/time.Duration(r.rate))
}

func (r *stallReader) Read(b []byte) (int, error) {
	d := time.Now().Add(r.stall)
	for _, earlier := range []time.Time{r.frame, r.until} {
		if !earlier.IsZero() && earlier.Before(d) {
			d = earlier
		}
	}
	if err := r.nc.SetReadDeadline(d); err != nil {
		return 0, err
	}
	return r.nc.Read(b)
}
