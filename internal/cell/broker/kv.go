package broker

import (
	"context"
	"errors"
)

var errUnfinished = errors.New("not there yet")

// KV runs the operations of one call.
func (b *Broker) KV(context.Context, Tenant, []KVOp) ([]KVResult, error) { return nil, errUnfinished }

// Transaction appends records and writes keys, all or nothing.
func (b *Broker) Transaction(context.Context, Tenant, []PushItem, []KVOp) (TxnResult, error) {
	return TxnResult{}, errUnfinished
}

// KVStats says what a tenant's keys take.
func (b *Broker) KVStats(Tenant) KVUsage { return KVUsage{} }

// MaxTxnKVOps is how many KV operations one transaction takes.
func (b *Broker) MaxTxnKVOps() int { return DefaultTxnKVOps }

// Groups lists what Kafka consumer groups have committed.
func (b *Broker) Groups(Tenant) ([]GroupRow, error) { return nil, errUnfinished }
