package load

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBits = 6 // buckets of a power of two: a value is told to within 1.6 %
	buckets = (64 - subBits) << subBits
)

// histogram counts times; many may add at once.
type histogram struct {
	n   [buckets]atomic.Int64
	max atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 0))
	h.n[bucket(v)].Add(1)
	for {
		old := h.max.Load()
		if int64(v) <= old || h.max.CompareAndSwap(old, int64(v)) {
			return
		}
	}
}

// bucket is exact below 2^subBits, then 2^subBits buckets each power of two.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// highest is the largest value of a bucket.
func highest(b int) uint64 {
	shift := max(b>>subBits-1, 0)
	return uint64(b-shift<<subBits+1)<<shift - 1
}

func (h *histogram) latency() *Latency {
	var total int64
	for i := range h.n {
		total += h.n[i].Load()
	}
	at := func(part float64) float64 {
		left := int64(float64(total) * part)
		for i := range h.n {
			if left -= h.n[i].Load(); left < 0 {
				return milliseconds(min(highest(i), uint64(h.max.Load())))
			}
		}
		return milliseconds(uint64(h.max.Load()))
	}
	return &Latency{P50: at(.5), P99: at(.99), P999: at(.999), Max: milliseconds(uint64(h.max.Load()))}
}

func milliseconds(ns uint64) float64 { return float64(ns) / 1e6 }
