package batch

import (
	"fmt"
	"io"
)

const (
	// keepScratch is the most decompressed memory a Decoder keeps between
	// batches, in bytes.
	keepScratch = 4 << 20
	// trusted is the most a stream's window takes on a record's declared
	// length alone: beyond it, that much has to have come.
	trusted = 1 << 20
	// minWindow is the first size of a streamed window: two of the 64 KiB
	// blocks most LZ4 writers use, so that one always fits behind a leftover.
	minWindow = 128 << 10
	// maxEmptyReads is how often a stream may yield nothing before it is
	// called broken; the libraries yield nothing only at odd block ends.
	maxEmptyReads = 100
)

// window is what is decompressed and not yet read: everything at once, or, if
// src is set, as much as one record needs. A stream is charged as it comes.
type window struct {
	buf   []byte
	pos   int
	src   io.Reader // nil: all that will come is in buf
	left  *int      // budget, in bytes
	owned bool      // buf is the Decoder's to keep, not the caller's
	probe [1]byte
}

func (w *window) avail() int { return len(w.buf) - w.pos }

// most is how many bytes can still be read.
func (w *window) most() int {
	if w.src == nil {
		return w.avail()
	}
	return w.avail() + *w.left
}

// fill makes n bytes available, or fewer at the end of the stream or budget.
// The memory follows the bytes that came, not n, up to trusted; beyond it
// goes to n at once, so that old and new together stay near the budget.
func (w *window) fill(n int) error {
	n = min(n, w.most())
	if w.avail() >= n {
		return nil
	}
	w.buf = w.buf[:copy(w.buf[:cap(w.buf)], w.buf[w.pos:])]
	w.pos = 0
	for w.src != nil && len(w.buf) < n {
		if len(w.buf) == cap(w.buf) {
			w.grow(n)
		}
		got, err := w.read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+got]
		if err != nil {
			return err
		}
	}
	return nil
}

// grow is called with a full buffer that is to hold n bytes.
func (w *window) grow(n int) {
	size := min(max(2*cap(w.buf), minWindow), trusted)
	if cap(w.buf) >= trusted {
		size = roundUp(n)
	}
	grown := make([]byte, len(w.buf), size)
	copy(grown, w.buf)
	w.buf = grown
}

// read reads some bytes into p, within the budget; at the end of the stream it
// reads none and src becomes nil.
func (w *window) read(p []byte) (int, error) {
	if *w.left == 0 {
		p = w.probe[:] // one byte tells "just used up" from "too large"
	} else if len(p) > *w.left {
		p = p[:*w.left]
	}
	for range maxEmptyReads {
		n, err := w.src.Read(p)
		if n > *w.left {
			w.src = nil
			return 0, fmt.Errorf("%w: more decompressed bytes than were left", ErrTooLarge)
		}
		*w.left -= n
		if err == io.EOF { // as it is: a wrapped one is a stream cut short
			w.src = nil
			return n, nil
		}
		if err != nil {
			w.src = nil
			return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: stream without progress", ErrCorrupt)
}

// drain reads on to the end, keeping nothing, and tells how many bytes that was.
func (w *window) drain() (int, error) {
	n := w.avail()
	w.buf, w.pos = w.buf[:0], 0
	for w.src != nil {
		if cap(w.buf) == 0 {
			w.grow(1)
		}
		got, err := w.read(w.buf[:cap(w.buf)])
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

// next is the next record without its length. It is valid until the next call.
func (w *window) next() ([]byte, error) {
	if err := w.fill(maxVarint32); err != nil {
		return nil, err
	}
	if w.most() == 0 {
		return nil, errShort
	}
	size, n := varint32(w.buf[w.pos:])
	if n <= 0 || size < minRecord {
		return nil, fmt.Errorf("%w: record length %d", ErrCorrupt, size)
	}
	w.pos += n
	if int(size) > w.most() {
		return nil, fmt.Errorf("%w: record length %d of %d bytes left", ErrCorrupt, size, w.most())
	}
	if err := w.fill(int(size)); err != nil {
		return nil, err
	}
	if int(size) > w.avail() {
		return nil, fmt.Errorf("%w: record length %d of %d bytes left", ErrCorrupt, size, w.avail())
	}
	end := w.pos + int(size)
	rec := w.buf[w.pos:end:end]
	w.pos = end
	return rec, nil
}

// sized is b's memory as n bytes, or new memory if that is too small. New memory
// comes in steps, so that batches of slowly growing sizes share it.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		b = make([]byte, roundUp(n))
	}
	return b[:n]
}

func roundUp(n int) int { return (n + minWindow - 1) / minWindow * minWindow }
