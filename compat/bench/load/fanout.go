package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fan is one group with one member.
type fan struct {
	client   *kgo.Client
	reader   *reader
	assigned atomic.Int64 // partitions
	read     atomic.Int64 // records
}

// fans are all groups, and whoever waits for them.
type fans struct {
	all    []*fan
	failed failure
	joined atomic.Bool   // by all; until then a coordinator may be loading, and a join is tried again
	moved  chan struct{} // something has changed; of capacity 1
	done   sync.WaitGroup
	counts counts
}

// fanOut writes a topic while several groups read it, and waits until each has
// read all.
func fanOut(ctx context.Context, spec Spec, s *steps) error {
	p, err := newProducers(ctx, spec)
	if err != nil {
		return err
	}
	defer p.close()
	reading, stop := context.WithCancel(ctx)
	f := &fans{moved: make(chan struct{}, 1)}
	defer f.close()
	defer stop()
	if err := f.join(reading, spec); err != nil {
		return err
	}
	f.joined.Store(true)
	if err := s.ready(); err != nil {
		return err
	}
	p.counts.reset()
	f.counts.reset()
	begin := time.Now()
	sum, err := p.write(ctx)
	if err != nil {
		return err
	}
	total := p.total() // with what was there before the measured part
	if err := f.wait(ctx, func(one *fan) bool { return one.read.Load() >= total.Records }); err != nil {
		return err
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Requests: p.counts.requests.Load() + f.counts.requests.Load()}
	stop()
	f.done.Wait()
	for _, one := range f.all {
		if one.reader.sum != total {
			return fmt.Errorf("written %+v, a group has read %+v", total, one.reader.sum)
		}
		r.Sum.add(sum)
	}
	r.RawBytes, r.SentBytes = p.counts.raw.Load(), p.counts.sent.Load()
	return s.done(r)
}

// join starts the groups and waits until each has every partition.
func (f *fans) join(ctx context.Context, spec Spec) error {
	for i := range spec.Groups {
		one := &fan{reader: newReader()}
		moved := func(by int64) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
				for _, p := range parts {
					one.assigned.Add(by * int64(len(p)))
				}
				f.move()
			}
		}
		c, err := spec.Peer.client(&f.counts, kgo.ConsumerGroup(fmt.Sprintf("%s-%02d", spec.Name, i)), kgo.ConsumeTopics(spec.names()...),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(moved(1)), kgo.OnPartitionsRevoked(moved(-1)), kgo.OnPartitionsLost(moved(-1)))
		if err != nil {
			return err
		}
		one.client = c
		f.all = append(f.all, one)
		f.done.Go(func() { f.follow(ctx, one) })
	}
	want := int64(max(spec.Topics, 1) * spec.Partitions)
	return f.wait(ctx, func(one *fan) bool { return one.assigned.Load() == want })
}

// follow reads until it is told to stop.
func (f *fans) follow(ctx context.Context, one *fan) {
	for ctx.Err() == nil {
		err := poll(ctx, one.client, one.reader)
		var joining *kgo.ErrGroupSession
		again := errors.As(err, &joining) && !f.joined.Load()
		if err != nil && ctx.Err() == nil && !again {
			f.failed.note(err)
		}
		one.read.Store(one.reader.sum.Records)
		f.move()
	}
}

func (f *fans) move() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// wait waits until every group is so.
func (f *fans) wait(ctx context.Context, so func(*fan) bool) error {
	for {
		if err := f.failed.err(); err != nil {
			return err
		}
		n := 0
		for _, one := range f.all {
			if so(one) {
				n++
			}
		}
		if n == len(f.all) {
			return nil
		}
		select {
		case <-f.moved:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d groups: %w", n, len(f.all), ctx.Err())
		}
	}
}

// close ends the members, which leave their groups.
func (f *fans) close() {
	f.done.Wait()
	var done sync.WaitGroup
	for _, one := range f.all {
		done.Go(one.client.Close)
	}
	done.Wait()
}
