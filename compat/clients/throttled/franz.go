package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/clients/libraries"
)

// throttles adds up what brokers asked the client to wait.
type throttles struct{ ms atomic.Int64 }

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (t *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, wait time.Duration, afterResponse bool) {
	if afterResponse {
		t.ms.Add(wait.Milliseconds())
	}
}

// franz is franz-go: a producer, and a member of a group that reads meanwhile.
func franz(ctx context.Context, w libraries.Work) (float64, error) {
	common, err := libraries.Franz(w)
	if err != nil {
		return 0, err
	}
	var seen throttles
	common = append(common, kgo.WithHooks(&seen))
	producer, err := kgo.NewClient(append(common, kgo.ProducerLinger(0))...)
	if err != nil {
		return 0, err
	}
	defer producer.Close()
	send := func(i int) error {
		return producer.ProduceSync(ctx, &kgo.Record{Topic: w.Name, Value: []byte(strconv.Itoa(i))}).FirstErr()
	}
	if err := send(0); err != nil {
		return 0, err
	}
	member, err := kgo.NewClient(append(common, kgo.ConsumerGroup(w.Name), kgo.ConsumeTopics(w.Name), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second))...)
	if err != nil {
		return 0, err
	}
	defer member.Close()
	sent := make(chan error, 1)
	go func() {
		for i := 1; i < records; i++ {
			if err := send(i); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	got := 0
	for got < records {
		fetches := member.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return 0, errs[0].Err
		}
		got += fetches.NumRecords()
		if err := member.CommitUncommittedOffsets(ctx); err != nil {
			return 0, err
		}
	}
	if err := <-sent; err != nil {
		return 0, err
	}
	if got != records {
		return 0, errors.New(fmt.Sprint("it read ", got, " records"))
	}
	return float64(seen.ms.Load()), nil
}
