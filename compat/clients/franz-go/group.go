package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// member is a client in a group.
type member struct {
	c *kgo.Client

	mu   sync.Mutex // guards held and told
	held []int32
	told int
}

func (driver) Join(_ context.Context, token, group, topic string, how gokit.Membership) (gokit.Member, error) {
	m := &member{}
	balancer := kgo.RangeBalancer()
	if how.Cooperative {
		balancer = kgo.CooperativeStickyBalancer()
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(gokit.SessionTimeout()),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(p[topic], nil) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(nil, p[topic]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(nil, p[topic]) }),
	}
	if how.Instance != "" {
		opts = append(opts, kgo.InstanceID(how.Instance))
	}
	c, err := client(token, opts...)
	m.c = c
	return m, err
}

// change is told of partitions that are given and taken; of none, too.
func (m *member) change(given, taken []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = slices.DeleteFunc(append(m.held, given...), func(p int32) bool { return slices.Contains(taken, p) })
	m.told++
}

func (m *member) Held() ([]int32, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.held)), m.told
}

func (m *member) Poll(ctx context.Context) ([]gokit.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	fetches := m.c.PollRecords(ctx, 5)
	var out []gokit.Position
	fetches.EachRecord(func(r *kgo.Record) { out = append(out, gokit.Position{Partition: r.Partition, Offset: r.Offset}) })
	for _, e := range fetches.Errors() {
		if ctx.Err() == nil {
			return out, e.Err
		}
	}
	return out, nil
}

func (m *member) Commit(ctx context.Context) error { return m.c.CommitUncommittedOffsets(ctx) }

func (m *member) Close() error {
	m.c.Close()
	return nil
}
