package tenancy_test

import (
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestRates(t *testing.T) {
	now := time.Unix(1000, 0)
	r := tenancy.NewRates(10, 10, 5*time.Second)
	s := scopes(t, 2)
	busy, quiet := s[0], s[1]
	if d := r.Take(busy, 10, now); d != 0 {
		t.Errorf("a burst waits for %v", d)
	}
	if d := r.Take(busy, 1, now); d != 100*time.Millisecond {
		t.Errorf("the first beyond it waits for %v", d)
	}
	if d := r.Take(quiet, 1, now); d != 0 {
		t.Errorf("another tenant waits for %v", d)
	}
	if d := r.Take(busy, 64, now); d != 5*time.Second { // more than the bucket holds, and than may be owed
		t.Errorf("a flood owes %v", d)
	}
	if d := r.Take(busy, 1000, now); d != 5*time.Second {
		t.Errorf("a longer flood owes %v", d)
	}
	now = now.Add(5*time.Second + 100*time.Millisecond) // the debt is bounded: so is what pays for it
	if d := r.Take(busy, 1, now); d != 0 {
		t.Errorf("after the debt was paid it waits for %v", d)
	}
}

func TestRatesAllow(t *testing.T) {
	now := time.Unix(1000, 0)
	r := tenancy.NewRates(2, 4, 0)
	s := scopes(t, 2)
	busy, quiet := s[0], s[1]
	for i := range 4 {
		if !r.Allow(busy, now) {
			t.Errorf("number %d of a burst of 4 is refused", i)
		}
	}
	for range 100 { // refused ones cost nothing
		if r.Allow(busy, now) {
			t.Fatal("more than the burst is let in")
		}
	}
	if !r.Allow(quiet, now) {
		t.Error("another tenant is refused")
	}
	if now = now.Add(500 * time.Millisecond); !r.Allow(busy, now) || r.Allow(busy, now) {
		t.Error("half a second at 2/s is not one")
	}
}

// What is kept of tenants is those of the last seconds, however many come.
func TestRatesForget(t *testing.T) {
	now := time.Unix(1000, 0)
	r := tenancy.NewRates(10, 10, 5*time.Second)
	s := scopes(t, 500)
	for range 4 {
		for _, tenant := range s {
			now = now.Add(100 * time.Millisecond)
			r.Take(tenant, 1, now)
			if n := r.Tenants(); n > 110 { // those of ten seconds, and the last ones before
				t.Fatalf("%d tenants are kept", n)
			}
		}
	}
	r.Take(s[0], 60, now) // it owes for longer than from one look to the next
	for at := now; at.Before(now.Add(4 * time.Second)); at = at.Add(time.Second) {
		r.Take(s[1], 1, at)
	}
	if d := r.Take(s[0], 1, now.Add(4*time.Second)); d == 0 {
		t.Error("a debt was forgotten")
	}
}

func TestNoRates(t *testing.T) {
	var r *tenancy.Rates
	s := scopes(t, 1)[0]
	if r.Take(s, 1000, time.Now()) != 0 || !r.Allow(s, time.Now()) || r.Tenants() != 0 {
		t.Error("no limit limits")
	}
}

func BenchmarkRates(b *testing.B) {
	r, s, now := tenancy.NewRates(1000, 1000, 5*time.Second), scopes(b, 1)[0], time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		r.Take(s, 1, now)
	}
}
