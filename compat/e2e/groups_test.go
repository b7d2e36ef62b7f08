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

// consumption is what the consumers of a group have read together.
type consumption struct {
	mu  sync.Mutex // guards the fields below
	got map[string]int
	wg  sync.WaitGroup
}

// consume polls until ctx ends, then leaves the group.
func (c *consumption) consume(ctx context.Context, t *testing.T, client *kgo.Client) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		defer client.Close()
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("poll: %v", err)
				return
			}
			c.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) { c.got[string(r.Value)]++ })
			c.mu.Unlock()
		}
	}()
}

func (c *consumption) has(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got) == n
}

// Three franz-go consumers share a topic over TLS; one leaves, and the others
// read what was its. Then the group is empty, and its offsets are where they were.
func TestGroupOfThree(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	makeTopic(t, r, rig.Acme, "t")
	admin := kadm.NewClient(r.Kafka(t, rig.Acme))
	members := func() int {
		described, err := admin.DescribeGroups(rig.Context(t), "g")
		if err != nil {
			t.Fatal(err)
		}
		if g := described["g"]; g.Err == nil && (g.State == "Stable" || g.State == "Empty") {
			return len(g.Members)
		}
		return -1
	}
	all := &consumption{got: map[string]int{}}
	var leave []context.CancelFunc
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		leave = append(leave, cancel)
		all.consume(ctx, t, r.Kafka(t, rig.Consume,
			kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.HeartbeatInterval(50*time.Millisecond),
			kgo.SessionTimeout(30*time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))
	}
	rig.Eventually(t, "a group of three", func() bool { return members() == 3 })

	producer := r.Kafka(t, rig.Produce, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	produce := func(name string) {
		for i := range 40 {
			producer.Produce(rig.Context(t), &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%s-%d", name, i)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("produce: %v", err)
				}
			})
		}
		if err := producer.Flush(rig.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	produce("first")
	rig.Eventually(t, "what three read", func() bool { return all.has(40) })
	leave[0]()
	rig.Eventually(t, "a group of two", func() bool { return members() == 2 })
	produce("second")
	rig.Eventually(t, "what two read", func() bool { return all.has(80) })
	leave[1]()
	leave[2]()
	all.wg.Wait()
	rig.Eventually(t, "an empty group", func() bool { return members() == 0 })
	lag, err := admin.Lag(rig.Context(t), "g")
	if err != nil {
		t.Fatal(err)
	}
	if g := lag["g"]; g.Error() != nil || g.Lag.Total() != 0 {
		t.Errorf("lag %d (%v), want 0", g.Lag.Total(), g.Error())
	}
}
