package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// transactional is a producer of its own. kgo's GroupTransactSession commits what
// it polled; offsets of anybody's choice are sent by the requests themselves.
type transactional struct {
	c  *kgo.Client
	id string
}

func (driver) Transactional(_ context.Context, token, id string) (gokit.Transactional, error) {
	c, err := client(token, kgo.TransactionalID(id))
	return &transactional{c, id}, err
}

func (t *transactional) Begin(ctx context.Context) error {
	if _, _, err := t.c.ProducerID(ctx); err != nil {
		return err
	}
	return t.c.BeginTransaction()
}

func (t *transactional) Produce(ctx context.Context, topic string, records []gokit.Record) error {
	return t.c.ProduceSync(ctx, outgoing(topic, records)...).FirstErr()
}

func (t *transactional) Offsets(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	id, epoch, err := t.c.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.id, id, epoch, group
	added, err := add.RequestWith(ctx, t.c)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = t.id, id, epoch, group
	of := kmsg.NewTxnOffsetCommitRequestTopic()
	of.Topic = topic
	for p, at := range offsets {
		o := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		o.Partition, o.Offset = p, at
		of.Partitions = append(of.Partitions, o)
	}
	commit.Topics = append(commit.Topics, of)
	committed, err := commit.RequestWith(ctx, t.c)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range committed.Topics {
		for _, p := range topic.Partitions {
			errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return errors.Join(errs...)
}

func (t *transactional) End(ctx context.Context, commit bool) error {
	if !commit {
		if err := t.c.AbortBufferedRecords(ctx); err != nil {
			return err
		}
	}
	return t.c.EndTransaction(ctx, kgo.TransactionEndTry(commit))
}

func (t *transactional) Close() error {
	t.c.Close()
	return nil
}
