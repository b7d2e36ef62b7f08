// Package spare keeps what grew for one call for the next one, whoever's that is:
// what is taken is to be written over before it is read.
package spare

import "sync"

// Of the values of a list, so many outlive the collector, and together they have
// at most so much memory.
const (
	kept      = 4
	keptBytes = 40 << 20
)

// List lends values. The zero List is ready and safe for concurrent use. A few
// values stay whatever happens, the others until the collector has run twice. A
// sync.Pool alone forgets what one core has not used for that long, and where
// little else is alive the collector runs every few pushes: then their memory is
// made and zeroed again and again.
type List[T any] struct {
	mu    sync.Mutex // guards the next three
	few   [kept]spare[T]
	n     int
	bytes int64     // of those that stay
	rest  sync.Pool // *T
}

type spare[T any] struct {
	value *T
	bytes int64
}

// Take gives a value that was put back, else a new one, which is zero.
func (l *List[T]) Take() *T {
	if v := l.takeKept(); v != nil {
		return v
	}
	if v, ok := l.rest.Get().(*T); ok {
		return v
	}
	return new(T)
}

func (l *List[T]) takeKept() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		return nil
	}
	l.n--
	s := l.few[l.n]
	l.few[l.n] = spare[T]{}
	l.bytes -= s.bytes
	return s.value
}

// Put takes a value back, which has so many bytes of memory.
func (l *List[T]) Put(v *T, bytes int64) {
	if !l.keep(v, bytes) {
		l.rest.Put(v)
	}
}

func (l *List[T]) keep(v *T, bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == kept || l.bytes+bytes > keptBytes {
		return false
	}
	l.few[l.n] = spare[T]{v, bytes}
	l.n++
	l.bytes += bytes
	return true
}
