package tenancy

import "sync"

// Map is a tenant-keyed map, safe for concurrent use. It has no bound of its
// own: its owner bounds what goes in.
type Map[T comparable, V any] struct {
	mu sync.Mutex // guards m
	m  map[Key[T]]V
}

// Get returns the value kept under k.
func (m *Map[T, V]) Get(k Key[T]) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.m[k.must()]
	return v, ok
}

// GetOrMake returns the value under k, made by make (under the lock: it must
// not block) where there is none.
func (m *Map[T, V]) GetOrMake(k Key[T], make_ func() V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.m[k.must()]; ok {
		return v
	}
	if m.m == nil {
		m.m = make(map[Key[T]]V)
	}
	v := make_()
	m.m[k] = v
	return v
}

// Set keeps v under k.
func (m *Map[T, V]) Set(k Key[T], v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = make(map[Key[T]]V)
	}
	m.m[k.must()] = v
}

// Delete forgets k.
func (m *Map[T, V]) Delete(k Key[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, k.must())
}

// Len is the number of entries of all tenants.
func (m *Map[T, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.m)
}

// DropTenant forgets every entry of one tenant and returns how many there were.
func (m *Map[T, V]) DropTenant(id ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for k := range m.m {
		if k.id == id {
			delete(m.m, k)
			n++
		}
	}
	return n
}

// LRU is a bounded tenant-keyed map, safe for concurrent use. Tenants share it
// fairly: what one does takes no entry of another that holds no more than its
// part (B6).
type LRU[T comparable, V any] struct{ c *shared[Key[T], V] }

// NewLRU makes an LRU of at most size entries (size ≥ 1).
func NewLRU[T comparable, V any](size int) *LRU[T, V] {
	return &LRU[T, V]{c: newShared[Key[T], V](size)}
}

// Get returns the value under k and marks it recently used.
func (l *LRU[T, V]) Get(k Key[T]) (V, bool) { return l.c.get(k.must()) }

// Set keeps v under k. When full, the tenant that holds most loses its least
// recently used entry.
func (l *LRU[T, V]) Set(k Key[T], v V) { l.c.set(k.must().id, k, v) }

// GetOrSet returns what is under k, or keeps and returns v.
func (l *LRU[T, V]) GetOrSet(k Key[T], v V) V { return l.c.getOrSet(k.must().id, k, v) }

// Delete forgets k.
func (l *LRU[T, V]) Delete(k Key[T]) { l.c.delete(k.must()) }

// Len is the number of entries of all tenants.
func (l *LRU[T, V]) Len() int { return l.c.len() }

// DropTenant forgets every entry of one tenant.
func (l *LRU[T, V]) DropTenant(id ID) { l.c.drop(id) }
