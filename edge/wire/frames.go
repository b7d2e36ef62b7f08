package wire

import (
	"errors"
	"io"

	"github.com/queen-mq/queen-edge/edge/slab"
)

// Frames lends the memory that requests are read into. The zero Frames is ready.
type Frames struct{ pool slab.Pool }

// Get returns an empty buffer for the beginning of a frame.
func (p *Frames) Get() *[]byte { return p.pool.Get(slab.Least) }

// Put takes a buffer back; what was read from it must not be used any more.
func (p *Frames) Put(b *[]byte) { p.pool.Put(b) }

// Read fills buf, one of Get's, up to size bytes from r. What it holds already is
// kept. It grows as bytes arrive, whatever size says: from growFrom on, to four
// times what has come, so that a frame of 4 MiB is copied by a third and memory
// that was never asked for is not taken. It returns the buffer to be put back,
// also with an error; the one that was given is not used any more.
func (p *Frames) Read(r io.Reader, buf *[]byte, size int) (*[]byte, error) {
	for len(*buf) < size {
		if len(*buf) == cap(*buf) || cap(*buf) < min(size, growFrom) {
			buf = p.grow(buf, size)
		}
		b := *buf
		n := min(cap(b), size) - len(b)
		read, err := io.ReadFull(r, b[len(b):len(b)+n])
		*buf = b[:len(b)+read]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return buf, err
		}
	}
	return buf, nil
}

func (p *Frames) grow(buf *[]byte, size int) *[]byte {
	grown := p.pool.Get(min(max(growBy*cap(*buf), growFrom), size))
	*grown = append(*grown, *buf...)
	p.pool.Put(buf)
	return grown
}
