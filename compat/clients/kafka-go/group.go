package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// member is a consumer group of kafka-go's, generation after generation.
type member struct {
	group  *kafka.ConsumerGroup
	topic  string
	token  string
	cancel context.CancelFunc
	done   chan struct{}
	got    chan gokit.Position

	mu         sync.Mutex // guards the fields below
	generation *kafka.Generation
	next       map[int]int64 // what is to be committed
	held       []int32
	told       int
	err        error
}

func (driver) Join(_ context.Context, token, group, topic string, how gokit.Membership) (gokit.Member, error) {
	if how.Instance != "" || how.Cooperative {
		return nil, gokit.Skip("kafka-go has neither static members nor a cooperative assignor")
	}
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: []string{gokit.Bootstrap()}, Dialer: dialer(token), Topics: []string{topic},
		StartOffset: kafka.FirstOffset, SessionTimeout: gokit.SessionTimeout(), HeartbeatInterval: 200 * time.Millisecond,
		RebalanceTimeout: 10 * time.Second, JoinGroupBackoff: 200 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		group: g, topic: topic, token: token, cancel: cancel, done: make(chan struct{}),
		got: make(chan gokit.Position), next: map[int]int64{},
	}
	go m.generations(ctx)
	return m, nil
}

func (m *member) generations(ctx context.Context) {
	defer close(m.done)
	for {
		g, err := m.group.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil { // kafka-go goes on by itself
			continue
		}
		m.enter(g)
		for _, a := range g.Assignments[m.topic] {
			g.Start(func(ctx context.Context) { m.read(ctx, a) })
		}
		g.Start(func(ctx context.Context) { <-ctx.Done() })
	}
}

func (m *member) enter(g *kafka.Generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation, m.told, m.held = g, m.told+1, nil
	clear(m.next)
	for _, a := range g.Assignments[m.topic] {
		m.held = append(m.held, int32(a.ID))
	}
}

// read hands one partition's records to Poll, while the generation lasts.
func (m *member) read(ctx context.Context, a kafka.PartitionAssignment) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{gokit.Bootstrap()}, Topic: m.topic, Partition: a.ID, Dialer: dialer(m.token),
		MaxBytes: 10 << 20, MaxWait: 100 * time.Millisecond,
	})
	defer r.Close()
	if err := r.SetOffset(a.Offset); err != nil {
		m.fail(err)
		return
	}
	for {
		message, err := r.ReadMessage(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, kafka.ErrGenerationEnded) {
				m.fail(err)
			}
			return
		}
		select {
		case m.got <- gokit.Position{Partition: int32(a.ID), Offset: message.Offset}:
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, err)
}

func (m *member) Poll(ctx context.Context) ([]gokit.Position, error) {
	wait := time.NewTimer(100 * time.Millisecond)
	defer wait.Stop()
	select {
	case p := <-m.got:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.next[int(p.Partition)] = p.Offset + 1
		return []gokit.Position{p}, nil
	case <-wait.C:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return nil, m.err
}

func (m *member) Held() ([]int32, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.held)), m.told
}

func (m *member) Commit(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation.CommitOffsets(map[string]map[int]int64{m.topic: m.next})
}

func (m *member) Close() error {
	m.cancel()
	err := m.group.Close()
	<-m.done
	return err
}
