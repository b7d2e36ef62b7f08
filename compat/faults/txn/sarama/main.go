// Command sarama is a transactional program of compat/faults: sarama's producer
// and consumer group side by side.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/faults/txn/gokit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	sarama.Logger = logger{}
	j, err := gokit.Start()
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroup([]string{j.Bootstrap}, j.Group, consumerConfig(j))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-j.Stop; cancel() }()
	t := &transactor{j: j}
	for !j.Stopping() {
		if !t.renew() {
			continue
		}
		if err := group.Consume(ctx, []string{j.Input}, t); err != nil && !j.Stopping() {
			fmt.Fprintln(os.Stderr, "consume:", err)
			pause(ctx)
		}
	}
	t.close()
	if err := group.Close(); err != nil {
		return err
	}
	j.Say("done")
	return nil
}

// pause comes before Consume is asked again: it fails at once while nobody
// answers.
func pause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

func config(j *gokit.Job) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.ClientID = "sarama"
	c.Net.SASL.Enable, c.Net.SASL.Mechanism, c.Net.SASL.Version = true, sarama.SASLTypePlaintext, sarama.SASLHandshakeV1
	c.Net.SASL.User, c.Net.SASL.Password = "sarama", j.Token
	return c
}

func consumerConfig(j *gokit.Job) *sarama.Config {
	c := config(j)
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	return c
}

// producerConfig is what a transactional producer of sarama must have, and
// patience, since by itself it gives a record up after three retries within
// 300 ms; but not too much of it: a batch of a transaction that is lost already
// goes through all of its retries before SendMessages returns.
func producerConfig(j *gokit.Job) *sarama.Config {
	c := config(j)
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Retry.Max = 20
	c.Producer.Return.Successes, c.Producer.Return.Errors = true, true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Transaction.ID = j.ID
	c.Producer.Transaction.Timeout = j.Timeout
	return c
}

// class says what the application does about an error.
func class(p sarama.SyncProducer, err error) string {
	switch {
	case errors.Is(err, sarama.ErrProducerFenced), errors.Is(err, sarama.ErrInvalidProducerEpoch):
		return gokit.Fenced
	case p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0:
		return gokit.Fatal
	case p.TxnStatus()&sarama.ProducerTxnFlagAbortableError != 0:
		return gokit.Abort
	}
	return gokit.Retry
}

// code is the code of the broker's in an error.
func code(err error) string {
	var several sarama.ProducerErrors
	if errors.As(err, &several) && len(several) > 0 {
		err = several[0].Err
	}
	if k, ok := errors.AsType[sarama.KError](err); ok {
		return fmt.Sprintf("code-%d", int16(k))
	}
	return err.Error()
}

// logger sends what sarama says to stderr.
type logger struct{}

func (logger) Print(v ...any)                 { fmt.Fprint(os.Stderr, v...) }
func (logger) Printf(format string, v ...any) { fmt.Fprintf(os.Stderr, format, v...) }
func (logger) Println(v ...any)               { fmt.Fprintln(os.Stderr, v...) }
