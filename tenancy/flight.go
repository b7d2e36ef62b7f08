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
	done  chan struct{}
	v     V
	err   error
	wants int // callers that are still there; the Flight's lock guards it
	end   context.CancelFunc
}

// Do runs fn, or waits for the call of the same key that is under way. led
// says which. fn gets a context without the leader's cancellation: a leader
// whose client leaves must not fail the others. fn bounds its own time.
func (f *Flight[K, V]) Do(ctx context.Context, key K, fn func(context.Context) (V, error)) (v V, led bool, err error) {
	return f.do(ctx, key, false, fn)
}

// DoWanted is Do for what is worth nothing once all who wanted it have gone: then
// fn's context ends, and who comes later begins anew.
func (f *Flight[K, V]) DoWanted(ctx context.Context, key K, fn func(context.Context) (V, error)) (v V, led bool, err error) {
	return f.do(ctx, key, true, fn)
}

func (f *Flight[K, V]) do(ctx context.Context, key K, wanted bool, fn func(context.Context) (V, error)) (v V, led bool, err error) {
	f.mu.Lock()
	if c, ok := f.calls[key]; ok {
		c.wants++
		f.mu.Unlock()
		select {
		case <-c.done:
			return c.v, false, c.err
		case <-ctx.Done():
			f.gone(key, c)
			return v, false, ctx.Err()
		}
	}
	if f.calls == nil {
		f.calls = make(map[K]*call[V])
	}
	c := &call[V]{done: make(chan struct{}), err: context.Canceled, wants: 1}
	f.calls[key] = c
	detached := context.WithoutCancel(ctx)
	if wanted {
		detached, c.end = context.WithCancel(detached)
		defer c.end()
		stop := context.AfterFunc(ctx, func() { f.gone(key, c) })
		defer stop()
	}
	f.mu.Unlock()

	defer f.finish(key, c) // also when fn panics: waiters then see context.Canceled
	c.v, c.err = fn(detached)
	return c.v, true, c.err
}

// gone counts a caller that waits no more.
func (f *Flight[K, V]) gone(key K, c *call[V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.wants--; c.wants > 0 || c.end == nil {
		return
	}
	c.end()
	f.forget(key, c)
}

func (f *Flight[K, V]) finish(key K, c *call[V]) {
	f.mu.Lock()
	f.forget(key, c)
	f.mu.Unlock()
	close(c.done)
}

// forget takes a call out of the way; f.mu is held.
func (f *Flight[K, V]) forget(key K, c *call[V]) {
	if f.calls[key] == c {
		delete(f.calls, key)
	}
}
