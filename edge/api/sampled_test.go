package api

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// handClock is a zap clock that a test moves.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                       { return c.now }
func (c *handClock) NewTicker(time.Duration) *time.Ticker { panic("nobody ticks") }

// Each line once a minute, and the next one says how many were not written, of
// that line and no other.
func TestSampledSaysWhatItKept(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	clock := &handClock{now: time.Unix(1_800_000_000, 0)}
	log := Sampled(zap.New(core, zap.WithClock(clock)))
	tenant := log.With(zap.String("tenant", "a"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				tenant.Warn("one")
			}
		})
	}
	wg.Wait()
	log.Warn("two")
	log.Debug("one") // not enabled: not counted either
	clock.now = clock.now.Add(time.Minute - 1)
	log.Warn("one")
	clock.now = clock.now.Add(1)
	log.Warn("one")
	log.Warn("two", zap.Int("n", 7))
	clock.now = clock.now.Add(time.Minute)
	log.Warn("one")
	var got []any
	for _, e := range logs.All() {
		got = append(got, e.Message, e.ContextMap()["suppressed"])
	}
	want := []any{"one", int64(0), "two", int64(0), "one", int64(200), "two", int64(0), "one", int64(0)}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if logs.All()[0].ContextMap()["tenant"] != "a" || logs.All()[3].ContextMap()["n"] != int64(7) {
		t.Error("fields are lost")
	}
}
