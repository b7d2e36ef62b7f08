package main

import (
	"context"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// transactional is a SyncProducer, which takes no context.
type transactional struct{ p sarama.SyncProducer }

func (d driver) Transactional(_ context.Context, token, id string) (gokit.Transactional, error) {
	if !d.version.IsAtLeast(sarama.V0_11_0_0) {
		return nil, gokit.Skip("transactions came with V0_11_0_0")
	}
	c := d.config(token)
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = true
	c.Producer.Transaction.ID = id
	p, err := sarama.NewSyncProducer([]string{gokit.Bootstrap()}, c)
	return transactional{p}, err
}

func (t transactional) Begin(context.Context) error { return t.p.BeginTxn() }

func (t transactional) Produce(_ context.Context, topic string, records []gokit.Record) error {
	return send(t.p, outgoing(topic, records))
}

func (t transactional) Offsets(_ context.Context, group, topic string, offsets map[int32]int64) error {
	var list []*sarama.PartitionOffsetMetadata
	for p, at := range offsets {
		list = append(list, &sarama.PartitionOffsetMetadata{Partition: p, Offset: at, LeaderEpoch: -1})
	}
	return t.p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{topic: list}, group)
}

func (t transactional) End(_ context.Context, commit bool) error {
	if commit {
		return t.p.CommitTxn()
	}
	return t.p.AbortTxn()
}

func (t transactional) Close() error { return t.p.Close() }
