package tenancy

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

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

// LRU is a bounded tenant-keyed map, safe for concurrent use.
type LRU[T comparable, V any] struct{ c *lru.Cache[Key[T], V] }

// NewLRU makes an LRU of at most size entries (size ≥ 1).
func NewLRU[T comparable, V any](size int) *LRU[T, V] {
	c, err := lru.New[Key[T], V](max(size, 1))
	if err != nil { // only a size below 1 errs
		panic(err)
	}
	return &LRU[T, V]{c: c}
}

// Get returns the value under k and marks it recently used.
func (l *LRU[T, V]) Get(k Key[T]) (V, bool) { return l.c.Get(k.must()) }

// Set keeps v under k, evicting the least recently used entry when full.
func (l *LRU[T, V]) Set(k Key[T], v V) { l.c.Add(k.must(), v) }

// GetOrSet returns what is under k, or keeps and returns v.
func (l *LRU[T, V]) GetOrSet(k Key[T], v V) V {
	if prev, ok, _ := l.c.PeekOrAdd(k.must(), v); ok {
		return prev
	}
	return v
}

// Delete forgets k.
func (l *LRU[T, V]) Delete(k Key[T]) { l.c.Remove(k.must()) }

// Len is the number of entries of all tenants.
func (l *LRU[T, V]) Len() int { return l.c.Len() }

// DropTenant forgets every entry of one tenant.
func (l *LRU[T, V]) DropTenant(id ID) {
	for _, k := range l.c.Keys() {
		if k.id == id {
			l.c.Remove(k)
		}
	}
}
