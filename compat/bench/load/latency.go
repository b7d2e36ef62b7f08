package load

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// latency writes single records at a steady rate, whatever becomes of those
// before, and takes the time from the moment a record was due: one that waits
// behind a slow one is slow, too.
func latency(ctx context.Context, spec Spec, s *steps) error {
	p, err := newProducers(ctx, spec)
	if err != nil {
		return err
	}
	defer p.close()
	if err := s.ready(); err != nil {
		return err
	}
	p.counts.reset()
	var h histogram
	var acked sync.WaitGroup
	c, topic, before := p.clients[0], p.spec.names()[0], p.total()
	begin := time.Now()
	Pace(spec.Rate, int(spec.Rate*spec.Seconds), func(due time.Time) bool {
		acked.Add(1)
		c.Produce(ctx, p.record(0, topic), func(_ *kgo.Record, err error) {
			h.add(time.Since(due))
			p.failed.note(err)
			acked.Done()
		})
		return p.failed.err() == nil
	})
	acked.Wait()
	if err := p.failed.err(); err != nil {
		return err
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Sum: p.total().less(before), Latency: h.latency()}
	p.counts.into(&r)
	return s.done(r)
}
