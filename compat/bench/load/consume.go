package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consume reads what a Produce of the same name has written, each client its share
// of the partitions.
func consume(ctx context.Context, spec Spec, s *steps) error {
	if spec.Expect == nil {
		return errors.New("nothing is expected")
	}
	var n counts
	clients := make([]*kgo.Client, max(spec.Clients, 1))
	for i := range clients {
		c, err := spec.Peer.client(&n)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Ping(ctx); err != nil {
			return err
		}
		clients[i] = c
	}
	if err := ends(ctx, clients[0], spec); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	n.reset()
	begin := time.Now()
	sum, err := readAll(ctx, clients, spec)
	if err != nil {
		return err
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Sum: sum}
	n.into(&r)
	if sum != *spec.Expect {
		return fmt.Errorf("written %+v, read %+v", *spec.Expect, sum)
	}
	return s.done(r)
}

// ends sees that the log is as long as what was acknowledged: reading stops
// there, and would not notice more.
func ends(ctx context.Context, c *kgo.Client, spec Spec) error {
	listed, err := kadm.NewClient(c).ListEndOffsets(ctx, spec.names()...)
	if err = errors.Join(err, listed.Error()); err != nil {
		return err
	}
	var total int64
	listed.Each(func(o kadm.ListedOffset) { total += o.Offset })
	if total != spec.Expect.Records {
		return fmt.Errorf("%d records were acknowledged, the log has %d", spec.Expect.Records, total)
	}
	return nil
}

// readAll reads as many records as are expected.
func readAll(ctx context.Context, clients []*kgo.Client, spec Spec) (Sum, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var failed failure
	var got atomic.Int64
	readers := make([]*reader, len(clients))
	var done sync.WaitGroup
	for i, c := range clients {
		readers[i] = newReader()
		c.AddConsumePartitions(share(spec, i, len(clients)))
		done.Go(func() {
			for ctx.Err() == nil {
				before := readers[i].sum.Records
				err := poll(ctx, c, readers[i])
				if err != nil && ctx.Err() == nil {
					failed.note(err)
					enough()
				}
				if got.Add(readers[i].sum.Records-before) >= spec.Expect.Records {
					enough()
				}
			}
		})
	}
	done.Wait()
	var total Sum
	for _, r := range readers {
		total.add(r.sum)
	}
	return total, failed.err()
}

// share is every n-th partition of each topic, from its start.
func share(spec Spec, client, n int) map[string]map[int32]kgo.Offset {
	of := map[string]map[int32]kgo.Offset{}
	for _, topic := range spec.names() {
		of[topic] = map[int32]kgo.Offset{}
		for p := client; p < spec.Partitions; p += n {
			of[topic][int32(p)] = kgo.NewOffset().AtStart()
		}
	}
	return of
}

// poll reads what there is and adds it up.
func poll(ctx context.Context, c *kgo.Client, r *reader) error {
	f := c.PollFetches(ctx)
	if err := fetched(f); err != nil {
		return err
	}
	var bad error
	f.EachPartition(func(p kgo.FetchTopicPartition) {
		if err := r.partition(p.Topic, p.Partition, p.Records); err != nil && bad == nil {
			bad = err
		}
	})
	return bad
}
