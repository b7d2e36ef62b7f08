package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// joining is how many members join at a time.
const joining = 32

// consumers joins members to groups on a topic in which nothing happens, and
// lets them wait. They end with the process: a thousand that leave would make
// their groups rebalance a thousand times.
func consumers(ctx context.Context, spec Spec, s *steps) error {
	var n counts
	admin, err := spec.Peer.client(&n)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := makeTopics(ctx, admin, spec.Partitions, spec.names()...); err != nil {
		return err
	}
	m := &members{all: make([]*kgo.Client, spec.Count), spec: spec, counts: &n}
	if err := m.join(ctx); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	n.reset()
	begin := time.Now()
	if err := pause(ctx, time.Duration(spec.Seconds*float64(time.Second))); err != nil {
		return err
	}
	if got := m.working.Load(); got != int64(spec.Count) {
		return fmt.Errorf("%d of %d members have partitions", got, spec.Count)
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Count: int64(spec.Count)}
	n.into(&r)
	return s.done(r)
}

// members are consumers in groups.
type members struct {
	all     []*kgo.Client
	spec    Spec
	counts  *counts
	working atomic.Int64 // members that have a partition
}

// join waits until every member has a partition, which there are enough of.
func (m *members) join(ctx context.Context) error {
	var failed failure
	var next atomic.Int64
	var done sync.WaitGroup
	for range joining {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(m.all)); i = next.Add(1) - 1 {
				c, err := m.member(int(i))
				if err == nil {
					m.all[i] = c
					err = c.Ping(ctx)
				}
				failed.note(err)
			}
		})
	}
	done.Wait()
	if err := failed.err(); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for m.working.Load() != int64(len(m.all)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d members have partitions: %w", m.working.Load(), len(m.all), ctx.Err())
		}
	}
	return pause(ctx, settle)
}

func (m *members) member(i int) (*kgo.Client, error) {
	var have atomic.Int64
	moved := func(by int64) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			n := int64(0)
			for _, p := range parts {
				n += by * int64(len(p))
			}
			switch now := have.Add(n); {
			case n > 0 && now == n:
				m.working.Add(1)
			case n < 0 && now == 0:
				m.working.Add(-1)
			}
		}
	}
	group := fmt.Sprintf("%s-%03d", m.spec.Name, i%m.spec.Groups)
	return m.spec.Peer.client(m.counts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(m.spec.names()...),
		kgo.OnPartitionsAssigned(moved(1)), kgo.OnPartitionsRevoked(moved(-1)), kgo.OnPartitionsLost(moved(-1)))
}
