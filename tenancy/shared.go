package tenancy

import (
	"container/list"
	"sync"
)

// shared is a bounded cache that tenants share fairly (B6): when it is full, the
// tenant that holds most gives up its least recently used entry, whoever comes.
// So a tenant that holds no more than its part of the places loses nothing to
// what another does. Of tenants that hold as much as each other the one gives that
// was not used, and has not given, for longest. It is safe for concurrent use.
type shared[K comparable, V any] struct {
	size int

	mu      sync.Mutex // guards the fields below
	entries map[K]*list.Element
	shares  map[ID]*share
	tiers   map[int]*list.List // of *share, by how much they hold; the longest idle first
	most    int                // the highest tier
}

// share is what one tenant holds.
type share struct {
	owner   ID
	entries *list.List    // of *kept, the least recently used first
	place   *list.Element // in its tier
}

type kept[K comparable, V any] struct {
	of    *share
	key   K
	value V
}

// newShared makes a cache of at most size entries, one at least.
func newShared[K comparable, V any](size int) *shared[K, V] {
	return &shared[K, V]{
		size:    max(size, 1),
		entries: make(map[K]*list.Element), shares: make(map[ID]*share), tiers: make(map[int]*list.List),
	}
}

// get returns what is under k and marks it, and its owner, recently used.
func (c *shared[K, V]) get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[k]
	if !ok {
		return v, false
	}
	x := e.Value.(*kept[K, V])
	x.of.entries.MoveToBack(e)
	c.tiers[x.of.entries.Len()].MoveToBack(x.of.place)
	return x.value, true
}

// set keeps v under k, as one of the owner's.
func (c *shared[K, V]) set(owner ID, k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(k)
	c.add(owner, k, v)
}

// getOrSet returns what is under k, or keeps and returns v.
func (c *shared[K, V]) getOrSet(owner ID, k K, v V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[k]; ok {
		return e.Value.(*kept[K, V]).value
	}
	c.add(owner, k, v)
	return v
}

func (c *shared[K, V]) delete(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(k)
}

// drop forgets all of one owner's.
func (c *shared[K, V]) drop(owner ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := c.shares[owner]; s != nil && s.entries.Len() > 0; {
		c.remove(s.entries.Front().Value.(*kept[K, V]).key)
	}
}

func (c *shared[K, V]) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// add adds an entry and then makes room, so that the newcomer counts as its
// owner's; c.mu is held.
func (c *shared[K, V]) add(owner ID, k K, v V) {
	s := c.shares[owner]
	if s == nil {
		s = &share{owner: owner, entries: list.New()}
		c.shares[owner] = s
	}
	c.leaveTier(s)
	c.entries[k] = s.entries.PushBack(&kept[K, V]{of: s, key: k, value: v})
	c.enterTier(s)
	if len(c.entries) > c.size {
		gives := c.tiers[c.most].Front().Value.(*share)
		c.remove(gives.entries.Front().Value.(*kept[K, V]).key)
	}
}

// remove takes an entry out, if it is there; c.mu is held.
func (c *shared[K, V]) remove(k K) {
	e, ok := c.entries[k]
	if !ok {
		return
	}
	s := e.Value.(*kept[K, V]).of
	c.leaveTier(s)
	s.entries.Remove(e)
	delete(c.entries, k)
	if s.entries.Len() == 0 {
		delete(c.shares, s.owner)
	} else {
		c.enterTier(s)
	}
	for c.most > 0 && c.tiers[c.most] == nil {
		c.most--
	}
}

// leaveTier and enterTier stand around every change of what a tenant holds; c.mu
// is held.
func (c *shared[K, V]) leaveTier(s *share) {
	n := s.entries.Len()
	if n == 0 {
		return // it is new
	}
	if c.tiers[n].Remove(s.place); c.tiers[n].Len() == 0 {
		delete(c.tiers, n)
	}
}

func (c *shared[K, V]) enterTier(s *share) {
	n := s.entries.Len()
	if c.tiers[n] == nil {
		c.tiers[n] = list.New()
	}
	s.place = c.tiers[n].PushBack(s)
	c.most = max(c.most, n)
}
