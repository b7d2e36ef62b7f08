package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
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

	mu  sync.Mutex                // guards got
	got map[string]map[string]int // how often, by group and record
}

const (
	movingGroups = 4
	// movingPace is the time between two records, and between two looks at the
	// offsets: what the load must not do is to fill the machine.
	movingPace = 5 * time.Millisecond
)

// steady is for tests in which no node dies: a row that runs out while the machine
// is busy would move groups that they look at.
func steady(o *rig.Options) {
	first := o.Config
	o.Config = func(cfg *config.Config) {
		if first != nil {
			first(cfg)
		}
		cfg.Cluster.TTL = rig.Patience / 2
	}
}

// pace waits for its turn; false: the load ends.
func pace(ctx context.Context, tick *time.Ticker) bool {
	select {
	case <-tick.C:
		return true
	case <-ctx.Done():
		tick.Stop()
		return false
	}
}

func startMoving(t *testing.T, r *rig.Rig, nodes ...*rig.Node) *moving {
	t.Helper()
	for _, n := range append([]*rig.Rig{r}, rigsOf(nodes)...) {
		metadataOf(t, n, "t") // which another node may have made within the 3 s that one believes its list
	}
	m := &moving{t: t, got: map[string]map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
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
	t.Cleanup(func() { // before the clients are closed: that is no error of theirs
		cancel()
		m.wg.Wait()
	})
	return m
}

func rigsOf(nodes []*rig.Node) (out []*rig.Rig) {
	for _, n := range nodes {
		out = append(out, n.Rig())
	}
	return out
}

func (m *moving) produce(ctx context.Context, c *kgo.Client) {
	defer m.wg.Done()
	for tick := time.NewTicker(movingPace); pace(ctx, tick); {
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
			if !errors.Is(e.Err, context.Canceled) && !joinsAgain(e.Err) {
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

// joinsAgain reports that a member's session with its coordinator has ended as
// it does when the group moves: the coordinator cannot be reached, coordinates
// nothing, is another, or is a new one, to which members are not handed over (see
// DEVIATIONS). franz-go tells its application for information and joins again
// by itself; Java and librdkafka tell nobody. Any other end of a session, a fenced
// member or a right that is missing, would be a fault.
func joinsAgain(err error) bool {
	session, code := (*kgo.ErrGroupSession)(nil), (*kerr.Error)(nil)
	if !errors.As(err, &session) {
		return false
	}
	return !errors.As(session.Err, &code) || slices.Contains([]*kerr.Error{kerr.UnknownMemberID, kerr.NotCoordinator, kerr.CoordinatorNotAvailable}, code)
}

// watch reads committed offsets all the time.
func (m *moving) watch(ctx context.Context, admin *kadm.Client) {
	defer m.wg.Done()
	seen := map[string]int64{}
	for tick := time.NewTicker(movingPace); pace(ctx, tick); {
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

// advance waits until every group has read so many more records. A group of
// which nothing is heard for too long stands still, however slow the machine is.
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
	for i, group := range m.groups {
		for last := from[i]; last < from[i]+n; {
			rig.Eventually(m.t, group+" reads on", func() bool { return counts()[i] > last })
			last = counts()[i]
		}
	}
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
