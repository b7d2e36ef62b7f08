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
	total := int(spec.Rate * spec.Seconds)
	gap := time.Duration(float64(time.Second) / spec.Rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Now()
	for i := 0; i < total && p.failed.err() == nil; i++ {
		due := begin.Add(time.Duration(i) * gap)
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		acked.Add(1)
		c.Produce(ctx, p.record(0, topic), func(_ *kgo.Record, err error) {
			h.add(time.Since(due))
			p.failed.note(err)
			acked.Done()
		})
	}
	acked.Wait()
	if err := p.failed.err(); err != nil {
		return err
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Sum: p.total().less(before), Latency: h.latency()}
	p.counts.into(&r)
	return s.done(r)
}
