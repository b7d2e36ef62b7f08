package broker

// waiter is a parked fetch. Its channel holds one signal: that something it
// waits for may have changed since it looked last.
type waiter chan struct{}

// waiters is who waits for one thing; the lock of that thing guards it.
type waiters struct{ set map[waiter]struct{} }

func (w *waiters) add(c waiter) {
	if w.set == nil {
		w.set = make(map[waiter]struct{})
	}
	w.set[c] = struct{}{}
}

func (w *waiters) remove(c waiter) {
	delete(w.set, c)
	if len(w.set) == 0 {
		w.set = nil
	}
}

func (w *waiters) wake() {
	for c := range w.set {
		select {
		case c <- struct{}{}:
		default: // it has not looked yet since the last signal
		}
	}
}

// watchable is a partition; until the partition exists, its queue; until that
// exists, the catalog.
type watchable interface {
	watch(waiter)
	unwatch(waiter)
}

func (p *partition) watch(c waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters.add(c)
}

func (p *partition) unwatch(c waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters.remove(c)
}

func (q *queue) watch(c waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiters.add(c)
}

func (q *queue) unwatch(c waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiters.remove(c)
}

func (c *catalog) watch(w waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters.add(w)
}

func (c *catalog) unwatch(w waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters.remove(w)
}
