package tenancy_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/queen-mq/queen-edge/tenancy"
)

// One tenant fills a cache again and again: of another's entries, which take no
// more than its part, none goes.
func TestLRUIsSharedFairly(t *testing.T) {
	s := scopes(t, 4)
	l := tenancy.NewLRU[int, int](8)
	for n := range 4 {
		l.Set(tenancy.KeyOf(s[0], n), n)
	}
	for n := range 100 {
		l.Set(tenancy.KeyOf(s[1], n), n)
	}
	for n := range 4 {
		if _, ok := l.Get(tenancy.KeyOf(s[0], n)); !ok {
			t.Errorf("entry %d went for another tenant's", n)
		}
		if _, ok := l.Get(tenancy.KeyOf(s[1], 99-n)); !ok {
			t.Errorf("the other tenant has not the last %d of its own", n)
		}
	}
	// Newcomers are let in, at the cost of those who hold most.
	for n := range 2 {
		l.Set(tenancy.KeyOf(s[2], n), n)
		l.Set(tenancy.KeyOf(s[3], n), n)
	}
	for i := range s {
		held := 0
		for n := range 100 {
			if _, ok := l.Get(tenancy.KeyOf(s[i], n)); ok {
				held++
			}
		}
		if held != 2 {
			t.Errorf("tenant %d holds %d of 8 places, want 2 like each of the four", i, held)
		}
	}
}

// naiveLRU is the same in the plainest way: a list, and who was last at what.
type naiveLRU struct {
	size    int
	clock   int
	entries []naiveEntry
	last    [3]int // of each tenant
}

type naiveEntry struct{ tenant, name, value, used int }

func (m *naiveLRU) find(tenant, name int) int {
	return slices.IndexFunc(m.entries, func(e naiveEntry) bool { return e.tenant == tenant && e.name == name })
}

func (m *naiveLRU) touch(tenant int) int {
	m.clock++
	m.last[tenant] = m.clock
	return m.clock
}

func (m *naiveLRU) remove(i int) {
	m.touch(m.entries[i].tenant)
	m.entries = slices.Delete(m.entries, i, i+1)
}

func (m *naiveLRU) set(tenant, name, value int) {
	if i := m.find(tenant, name); i >= 0 {
		m.remove(i)
	}
	m.entries = append(m.entries, naiveEntry{tenant, name, value, m.touch(tenant)})
	if len(m.entries) <= m.size {
		return
	}
	var held [3]int
	for _, e := range m.entries {
		held[e.tenant]++
	}
	goes := slices.MinFunc(m.entries, func(a, b naiveEntry) int {
		return cmp.Or(cmp.Compare(held[b.tenant], held[a.tenant]), cmp.Compare(m.last[a.tenant], m.last[b.tenant]), cmp.Compare(a.used, b.used))
	})
	m.remove(m.find(goes.tenant, goes.name))
}

func TestLRUAgainstTheRule(t *testing.T) {
	s := scopes(t, 3)
	rapid.Check(t, func(t *rapid.T) {
		m := &naiveLRU{size: rapid.IntRange(1, 6).Draw(t, "size")}
		l := tenancy.NewLRU[int, int](m.size)
		pick := func(t *rapid.T) (tenant, name int) {
			return rapid.IntRange(0, 2).Draw(t, "tenant"), rapid.IntRange(0, 4).Draw(t, "name")
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				tenant, name := pick(t)
				v, ok := l.Get(tenancy.KeyOf(s[tenant], name))
				i := m.find(tenant, name)
				if ok != (i >= 0) || ok && v != m.entries[i].value {
					t.Fatalf("%d/%d is %d, %v; want %+v", tenant, name, v, ok, m.entries)
				}
				if ok {
					m.entries[i].used = m.touch(tenant)
				}
			},
			"set": func(t *rapid.T) {
				tenant, name := pick(t)
				l.Set(tenancy.KeyOf(s[tenant], name), m.clock)
				m.set(tenant, name, m.clock)
			},
			"get or set": func(t *rapid.T) {
				tenant, name := pick(t)
				want := m.clock
				if i := m.find(tenant, name); i >= 0 {
					want = m.entries[i].value
				} else {
					m.set(tenant, name, want)
				}
				if got := l.GetOrSet(tenancy.KeyOf(s[tenant], name), want); got != want {
					t.Fatalf("%d/%d is %d, want %d", tenant, name, got, want)
				}
			},
			"delete": func(t *rapid.T) {
				tenant, name := pick(t)
				l.Delete(tenancy.KeyOf(s[tenant], name))
				if i := m.find(tenant, name); i >= 0 {
					m.remove(i)
				}
			},
			"drop": func(t *rapid.T) {
				tenant, _ := pick(t)
				l.DropTenant(s[tenant].ID())
				m.entries = slices.DeleteFunc(m.entries, func(e naiveEntry) bool { return e.tenant == tenant })
			},
			"": func(t *rapid.T) {
				if l.Len() != len(m.entries) {
					t.Fatalf("%d entries, want %d", l.Len(), len(m.entries))
				}
			},
		})
	})
}
