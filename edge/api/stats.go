package api

import (
	"sync/atomic"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// Stats are counters of what clients really sent.
type Stats struct {
	codecs [batch.Zstd + 1]atomic.Int64
	pushes atomic.Int64
	frames atomic.Int64
}

// Batches is how many record batches arrived compressed with a codec.
func (s *Stats) Batches(c batch.Codec) int64 { return s.codecs[c].Load() }

// Pushes is how many push calls were made.
func (s *Stats) Pushes() int64 { return s.pushes.Load() }

// ProduceFrames is how many Produce requests were answered.
func (s *Stats) ProduceFrames() int64 { return s.frames.Load() }

func (s *Stats) batch(c batch.Codec) {
	if int(c) < len(s.codecs) {
		s.codecs[c].Add(1)
	}
}
