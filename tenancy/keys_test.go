package tenancy_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestZeroScopeAndKeyPanic(t *testing.T) {
	var s tenancy.Scope
	var k tenancy.Key[string]
	var m tenancy.Map[string, int]
	l := tenancy.NewLRU[string, int](1)
	c := tenancy.NewCeiling(10, 0.25)
	for name, use := range map[string]func(){
		"ID":         func() { s.ID() },
		"Resolved":   func() { s.Resolved() },
		"Credential": func() { s.Credential() },
		"Bearer":     func() { s.Bearer() },
		"Host":       func() { s.Host() },
		"Rights":     func() { s.Rights() },
		"KeyOf":      func() { tenancy.KeyOf(s, "x") },
		"Map.Get":    func() { m.Get(k) },
		"Map.Make":   func() { m.GetOrMake(k, func() int { return 1 }) },
		"Map.Set":    func() { m.Set(k, 1) },
		"Map.Delete": func() { m.Delete(k) },
		"LRU.Get":    func() { l.Get(k) },
		"LRU.Set":    func() { l.Set(k, 1) },
		"LRU.GetSet": func() { l.GetOrSet(k, 1) },
		"LRU.Delete": func() { l.Delete(k) },
		"Take":       func() { c.Take(s, 1) },
		"Give":       func() { c.Give(s, 1) },
		"Held":       func() { c.Held(s) },
		"Wait":       func() { _, _ = c.Wait(context.Background(), s, 1) },
	} {
		if !panics(use) {
			t.Errorf("%s of a zero value does not panic", name)
		}
	}
	// Printing is not using: a log line must not bring a connection down.
	if fmt.Sprint(s) == "" {
		t.Error("a zero Scope does not print")
	}
	// And no lock was left held.
	one := scopes(t, 1)[0]
	m.Set(tenancy.KeyOf(one, "x"), 1)
	l.Set(tenancy.KeyOf(one, "x"), 1)
	if !c.Take(one, 1) || m.Len() != 1 || l.Len() != 1 || c.Total() != 1 {
		t.Error("a panic left something behind")
	}
}

func TestMapKeepsTenantsApart(t *testing.T) {
	s := scopes(t, 2)
	var m tenancy.Map[string, string]
	for i, scope := range s {
		for _, name := range []string{"x", "y"} {
			m.Set(tenancy.KeyOf(scope, name), fmt.Sprint(i)+name)
		}
	}
	if v, ok := m.Get(tenancy.KeyOf(s[1], "x")); !ok || v != "1x" {
		t.Errorf("got %q, %v", v, ok)
	}
	if v := m.GetOrMake(tenancy.KeyOf(s[0], "x"), func() string { return "new" }); v != "0x" {
		t.Errorf("made %q where there was a value", v)
	}
	m.Delete(tenancy.KeyOf(s[0], "x"))
	if _, ok := m.Get(tenancy.KeyOf(s[1], "x")); !ok {
		t.Error("a delete reached another tenant")
	}
	if n := m.DropTenant(s[1].ID()); n != 2 || m.Len() != 1 {
		t.Errorf("dropped %d, left %d", n, m.Len())
	}
	if v, _ := m.Get(tenancy.KeyOf(s[0], "y")); v != "0y" {
		t.Error("a drop reached another tenant")
	}
}

func TestMapMakesOnce(t *testing.T) {
	s := scopes(t, 1)[0]
	var m tenancy.Map[int, *int]
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	got := map[*int]bool{}
	for range 32 {
		wg.Go(func() {
			v := m.GetOrMake(tenancy.KeyOf(s, 7), func() *int { made++; return new(int) })
			mu.Lock()
			got[v] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if made != 1 || len(got) != 1 {
		t.Errorf("made %d, seen %d", made, len(got))
	}
	if !panics(func() { m.GetOrMake(tenancy.KeyOf(s, 8), func() *int { panic("x") }) }) || m.Len() != 1 {
		t.Error("a maker that panics leaves a value or the lock")
	}
}

func TestLRU(t *testing.T) {
	s := scopes(t, 2)
	l := tenancy.NewLRU[int, string](3)
	key := func(tenant, n int) tenancy.Key[int] { return tenancy.KeyOf(s[tenant], n) }
	for n := range 3 {
		l.Set(key(0, n), "a")
	}
	l.Get(key(0, 0)) // recently read: not the next to go
	l.Set(key(1, 0), "b")
	if _, ok := l.Get(key(0, 1)); ok || l.Len() != 3 {
		t.Errorf("the least recently used stayed; %d entries", l.Len())
	}
	if v := l.GetOrSet(key(1, 0), "other"); v != "b" {
		t.Errorf("GetOrSet replaced a value: %q", v)
	}
	if v := l.GetOrSet(key(1, 1), "c"); v != "c" || l.Len() != 3 {
		t.Errorf("GetOrSet gave %q with %d entries", v, l.Len())
	}
	l.DropTenant(s[1].ID())
	if _, ok := l.Get(key(1, 0)); ok {
		t.Error("a dropped tenant's entry is there")
	}
	l.DropTenant(tenancy.ID{})
	left := l.Len()
	l.Set(key(0, 0), "again")
	l.Delete(key(0, 0))
	if _, ok := l.Get(key(0, 0)); ok || left == 0 {
		t.Error("a deleted entry is there, or a drop took another tenant's")
	}
	if small := tenancy.NewLRU[int, string](0); small.Len() != 0 {
		t.Error("an LRU of size 0 cannot be made")
	}
}

func TestKeysTellTenantsAndNamesApart(t *testing.T) {
	s := scopes(t, 2)
	a, b := tenancy.KeyOf(s[0], "x"), tenancy.KeyOf(s[1], "x")
	if a == b || a != tenancy.KeyOf(s[0], "x") || a.Name() != "x" || a.Tenant() != s[0].ID() {
		t.Error("keys do not compare by tenant and name")
	}
}
