// Package slab lends memory in a few sizes, so that what grew for one request
// serves the next one, whoever's that is. What lies behind a slice's length is
// somebody else's: it is never to be read.
package slab

import (
	"math/bits"
	"sync"
)

// Sizes of the memory that is kept.
const (
	// Least is the smallest piece.
	Least = 4 << 10
	// Most is the largest one. What is larger goes back to the collector.
	Most = 16 << 20
)

const (
	leastBits = 12
	classes   = 13 // powers of two from Least to Most
)

// Pool lends slices. The zero Pool is ready and safe for concurrent use. It
// holds what was given back until the collector has run twice.
type Pool struct{ p [classes]sync.Pool }

// Size is the room that Get(n) gives: the next power of two, or n where that is
// above Most.
func Size(n int) int {
	if n > Most {
		return n
	}
	return Least << class(n)
}

// class is the number of the smallest piece with room for n bytes.
func class(n int) int {
	if n <= Least {
		return 0
	}
	return bits.Len(uint(n-1)) - leastBits
}

// Get returns an empty slice with room for Size(n) bytes.
func (p *Pool) Get(n int) *[]byte {
	if n <= Most {
		if b, ok := p.p[class(n)].Get().(*[]byte); ok {
			*b = (*b)[:0]
			return b
		}
	}
	b := make([]byte, 0, Size(n))
	return &b
}

// Put takes a slice back, also one that has grown elsewhere; nil is none. What
// was read from it must not be used any more.
func (p *Pool) Put(b *[]byte) {
	if b == nil || cap(*b) < Least || cap(*b) > Most {
		return
	}
	p.p[bits.Len(uint(cap(*b)))-1-leastBits].Put(b)
}
