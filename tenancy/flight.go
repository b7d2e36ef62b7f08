package tenancy

import (
	"context"
	"sync"
)

// Flight lets concurrent callers of one key share a call. The first caller
// runs it in its own goroutine, so nothing is started that nobody waits for;
// the others wait for its answer or for their own context.
type Flight[K comparable, V any] struct {
	mu    sync.Mutex // guards calls
	calls map[K]*call[V]
}

type call[V any] struct {
	done chan struct{}
	v    V
	err  error
}

// Do runs fn, or waits for the call of the same key that is under way. led
// says which. fn gets a context without the leader's cancellation: a leader
// whose client leaves must not fail the others. fn bounds its own time.
func (f *Flight[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (v V, led bool, err error) {
	f.mu.Lock()
	if c, ok := f.calls[key]; ok {
		f.mu.Unlock()
		select {
		case <-c.done:
			return c.v, false, c.err
		case <-ctx.Done():
			return v, false, ctx.Err()
		}
	}
	if f.calls == nil {
		f.calls = make(map[K]*call[V])
	}
	c := &call[V]{done: make(chan struct{}), err: context.Canceled}
	f.calls[key] = c
	f.mu.Unlock()

	defer f.finish(key, c) // also when fn panics: waiters then see context.Canceled
	c.v, c.err = fn(context.WithoutCancel(ctx))
	return c.v, true, c.err
}

func (f *Flight[K, V]) finish(key K, c *call[V]) {
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	close(c.done)
}
