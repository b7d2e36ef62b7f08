package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// As many turns as are taken while the scheduler is in time; few while it is late
// and there is another tenant.
func TestTurnsFollowLateness(t *testing.T) {
	s := scopes(t, "a", "b")
	l := New(4, .25)
	var seats []*Seat
	take := func(n int) {
		for range n {
			seat := l.Enter(s[0])
			seat.Take(nil)
			seats = append(seats, seat)
		}
	}
	limit := func(want int, lateness time.Duration, after string) {
		t.Helper()
		l.Step(lateness)
		if got := l.Stats().Limit; got != want {
			t.Errorf("%d turns %s, want %d", got, after, want)
		}
	}
	take(100)
	limit(0, 10*late, "late, with one tenant")
	other := l.Enter(s[1])
	limit(0, late/2, "in time")
	limit(75, 2*late, "late, with 100 requests on their way")
	for _, seat := range seats {
		seat.Give(0)
	}
	limit(75, late, "at the lateness that is allowed")
	l.waited = true
	limit(75+75/4+1, late/4, "in time, with somebody in line")
	l.waited = true
	for range 20 {
		l.Step(2 * late)
	}
	limit(4, 2*late, "late for long")
	for range calmTicks {
		l.Step(0)
	}
	limit(0, 0, "with nobody in line for long")
	take(1)
	limit(4, 2*late, "late again")
	other.Leave()
	limit(0, 2*late, "when the other tenant has left")
	for _, seat := range seats {
		seat.Leave()
	}
}

// With nothing kept for others nobody ever waits.
func TestWithoutReserve(t *testing.T) {
	s := scopes(t, "a", "b")
	l := New(2, 0)
	a, b := l.Enter(s[0]), l.Enter(s[1])
	a.Take(nil)
	b.Take(nil)
	l.Step(time.Second)
	if n := l.Stats().Limit; n != 0 {
		t.Errorf("%d turns", n)
	}
	a.Leave()
	b.Leave()
}

// Run ends with its context, and lets everybody go.
func TestRunEnds(t *testing.T) {
	s := scopes(t, "a")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		c.come("a", s[0], 0, 2)
		go func() {
			defer close(ended)
			c.Run(ctx)
		}()
		end()
		<-ended
		synctest.Wait()
		if len(c.served) != 2 {
			t.Errorf("served %v", c.served)
		}
		c.serveAll(free)
		c.check(t)
	})
}

// The runtime still tells how late it is, under the name that is asked for.
func TestSchedulerIsLate(t *testing.T) {
	var s scheduler
	s.lateness()
	var n int
	for range 2000 { // of those that begin to run only some are sampled
		done := make(chan struct{})
		go close(done)
		<-done
	}
	for _, count := range s.before {
		n += int(count)
	}
	s.lateness()
	for _, count := range s.before {
		n -= int(count)
	}
	if n >= 0 {
		t.Error("2000 goroutines have begun to run, and the runtime has counted none")
	}
}

// What a request pays while nobody has to wait, and while others do.
func BenchmarkTurn(b *testing.B) {
	s := scopes(b, "a", "b")
	for _, bench := range []struct {
		name  string
		limit int
	}{{"nobody waits", 0}, {"few turns", 4}} {
		b.Run(bench.name, func(b *testing.B) {
			l := New(2, .25)
			l.set(bench.limit)
			seat := l.Enter(s[0])
			defer seat.Leave()
			b.ReportAllocs()
			for b.Loop() {
				seat.Take(nil)
				seat.Give(1000)
			}
		})
	}
}
