package tenancy_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/queen-mq/queen-edge/tenancy"
)

// One tenant alone fills what is left beside the reserve, and then each of the
// others still gets in, up to the limit.
func TestCeilingOneTenantAlone(t *testing.T) {
	s := scopes(t, 3)
	for _, test := range []struct {
		limit   int64
		reserve float64
		alone   int64
	}{
		{100, 0.25, 75},
		{100, 0, 100},
		{100, 0.5, 50},
		{100, 0.9, 10},
		{8, 0.25, 6},
		{5, 0.25, 3}, // 4 of 5 would be more than three quarters
		{3, 0.25, 2},
		{2, 0.25, 1},
		{1, 0.25, 1}, // one place cannot be shared
		{100, 0.07, 93},
		{0, 0.25, 0},
		{4 << 30, 0.25, 3 << 30},
	} {
		c := tenancy.NewCeiling(test.limit, test.reserve)
		step := max(test.limit/100, 1)
		var got int64
		for c.Take(s[0], step) {
			got += step
		}
		for c.Take(s[0], 1) && test.limit < 1000 {
			got++
		}
		if got > test.alone || got < test.alone-step {
			t.Errorf("ceiling of %d with %v: one tenant alone takes %d, want %d", test.limit, test.reserve, got, test.alone)
		}
		if left := test.limit - test.alone; left > 0 && !c.Take(s[1], 1) {
			t.Errorf("ceiling of %d with %v: the door is shut on another tenant", test.limit, test.reserve)
		}
	}
}

func TestCeilingRefusesHugeAndEmpty(t *testing.T) {
	s := scopes(t, 1)[0]
	c := tenancy.NewCeiling(10, 0.25)
	c.Take(s, 2)
	if c.Take(s, math.MaxInt64) || c.Total() != 2 {
		t.Error("a huge number wraps around the ceiling")
	}
	if !c.Take(s, 0) || c.Held(s) != 2 {
		t.Error("taking nothing is refused or taken")
	}
}

// A request larger than a tenant can ever hold waits for an empty house.
func TestCeilingCutsWhatCanNeverFit(t *testing.T) {
	s := scopes(t, 1)[0]
	for _, reserve := range []float64{0, 0.25, 0.9} {
		c := tenancy.NewCeiling(100, reserve)
		n, err := c.Wait(t.Context(), s, 1000)
		if want := int64(math.Round(100 * (1 - reserve))); err != nil || n != want || c.Total() != want {
			t.Errorf("reserve %v: took %d of %d, %v", reserve, n, want, err)
		}
		c.Give(s, n)
	}
}

// line starts waiting requests and tells who was let in.
type line struct {
	t   *testing.T
	c   *tenancy.Ceiling
	in  chan string
	bye map[string]context.CancelFunc
}

func (l *line) wait(name string, s tenancy.Scope, n int64) {
	ctx, cancel := context.WithCancel(context.Background())
	l.bye[name] = cancel
	l.t.Cleanup(cancel)
	go func() {
		if _, err := l.c.Wait(ctx, s, n); err == nil {
			l.in <- name
		}
	}()
	synctest.Wait()
}

// admitted is who has come in since, in any order of one moment.
func (l *line) admitted() string {
	synctest.Wait()
	names := ""
	for {
		select {
		case name := <-l.in:
			names += name
		default:
			return names
		}
	}
}

func inLine(t *testing.T, c *tenancy.Ceiling, test func(l *line)) {
	t.Helper()
	test(&line{t: t, c: c, in: make(chan string, 100), bye: map[string]context.CancelFunc{}})
}

// A small request must not overtake a large one of its own tenant: it would
// starve.
func TestCeilingFIFOInsideATenant(t *testing.T) {
	s := scopes(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		c := tenancy.NewCeiling(100, 0)
		inLine(t, c, func(l *line) {
			c.Take(s, 90)
			l.wait("L", s, 50)
			l.wait("s", s, 1)
			if got := l.admitted(); got != "" {
				t.Errorf("%q went past the first in line", got)
			}
			c.Give(s, 30)
			if got := l.admitted(); got != "" {
				t.Errorf("%q went past the first in line", got)
			}
			c.Give(s, 10)
			if got := l.admitted(); got != "L" && got != "Ls" && got != "sL" {
				t.Errorf("admitted %q", got)
			}
		})
	})
}

func TestCeilingBlockedTenantBlocksNobodyElse(t *testing.T) {
	s := scopes(t, 2)
	synctest.Test(t, func(t *testing.T) {
		c := tenancy.NewCeiling(100, 0.25)
		inLine(t, c, func(l *line) {
			c.Take(s[0], 75)
			l.wait("A", s[0], 10)
			l.wait("B", s[1], 25)
			if got := l.admitted(); got != "B" {
				t.Errorf("admitted %q", got)
			}
			l.wait("b", s[1], 1)
			l.wait("a", s[0], 1)
			c.Give(s[0], 40)
			if got := l.admitted(); len(got) != 3 {
				t.Errorf("admitted %q, want A, b and a", got)
			}
		})
	})
}

// Who waits behind one that gives up must not wait for the next release: it may
// never come.
func TestCeilingLeavingWakesThoseBehind(t *testing.T) {
	s := scopes(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		c := tenancy.NewCeiling(100, 0)
		inLine(t, c, func(l *line) {
			c.Take(s, 60)
			l.wait("L", s, 50)
			l.wait("s", s, 10)
			l.bye["L"]()
			if got := l.admitted(); got != "s" {
				t.Errorf("admitted %q", got)
			}
			if c.Total() != 70 {
				t.Errorf("total %d", c.Total())
			}
		})
	})
}

