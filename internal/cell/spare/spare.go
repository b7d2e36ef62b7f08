// Package spare keeps what grew for one call for the next one, whoever's that is:
// what is taken is to be written over before it is read.
package spare

import "sync"

// kept is how many values outlive the collector.
const kept = 4

// List lends values. The zero List is ready and safe for concurrent use. A few
// values stay whatever happens, the others until the collector has run twice. A
// sync.Pool alone forgets what one core has not used for that long, and where
// little else is alive the collector runs every few pushes: then their memory is
// made and zeroed again and again.
type List[T any] struct {
	mu   sync.Mutex // guards few and n
	few  [kept]*T
	n    int
	rest sync.Pool // *T
}

// Take gives a value that was put back, else a new one, which is zero.
func (l *List[T]) Take() *T {
	l.mu.Lock()
	if l.n > 0 {
		l.n--
		v := l.few[l.n]
		l.few[l.n] = nil
		l.mu.Unlock()
		return v
	}
	l.mu.Unlock()
	if v, ok := l.rest.Get().(*T); ok {
		return v
	}
	return new(T)
}

// Put takes a value back. One that is small enough may stay for good.
func (l *List[T]) Put(v *T, small bool) {
	if small {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.n < kept {
			l.few[l.n] = v
			l.n++
			return
		}
	}
	l.rest.Put(v)
}
