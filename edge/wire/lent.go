package wire

import (
	"bufio"
	"io"
	"sync"
)

// Lent is a part of an answer that is written from where it lies.
type Lent struct {
	At    int // in the answer's own bytes: it goes out before this one
	Bytes []byte
}

// LentBytes is how many bytes lie elsewhere.
func LentBytes(lent []Lent) (n int) {
	for i := range lent {
		n += len(lent[i].Bytes)
	}
	return n
}

// gathered is what small parts are gathered to: a TLS record's worth, so that a
// header of a few bytes does not make one of its own.
const gathered = 16 << 10

// Writers lends what gathers an answer's parts. The zero Writers is ready.
type Writers struct{ p sync.Pool }

// Write writes own to w with the lent parts in their places, which ascend. Parts
// that are large go out as they are.
func (p *Writers) Write(w io.Writer, own []byte, lent []Lent) error {
	b, ok := p.p.Get().(*bufio.Writer)
	if !ok {
		b = bufio.NewWriterSize(nil, gathered)
	}
	b.Reset(w)
	defer func() { // without the connection
		b.Reset(nil)
		p.p.Put(b)
	}()
	at := 0
	for i := range lent { // errors stay with b until Flush tells
		_, _ = b.Write(own[at:lent[i].At])
		_, _ = b.Write(lent[i].Bytes)
		at = lent[i].At
	}
	_, _ = b.Write(own[at:])
	return b.Flush()
}
