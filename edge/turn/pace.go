package turn

import (
	"context"
	"runtime/metrics"
	"time"
)

// Every is the time between two ticks.
const Every = 25 * time.Millisecond

const (
	// late is how long goroutines that could run wait for a processor, on average,
	// when there is more to do than can be done.
	late = 300 * time.Microsecond
	// calmTicks without anybody in line end the limit: a second.
	calmTicks = 40
)

// Run looks every tick how late the scheduler is, and hands out turns accordingly,
// until ctx ends. From then on nobody waits.
func (l *Line) Run(ctx context.Context) {
	defer l.close()
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	var s scheduler
	for {
		select {
		case <-ticker.C:
			l.Step(s.lateness())
		case <-ctx.Done():
			return
		}
	}
}

// Step is one tick of Run: what has lasted too long ends, and there are as many turns as
// the scheduler's lateness allows.
func (l *Line) Step(lateness time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick++
	for l.held.n > 0 && l.tick-l.held.first.since > longestTurn {
		l.end(l.held.first)
	}
	for _, t := range l.tenants {
		for t.waiting.n > 0 && l.tick-t.waiting.first.since > longestWait {
			l.leave(t.waiting.first)
		}
	}
	if l.waited {
		l.calm = 0
	} else {
		l.calm++
	}
	l.set(l.turns(lateness))
	l.peak, l.waited = l.held.n, l.stats.Waiting > 0
}

// turns is how many there are from now on; l.mu is held.
func (l *Line) turns(lateness time.Duration) int {
	switch {
	case l.closed, l.reserve == 0, len(l.tenants) < 2:
		return 0 // nobody else is there to wait for it
	case lateness > late:
		return max(l.peak*3/4, l.least)
	case l.limit == 0 || l.calm >= calmTicks:
		return 0
	case lateness < late/2 && l.waited:
		return l.limit + l.limit/4 + 1
	}
	return l.limit
}

// set changes how many turns there are; l.mu is held.
func (l *Line) set(limit int) {
	was := l.limit
	l.limit = limit
	l.serve()
	if limit == 0 && was > 0 { // nobody waits any more, and nothing is held against anybody
		l.now = 0
		for _, t := range l.tenants {
			t.had = 0
		}
	}
}

// close lets everybody go on, for good.
func (l *Line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.set(0)
}

// scheduler is Go's, as the runtime describes it.
type scheduler struct {
	sample [1]metrics.Sample
	before []uint64
}

// lateness is how long goroutines have waited to run since it was asked last, on
// average.
func (s *scheduler) lateness() time.Duration {
	s.sample[0].Name = "/sched/latencies:seconds"
	metrics.Read(s.sample[:])
	h := s.sample[0].Value.Float64Histogram()
	if s.before == nil {
		s.before = make([]uint64, len(h.Counts))
	}
	var n, sum float64
	for i, count := range h.Counts {
		if c := float64(count - s.before[i]); c > 0 {
			n += c
			sum += c * max(h.Buckets[i], 0) // the lower bound: −Inf is first
		}
		s.before[i] = count
	}
	if n == 0 {
		return 0
	}
	return time.Duration(sum / n * float64(time.Second))
}
