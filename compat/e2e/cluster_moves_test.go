package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// moving is a load on several nodes: one producer, consumers of several groups,
// and somebody who looks whether committed offsets ever go back. Nothing of it may
// see an error.
type moving struct {
	t      *testing.T
	groups []string
	stop   context.CancelFunc
	wg     sync.WaitGroup
	acked  int // by the producer, once it has ended

	mu   sync.Mutex // guards got
	got  map[string]map[string]int
	wake chan struct{}
}

const movingGroups = 4

func startMoving(t *testing.T, r *rig.Rig, nodes ...*rig.Node) *moving {
	t.Helper()
	m := &moving{t: t, got: map[string]map[string]int{}, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	t.Cleanup(cancel)
	opts := func(more ...kgo.Opt) []kgo.Opt {
		// A connection that is cut or refused while a node starts is tried again.
		return append(append(impatient(), r.Seeds(nodes...), kgo.AlwaysRetryEOF()), more...)
	}
	for i := range movingGroups {
		group := fmt.Sprintf("moving-%d", i)
		m.groups, m.got[group] = append(m.groups, group), map[string]int{}
		c := r.Kafka(t, rig.Acme, opts(
			kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.HeartbeatInterval(100*time.Millisecond), kgo.SessionTimeout(20*time.Second), kgo.AutoCommitInterval(100*time.Millisecond))...)
		m.wg.Add(1)
		go m.consume(ctx, c, group)
	}
	m.wg.Add(2)
	go m.produce(ctx, r.Kafka(t, rig.Acme, opts(kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))...))
	go m.watch(ctx, kadm.NewClient(r.Kafka(t, rig.Acme, opts()...)))
	return m
}

func (m *moving) produce(ctx context.Context, c *kgo.Client) {
	defer m.wg.Done()
	for ctx.Err() == nil {
		rec := &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%d", m.acked)}
		// Without ctx: what is begun is acknowledged.
		if err := c.ProduceSync(context.WithoutCancel(ctx), rec).FirstErr(); err != nil {
			m.t.Errorf("produce: %v", err)
			return
		}
		m.acked++
	}
}

func (m *moving) consume(ctx context.Context, c *kgo.Client, group string) {
	defer m.wg.Done()
	defer c.Close() // leaves the group, and commits
	for {
		fetches := c.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			// That a session with a coordinator has ended is told for information: the
			// client joins again by itself.
			if session := (*kgo.ErrGroupSession)(nil); !errors.As(e.Err, &session) && !errors.Is(e.Err, context.Canceled) {
				m.t.Errorf("poll in %s: %v", group, e.Err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) { m.got[group][string(r.Value)]++ })
		m.mu.Unlock()
	}
}

// watch reads committed offsets all the time.
func (m *moving) watch(ctx context.Context, admin *kadm.Client) {
	defer m.wg.Done()
	seen := map[string]int64{}
	for ctx.Err() == nil {
		for _, group := range m.groups {
			offsets, err := admin.FetchOffsets(ctx, group)
			if err != nil {
				continue // a group that cannot be asked this moment
			}
			offsets.Each(func(o kadm.OffsetResponse) {
				key := fmt.Sprint(group, o.Topic, o.Partition)
				if o.At < seen[key] {
					m.t.Errorf("the committed offset of %s/%d in %s went back from %d to %d", o.Topic, o.Partition, group, seen[key], o.At)
				}
				seen[key] = o.At
			})
		}
	}
}

// advance waits until every group has read so many more records.
func (m *moving) advance(n int) {
	m.t.Helper()
	counts := func() (all []int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, g := range m.groups {
			all = append(all, len(m.got[g]))
		}
		return all
	}
	from := counts()
	rig.Eventually(m.t, "groups that read on", func() bool {
		for i, now := range counts() {
			if now < from[i]+n {
				return false
			}
		}
		return true
	})
}

// finish ends the load: every group must read every record that was
// acknowledged.
func (m *moving) finish(r *rig.Rig, nodes ...*rig.Node) {
	m.t.Helper()
	m.stop()
	m.wg.Wait()
	for _, group := range m.groups {
		c := r.Kafka(m.t, rig.Acme, append(impatient(), r.Seeds(nodes...), kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
		ctx := rig.Context(m.t)
		for len(m.got[group]) < m.acked {
			fetches := c.PollFetches(ctx)
			if err := fetches.Err(); err != nil && ctx.Err() != nil {
				m.t.Errorf("%s has read %d of %d records, then: %v", group, len(m.got[group]), m.acked, err)
				break
			}
			fetches.EachRecord(func(rec *kgo.Record) { m.got[group][string(rec.Value)]++ })
		}
		for i := range m.acked {
			if m.got[group][fmt.Sprint(i)] == 0 {
				m.t.Errorf("%s has not read record %d of %d", group, i, m.acked)
				break
			}
		}
		c.Close()
	}
}

// A node dies without a word: its groups are at the others once its row has run
// out, and at itself again when it is back.
func TestFailover(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay)
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	makeTopic(t, r, rig.Acme, "t")
	group := groupOf(t, 2, r, two.Rig())
	load := startMoving(t, r, two)
	load.advance(30)
	two.Crash(t)
	if m := metadataOf(t, r); len(m.Brokers) != 2 {
		t.Errorf("%d nodes are shown right after a death, want 2: its row is there", len(m.Brokers))
	}
	rig.Eventually(t, "the group's new coordinator", func() bool { return heartbeatCode(t, r, group) == 25 })
	load.advance(30)
	two.Start(t) // its row has run out, or is adopted
	together(t, 2, r, two.Rig())
	if owner := settled(t, group, r, two.Rig()); owner != 2 {
		t.Errorf("node %d coordinates the group after the return, want 2", owner)
	}
	load.advance(30)
	load.finish(r, two)
}

// A node that was killed and starts at once finds its own row, which is not
// renewed: it does not take it for a twin's, serves data meanwhile, and adopts it.
func TestRestartAfterAKill(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay)
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	group := groupOf(t, 2, r, two.Rig())
	two.Crash(t)
	two.Start(t)
	// 25 where this took so long that the row has run out.
	if code := heartbeatCode(t, two.Rig(), group); code != 15 && code != 25 {
		t.Errorf("before it has its id again a heartbeat is code %d, want 15", code)
	}
	makeTopic(t, two.Rig(), rig.Acme, "t")
	ask(t, two.Rig().Login(t, rig.Acme), put(produceReq(-1), "t", 0, recordBatch(noProducer(), "v")))
	if owner := settled(t, group, r, two.Rig()); owner != 2 {
		t.Errorf("node %d coordinates the group, want 2", owner)
	}
}