func TestCeilingWaitEndsWithItsContext(t *testing.T) {
	s := scopes(t, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		c := tenancy.NewCeiling(10, 0)
		c.Take(s, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := c.Wait(ctx, s, 1); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took %d, %v", n, err)
		}
		c.Give(s, 10)
		if c.Total() != 0 || c.Held(s) != 0 {
			t.Error("a wait that ended holds something")
		}
	})
}

// A release and a cancellation in one instant: whichever wins, nothing is lost.
func TestCeilingAdmittedWhileLeaving(t *testing.T) {
	s := scopes(t, 2)
	c := tenancy.NewCeiling(1, 0)
	for range 2000 {
		c.Take(s[0], 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if n, err := c.Wait(ctx, s[1], 1); err == nil {
				c.Give(s[1], n)
			}
		}()
		go cancel()
		c.Give(s[0], 1)
		<-done
		if c.Total() != 0 {
			t.Fatalf("total %d", c.Total())
		}
	}
}

// naive is the rule of B6 in the plainest words.
type naive struct {
	limit, reserve int64
	held           [3]int64
}

func (m *naive) total() int64 { return m.held[0] + m.held[1] + m.held[2] }

func (m *naive) fits(tenant int, n int64) bool {
	small := m.held[tenant]+n <= min(m.reserve, m.limit-m.reserve)
	if small {
		return m.total()+n <= m.limit
	}
	return m.total()+n <= m.limit-m.reserve
}

func TestCeilingAgainstTheRule(t *testing.T) {
	s := scopes(t, 3)
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 40).Draw(t, "limit")
		reserve := rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.5, 0.75, 0.9}).Draw(t, "reserve")
		c := tenancy.NewCeiling(limit, reserve)
		m := naive{limit: limit, reserve: max(min(int64(math.Ceil(float64(limit)*reserve-1e-9)), limit-1), 0)}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				who, n := rapid.IntRange(0, 2).Draw(t, "who"), rapid.Int64Range(1, limit+1).Draw(t, "n")
				want := m.fits(who, n)
				if got := c.Take(s[who], n); got != want {
					t.Fatalf("take %d: %v, want %v", n, got, want)
				}
				if want {
					m.held[who] += n
				}
			},
			"give": func(t *rapid.T) {
				who := rapid.IntRange(0, 2).Draw(t, "who")
				if n := rapid.Int64Range(0, m.held[who]).Draw(t, "n"); n > 0 {
					c.Give(s[who], n)
					m.held[who] -= n
				}
			},
			"wait": func(t *rapid.T) {
				who, n := rapid.IntRange(0, 2).Draw(t, "who"), rapid.Int64Range(1, limit*2).Draw(t, "n")
				n = min(n, limit-m.reserve)
				ctx, cancel := context.WithCancel(context.Background())
				cancel() // it waits for nothing, so that it takes or does not
				got, err := c.Wait(ctx, s[who], n)
				if want := m.fits(who, n); want != (err == nil) || want && got != n {
					t.Fatalf("wait for %d: %d, %v, want %v", n, got, err, want)
				}
				m.held[who] += got
			},
			"": func(t *rapid.T) {
				if c.Total() != m.total() || c.Total() > limit {
					t.Fatalf("total %d, want %d", c.Total(), m.total())
				}
				for i := range s {
					if c.Held(s[i]) != m.held[i] || m.held[i] > limit-m.reserve {
						t.Fatalf("tenant %d holds %d, want %d", i, c.Held(s[i]), m.held[i])
					}
				}
			},
		})
	})
}

// Anything at once: nothing is lost, nothing drifts, the bound holds.
func TestCeilingUnderContention(t *testing.T) {
	s := scopes(t, 4)
	c := tenancy.NewCeiling(40, 0.25)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			scope := s[g%len(s)]
			for range 400 {
				n := r.Int64N(60) + 1
				ctx, cancel := context.WithCancel(context.Background())
				switch r.IntN(3) {
				case 0:
					go cancel()
					fallthrough
				case 1:
					if got, err := c.Wait(ctx, scope, n); err == nil {
						c.Give(scope, got)
					}
				case 2:
					if c.Take(scope, n) {
						c.Give(scope, n)
					}
				}
				if total := c.Total(); total < 0 || total > c.Limit() {
					t.Errorf("total %d", total)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if c.Total() != 0 {
		t.Errorf("total %d after all gave back", c.Total())
	}
	for _, scope := range s {
		if c.Held(scope) != 0 {
			t.Error("a tenant holds something")
		}
	}
}

// A tenant's own limit binds it alone, lets one larger taking in while it holds
// nothing, and is told from the ceiling's.
func TestCeilingPerTenant(t *testing.T) {
	s := scopes(t, 2)
	c := tenancy.NewCeiling(100, 0.25).PerTenant(10)
	if !c.Take(s[0], 6) || c.Take(s[0], 5) || !c.Take(s[0], 4) {
		t.Error("a tenant's limit of 10 is not 10")
	}
	if !c.Full(s[0], 1) || c.Full(s[1], 1) {
		t.Error("the limit of one tenant is taken for another's")
	}
	if !c.Take(s[1], 50) || c.Take(s[1], 1) {
		t.Error("one taking beyond the limit does not go alone")
	}
	c.Give(s[1], 50)
	if c.Take(s[1], 99) || c.Full(s[1], 99) {
		t.Error("the ceiling is taken for the tenant's limit")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := c.Wait(ctx, s[0], 5)
		done <- err
	}()
	c.Give(s[0], 5)
	if err := <-done; err != nil || c.Held(s[0]) != 10 {
		t.Errorf("whoever waited below the limit: %v, %d held", err, c.Held(s[0]))
	}
	cancel()
}
