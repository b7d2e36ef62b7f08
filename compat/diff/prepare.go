package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/api"
)

// Topics of the scripts that read. Partition 0 has ten records in three batches,
// 1 has six large ones, 2 is empty, 3 has five in one compressed batch.
const (
	readTopic = "read"
	missing   = "missing" // never made

	// hiddenTopic is a topic that Apache Kafka has.
	hiddenTopic = "__hidden"
)

func newSuite() *suite {
	s := &suite{rows: api.Table(), now: time.Now().UnixMilli()}
	s.frames()
	s.metadata()
	s.apiVersions()
	s.findCoordinator()
	s.sasl()
	s.initProducerID()
	s.describeCluster()
	s.produce()
	s.fetch()
	s.listOffsets()
	s.offsets()
	s.groupFlows()
	s.txnFlows()
	return s
}

// prepare makes the topics on both sides and writes what is read.
func (p pair) prepare(ctx context.Context, s *suite) error {
	names := []string{readTopic}
	for i := 0; i*4 < s.targets; i++ {
		names = append(names, targetTopic(i))
	}
	for kind := range s.keyed {
		for i := 0; i*4 < s.keyed[kind]; i++ {
			topic := keyedTopic(kind, i)
			if err := p.ours.cell.Make(ctx, topic, 4, keyedWindow(kind)); err != nil {
				return fmt.Errorf("%s: %w", p.ours.name, err)
			}
			names = append(names, topic)
		}
	}
	for _, side := range []side{p.ours, p.theirs} {
		c, err := side.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if side == p.theirs {
			if err := c.makeTopics(ctx, []string{hiddenTopic}); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
		for lo := 0; lo < len(names); lo += 50 {
			if err := c.makeTopics(ctx, names[lo:min(lo+50, len(names))]); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
		if err := c.fill(s.now); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		if err := c.givesIDs(ctx); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		if err := c.coordinates(ctx); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	return nil
}

// makeTopics asks for topics until they have leaders.
func (c *conn) makeTopics(ctx context.Context, names []string) error {
	return eventually(ctx, "topics", func() error {
		req := metadataOf(true, names...)
		req.Version = 9
		r := c.exchange(step{req: req})
		if r.outcome != answered {
			return errGiveUp{fmt.Errorf("metadata: %s", r.outcome)}
		}
		for _, t := range r.resp.(*kmsg.MetadataResponse).Topics {
			if t.ErrorCode != 0 {
				return fmt.Errorf("topic %s: code %d", *t.Topic, t.ErrorCode)
			}
			for _, part := range t.Partitions {
				if part.ErrorCode != 0 {
					return fmt.Errorf("topic %s: code %d", *t.Topic, part.ErrorCode)
				}
			}
		}
		return nil
	})
}

// fill writes what the reading scripts read.
func (c *conn) fill(now int64) error {
	large := strings.Repeat("x", 50_000)
	for _, b := range []struct {
		partition int32
		raw       []byte
	}{
		{0, records(now, []string{"a0", "a1", "a2", "a3"})},
		{0, records(now+1000, []string{"b0", "b1", "b2"})},
		{0, records(now+2000, []string{"c0", "c1", "c2"})},
		{1, records(now, []string{large})},
		{1, records(now+1, []string{large})},
		{1, records(now+2, []string{large})},
		{1, records(now+3, []string{large, large, large})},
		{3, records(now, []string{"z0", "z1", "z2", "z3", "z4"}, packed(1))},
	} {
		req := produceOf(-1, part(readTopic, b.partition, b.raw))
		req.Version = 9
		r := c.exchange(step{req: req})
		if r.outcome != answered {
			return fmt.Errorf("produce: %s", r.outcome)
		}
		if code := r.resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
			return fmt.Errorf("produce: code %d", code)
		}
	}
	return nil
}

// givesIDs waits until producers get ids.
func (c *conn) givesIDs(ctx context.Context) error {
	return eventually(ctx, "a producer id", func() error {
		r := c.exchange(step{req: kmsg.NewPtrInitProducerIDRequest()})
		if r.outcome != answered {
			return errGiveUp{fmt.Errorf("init producer id: %s", r.outcome)}
		}
		if code := r.resp.(*kmsg.InitProducerIDResponse).ErrorCode; code != 0 {
			return fmt.Errorf("code %d", code)
		}
		return nil
	})
}

// coordinates waits until groups and transactions have a coordinator that knows
// its books: an Apache Kafka makes them at the first question.
func (c *conn) coordinates(ctx context.Context) error {
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{"warm"}
	for _, req := range []kmsg.Request{coordinatorOf(0, "warm"), describe, coordinatorOf(1, "warm"), &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{"warm"}}} {
		if _, find := req.(*kmsg.FindCoordinatorRequest); find {
			req.SetVersion(3)
		}
		err := eventually(ctx, "a coordinator", func() error {
			r := c.exchange(step{req: req})
			if r.outcome != answered {
				return errGiveUp{fmt.Errorf("%s: %s", kmsg.NameForKey(req.Key()), r.outcome)}
			}
			for _, notYet := range []int16{14, 15, 16} {
				if says(r.resp, notYet) {
					return fmt.Errorf("code %d", notYet)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
