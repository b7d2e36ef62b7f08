package proxy

import (
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

func TestBucket(t *testing.T) {
	type step struct {
		after time.Duration
		n     float64
		want  int // Retry-After; 0: it passes
	}
	for _, tc := range []struct {
		name        string
		rate, burst control.Limit
		steps       []step
	}{
		{"starts full", control.AtMost(1), control.AtMost(3), []step{{0, 1, 0}, {0, 2, 0}, {0, 1, 1}}},
		{"refills without steps", control.AtMost(2), control.AtMost(2), []step{{0, 2, 0}, {499 * time.Millisecond, 1, 1}, {time.Millisecond, 1, 0}}},
		{"refills to the burst only", control.AtMost(10), control.AtMost(20), []step{{0, 20, 0}, {time.Hour, 21, 1}, {0, 20, 0}}},
		{"a refusal takes nothing", control.AtMost(1), control.AtMost(2), []step{{0, 1, 0}, {0, 2, 1}, {0, 1, 0}}},
		{"retry after is rounded up", control.AtMost(2), control.AtMost(10), []step{{0, 10, 0}, {0, 5, 3}}},
		{"retry after is at most a minute", control.AtMost(0.01), control.AtMost(1), []step{{0, 1, 0}, {0, 1, 60}}},
		{"no refill", control.AtMost(0), control.AtMost(1), []step{{0, 1, 0}, {time.Hour, 1, 60}}},
		{"more than the burst", control.AtMost(20), control.AtMost(100), []step{{0, 1000, 45}, {time.Hour, 1000, 45}}},
		{"no rate", control.Limit{}, control.AtMost(1), []step{{0, 1e9, 0}}},
		{"nothing asked for", control.AtMost(0), control.AtMost(0), []step{{0, 0, 0}, {0, 1, 60}}},
		{"a negative limit is none left", control.AtMost(-5), control.AtMost(-1), []step{{0, 1, 60}}},
		{"a clock that goes back", control.AtMost(1), control.AtMost(1), []step{{0, 1, 0}, {-time.Hour, 1, 1}, {time.Second, 1, 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bucket
			now := time.Date(2026, 10, 2, 8, 0, 0, 0, time.UTC)
			for i, s := range tc.steps {
				now = now.Add(s.after)
				if got, ok := b.take(s.n, tc.rate, tc.burst, now); ok != (s.want == 0) || got != s.want {
					t.Errorf("step %d: retry after %d, %v; want %d", i, got, ok, s.want)
				}
			}
		})
	}
}

func TestOtherLimitsAreAnotherBucket(t *testing.T) {
	var b bucket
	now := time.Unix(1, 0)
	b.take(5, control.AtMost(1), control.AtMost(5), now)
	if _, ok := b.take(1, control.AtMost(1), control.AtMost(5), now); ok {
		t.Fatal("the bucket was not empty")
	}
	if _, ok := b.take(2, control.AtMost(1), control.AtMost(2), now); !ok {
		t.Error("a new limit does not start full")
	}
}
