package slab_test

import (
	"sync"
	"testing"

	"github.com/queen-mq/queen-edge/edge/slab"
)

// What is lent is empty and has room for what was asked, in the next power of
// two of it.
func TestSizes(t *testing.T) {
	var p slab.Pool
	for _, c := range []struct{ n, want int }{
		{0, slab.Least},
		{1, slab.Least},
		{slab.Least, slab.Least},
		{slab.Least + 1, 2 * slab.Least},
		{100_000, 128 << 10},
		{1 << 20, 1 << 20},
		{1<<20 + 1, 2 << 20},
		{slab.Most, slab.Most},
		{slab.Most + 1, slab.Most + 1},
	} {
		for range 3 { // new, and again
			b := p.Get(c.n)
			if len(*b) != 0 || cap(*b) != c.want {
				t.Errorf("%d bytes: a slice of %d, cap %d, want cap %d", c.n, len(*b), cap(*b), c.want)
			}
			if got := slab.Size(c.n); got != c.want {
				t.Errorf("Size(%d) = %d, want %d", c.n, got, c.want)
			}
			*b = append(*b, "somebody's"...)
			p.Put(b)
		}
	}
	p.Put(nil)
}

// A slice of an odd size serves those that it has room for; a giant is not kept.
func TestWhatGrewElsewhere(t *testing.T) {
	var p slab.Pool
	for range 100 {
		odd := make([]byte, 7, 100_000)
		p.Put(&odd)
		if b := p.Get(100_000); cap(*b) < 100_000 {
			t.Fatalf("room for %d", cap(*b))
		}
		giant := make([]byte, 0, slab.Most+1)
		p.Put(&giant)
		if b := p.Get(slab.Most); cap(*b) != slab.Most {
			t.Fatalf("a slice of %d was kept", cap(*b))
		}
		small := make([]byte, 0, slab.Least-1)
		p.Put(&small)
		if b := p.Get(0); cap(*b) < slab.Least {
			t.Fatalf("room for %d", cap(*b))
		}
	}
}

// Nothing is lent twice at a time.
func TestNobodySharesWhatIsLent(t *testing.T) {
	var p slab.Pool
	var all sync.WaitGroup
	for who := range byte(4) {
		all.Go(func() {
			for i := range 2000 {
				b := p.Get(i * 37)
				*b = append(*b, who, who, who)
				for _, c := range *b {
					if c != who {
						t.Errorf("%d found %d", who, c)
					}
				}
				p.Put(b)
			}
		})
	}
	all.Wait()
}

func BenchmarkPool(b *testing.B) {
	var p slab.Pool
	b.ReportAllocs()
	for b.Loop() {
		p.Put(p.Get(100_000))
	}
}
