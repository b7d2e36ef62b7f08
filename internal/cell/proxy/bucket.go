package proxy

import (
	"math"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// The bounds of a Retry-After, in seconds (cell-http §5.4).
const (
	minRetryAfter = 1
	maxRetryAfter = 60
)

// bucket is one token bucket of cell-http §5.4: it starts full, refills without
// steps, and a refused request takes nothing. It is this program's own, for
// x/time/rate rounds tokens to durations and reserves what it refuses. Its
// owner guards it.
type bucket struct {
	rate, burst float64
	tokens      float64
	at          time.Time // what tokens is as of
}

// take takes n tokens, or says after how many seconds they will be there. No
// rate, or a zero n, always passes. Other limits than the last make another
// bucket, which starts full.
func (b *bucket) take(n float64, rate, burst control.Limit, now time.Time) (retryAfter int, ok bool) {
	perSecond, bounded := rate.Value()
	if !bounded || n <= 0 {
		return 0, true
	}
	size, _ := burst.Value() // a bounded rate has one
	perSecond, size = max(perSecond, 0), max(size, 0)
	if b.at.IsZero() || b.rate != perSecond || b.burst != size {
		*b = bucket{rate: perSecond, burst: size, tokens: size, at: now}
	}
	// A clock that goes back refills nothing.
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed.Seconds()*b.rate)
	}
	b.at = now
	if b.tokens >= n {
		b.tokens -= n
		return 0, true
	}
	if b.rate == 0 {
		return maxRetryAfter, false
	}
	wait := math.Ceil((n - b.tokens) / b.rate)
	return int(min(max(wait, minRetryAfter), maxRetryAfter)), false
}
