package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// member is a consumer group of sarama's. Its sessions run in a goroutine of
// their own; what they claim is handed to Poll.
type member struct {
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	done   chan struct{}
	got    chan *sarama.ConsumerMessage

	mu      sync.Mutex // guards the fields below
	session sarama.ConsumerGroupSession
	held    []int32
	told    int
	err     error
}

func (d driver) Join(_ context.Context, token, group, topic string, how gokit.Membership) (gokit.Member, error) {
	if d.version != sarama.MaxVersion {
		return nil, gokit.Skip("groups are taken through at the newest version only")
	}
	if how.Cooperative {
		return nil, gokit.Skip("sarama has no cooperative assignor")
	}
	c := d.config(token)
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = gokit.SessionTimeout()
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	c.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	c.Consumer.Group.InstanceId = how.Instance
	g, err := sarama.NewConsumerGroup([]string{gokit.Bootstrap()}, group, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{group: g, cancel: cancel, done: make(chan struct{}), got: make(chan *sarama.ConsumerMessage)}
	go m.consume(ctx, topic)
	go m.watch()
	return m, nil
}

// consume goes from session to session.
func (m *member) consume(ctx context.Context, topic string) {
	defer close(m.done)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, []string{topic}, m); err != nil {
			m.fail(err)
			return
		}
	}
}

func (m *member) watch() {
	for err := range m.group.Errors() {
		m.fail(err)
	}
}

func (m *member) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, err)
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session, m.told = s, m.told+1
	for _, partitions := range s.Claims() {
		m.held = slices.Clone(partitions)
	}
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = nil
	return nil
}

// ConsumeClaim hands what comes to Poll.
func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		select {
		case m.got <- message:
		case <-s.Context().Done():
			return nil
		}
	}
	return nil
}

func (m *member) Poll(ctx context.Context) ([]gokit.Position, error) {
	wait := time.NewTimer(100 * time.Millisecond)
	defer wait.Stop()
	select {
	case message := <-m.got:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.session.MarkMessage(message, "")
		return []gokit.Position{{Partition: message.Partition, Offset: message.Offset}}, nil
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

// Commit has no outcome in sarama; what becomes of it the runner sees.
func (m *member) Commit(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session.Commit()
	return nil
}

func (m *member) Close() error {
	m.cancel()
	<-m.done
	return m.group.Close()
}
