package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/clients/libraries"
)

// franz is franz-go: a producer, and a member of a group that reads meanwhile.
func franz(ctx context.Context, w libraries.Work, during time.Duration) (acknowledged, again int, err error) {
	common, err := libraries.Franz(w)
	if err != nil {
		return 0, 0, err
	}
	producer, err := kgo.NewClient(append(common, kgo.ProducerLinger(0), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(inFlight))...)
	if err != nil {
		return 0, 0, err
	}
	defer producer.Close()
	if err := producer.ProduceSync(ctx, &kgo.Record{Topic: w.Name, Value: []byte("0")}).FirstErr(); err != nil {
		return 0, 0, err
	}
	member, err := kgo.NewClient(append(common, kgo.ConsumerGroup(w.Name), kgo.ConsumeTopics(w.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(500*time.Millisecond))...)
	if err != nil {
		return 0, 0, err
	}
	defer member.Close()
	sent := make(chan result, 1)
	go func() { sent <- send(ctx, producer, w.Name, during) }()
	seen, total := map[string]bool{}, -1
	for total < 0 || len(seen) < total {
		select {
		case r := <-sent:
			if total = r.records; r.err != nil {
				return 0, 0, r.err
			}
			continue
		default:
		}
		poll, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // the producer may have ended meanwhile
		fetches := member.PollFetches(poll)
		cancel()
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) || ctx.Err() != nil {
				return 0, 0, fmt.Errorf("poll: %w", e.Err)
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if seen[string(r.Value)] {
				again++
			}
			seen[string(r.Value)] = true
		})
	}
	return total, again, nil
}

// result is how many records were acknowledged, or why not all were.
type result struct {
	records int
	err     error
}

// send produces for a while, never more than inFlight records ahead of their
// acknowledgements, and each in a request of its own where they come one by one.
func send(ctx context.Context, c *kgo.Client, topic string, during time.Duration) result {
	end, n := time.Now().Add(during), 1
	places, failed := make(chan struct{}, inFlight), make(chan error, 1)
	for ; time.Now().Before(end) && len(failed) == 0; n++ {
		places <- struct{}{}
		c.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(n))}, func(_ *kgo.Record, err error) {
			<-places
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	err := c.Flush(ctx)
	select {
	case err = <-failed:
	default:
	}
	return result{n, err}
}
