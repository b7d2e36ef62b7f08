// Command franz-go is a transactional program of compat/faults: franz-go's
// GroupTransactSession.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/faults/txn/gokit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	j, err := gokit.Start()
	if err != nil {
		return err
	}
	for life := 1; !j.Stopping(); life++ {
		if err := live(j, life); err != nil {
			return err
		}
	}
	j.Say("done")
	return nil
}

func session(j *gokit.Job) (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(
		kgo.SeedBrokers(j.Bootstrap),
		kgo.SASL(plain.Auth{User: "franz-go", Pass: j.Token}.AsMechanism()),
		kgo.TransactionalID(j.ID), kgo.TransactionTimeout(j.Timeout),
		kgo.ConsumerGroup(j.Group), kgo.ConsumeTopics(j.Input),
		kgo.Balancers(kgo.RangeBalancer()), // the assignor that all clients have
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.SessionTimeout(10*time.Second),
		kgo.FetchMaxWait(300*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AlwaysRetryEOF(), // docs/CLIENTS.md
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
	)
}

// live goes from transaction to transaction with one producer, until that is of
// no use any more.
func live(j *gokit.Job, life int) error {
	s, err := session(j)
	if err != nil {
		return err
	}
	defer s.Close()
	j.Say("init", life)
	if _, _, err := s.Client().ProducerID(context.Background()); err != nil {
		j.Met(life, 0, "init", class(err), code(err))
		return nil
	}
	j.Say("inited", life)
	for number := 1; !j.Stopping(); number++ {
		records := poll(j, s)
		if len(records) == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			j.Met(life, number, "begin", gokit.Fatal, code(err))
			return nil
		}
		if !transact(j, s, gokit.NewTxn(life, number), records) {
			return nil
		}
	}
	return nil
}

func poll(j *gokit.Job, s *kgo.GroupTransactSession) []*kgo.Record {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	return s.PollRecords(ctx, 40).Records()
}

// transact takes records through one transaction; false: the session is of no
// use any more.
func transact(j *gokit.Job, s *kgo.GroupTransactSession, t *gokit.Txn, records []*kgo.Record) bool {
	ctx := context.Background()
	failed := kgo.AbortingFirstErrPromise(s.Client())
	for _, r := range records {
		out := &kgo.Record{Topic: j.Output, Partition: r.Partition, Value: []byte(t.Add(j, r.Partition, r.Offset, r.Value))}
		s.Produce(ctx, out, failed.Promise())
	}
	if err := s.Client().Flush(ctx); err != nil {
		j.Met(t.Life, t.Number, "produce", gokit.Fatal, code(err))
		return false
	}
	if err := failed.Err(); err != nil {
		j.Met(t.Life, t.Number, "produce", class(err), code(err))
		_, err := s.End(ctx, kgo.TryAbort)
		return ended(j, s, t, "abort", false, err)
	}
	t.Commit(j)
	committed, err := s.End(ctx, kgo.TryCommit)
	return ended(j, s, t, "commit", committed, err)
}

// ended says what became of a transaction. A code of the broker's that is final
// says that nothing was written; the client aborts what it has of it. After any
// other error nobody knows, and only a new session reads where to go on.
func ended(j *gokit.Job, s *kgo.GroupTransactSession, t *gokit.Txn, call string, committed bool, err error) bool {
	switch {
	case err == nil && committed:
		j.Say("committed", t.Life, t.Number)
		return true
	case err == nil:
		j.Say("aborted", t.Life, t.Number)
		return true
	}
	how := class(err)
	j.Met(t.Life, t.Number, call, how, code(err))
	if how != gokit.Abort {
		return false
	}
	if err := s.Client().EndTransaction(context.Background(), kgo.TryAbort); err != nil {
		j.Met(t.Life, t.Number, "abort", gokit.Fatal, code(err))
		return false
	}
	j.Say("aborted", t.Life, t.Number)
	return true
}

func class(err error) string {
	for _, fence := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch} {
		if errors.Is(err, fence) {
			return gokit.Fenced
		}
	}
	for _, lost := range []error{kerr.UnknownProducerID, kerr.InvalidTxnState, kerr.IllegalGeneration, kerr.OperationNotAttempted} {
		if errors.Is(err, lost) {
			return gokit.Abort
		}
	}
	return gokit.Fatal
}

func code(err error) string {
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
