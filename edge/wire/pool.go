package wire

import "sync"

// keepUpTo is the largest buffer a Pool keeps. A produce frame of a well-tuned
// client (1 MiB batches) is reused; a 100 MiB one goes back to the collector.
const keepUpTo = 4 << 20

// Pool recycles frame buffers. The zero Pool is ready. What was read from a
// buffer must not be used after Put.
type Pool struct{ p sync.Pool }

// Get returns an empty buffer of some capacity.
func (p *Pool) Get() *[]byte {
	if b, ok := p.p.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	return new([]byte)
}

// Put takes a buffer back.
func (p *Pool) Put(b *[]byte) {
	if b == nil || cap(*b) > keepUpTo {
		return
	}
	p.p.Put(b)
}
