package proxyclient

import (
	"errors"
	"io"
)

// Limits of a fetch answer. An entry asks for at most 8 MiB and there are at
// most 1024, so the cell may rightly send far more than a process should hold:
// nothing but the current record is held here, and the total only ends an
// answer that would never end.
const (
	windowSize     = 64 << 10
	maxFetchRecord = 80 << 20 // one record and its envelope; the broker takes bodies of 64 MiB
	maxFetchTotal  = 8 << 30
)

// window is a piece of a stream that is at least as large as the value being
// read. Its slices are valid until the next call.
type window struct {
	r          io.Reader
	buf        []byte
	head, tail int
	total      int64
	failed     error // why the stream ended, io.EOF included
}

func (w *window) reset(r io.Reader) {
	buf := w.buf
	if cap(buf) > maxPooled || cap(buf) == 0 {
		buf = make([]byte, windowSize)
	}
	*w = window{r: r, buf: buf}
}

// streamError is a failure of the connection, told apart from bad JSON.
type streamError struct{ err error }

func (e *streamError) Error() string { return e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

// fill reads more bytes behind the ones that are there.
func (w *window) fill() error {
	if w.failed != nil {
		return w.ended()
	}
	if w.tail == len(w.buf) {
		if err := w.makeRoom(); err != nil {
			return err
		}
	}
	n, err := w.r.Read(w.buf[w.tail:])
	w.tail += n
	w.total += int64(n)
	w.failed = err
	if w.total > maxFetchTotal {
		return errTooLarge
	}
	if n == 0 && err != nil {
		return w.ended()
	}
	return nil
}

func (w *window) ended() error {
	if errors.Is(w.failed, io.EOF) {
		return errEnds
	}
	return &streamError{w.failed}
}

// makeRoom moves what is unread to the front, or doubles a window that one
// value fills.
func (w *window) makeRoom() error {
	if w.head > 0 {
		w.tail = copy(w.buf, w.buf[w.head:w.tail])
		w.head = 0
	}
	if w.tail < len(w.buf)/2 {
		return nil
	}
	if len(w.buf) > maxFetchRecord {
		return errTooLarge
	}
	bigger := make([]byte, 2*len(w.buf))
	copy(bigger, w.buf[:w.tail])
	w.buf = bigger
	return nil
}

// peek gives the next byte that is no white space, without taking it.
func (w *window) peek() (byte, error) {
	for {
		for w.head < w.tail {
			if c := w.buf[w.head]; !isSpace(c) {
				return c, nil
			}
			w.head++
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// take takes the next byte if it is want.
func (w *window) take(want byte) (bool, error) {
	c, err := w.peek()
	if err != nil || c != want {
		return false, err
	}
	w.head++
	return true, nil
}

func (w *window) expect(want byte) error {
	ok, err := w.take(want)
	if err == nil && !ok {
		err = errSyntax
	}
	return err
}

// here is what has arrived, as far as a record of common size goes.
func (w *window) here() []byte { return w.buf[w.head:min(w.tail, w.head+windowSize)] }

// value gives the next whole value. Its inside is not validated.
func (w *window) value() ([]byte, error) {
	if _, err := w.peek(); err != nil {
		return nil, err
	}
	var s valueScan
	for !s.run(w.buf[w.head:w.tail]) {
		if s.pos > maxFetchRecord {
			return nil, errTooLarge
		}
		if err := w.fill(); err != nil {
			return nil, err
		}
	}
	if s.pos == 0 {
		return nil, errSyntax
	}
	v := w.buf[w.head : w.head+s.pos]
	w.head += s.pos
	return v, nil
}

// each walks an object or array whose opening byte is next: more is called at
// each element and must consume it.
func (w *window) each(open, end byte, element func() error) error {
	if err := w.expect(open); err != nil {
		return err
	}
	if done, err := w.take(end); err != nil || done {
		return err
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if done, err := w.take(end); err != nil || done {
			return err
		}
		if err := w.expect(','); err != nil {
			return err
		}
	}
}

// atEnd reads to the end of the stream, which lets the connection be used
// again, and accepts white space only.
func (w *window) atEnd() error {
	if _, err := w.peek(); !errors.Is(err, errEnds) {
		if err == nil {
			err = errTrailing
		}
		return err
	}
	return nil
}
