package broker

import (
	"context"
	"errors"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Transaction appends records, takes verdicts on delivered ones and writes keys
// in one entry of the log: all of it is on disk when Success is true, else
// nothing is written (cell-http §3.8). A lost required condition and a verdict
// that is not taken are no errors. Deduplication applies to the records, and one
// that is a duplicate fails nothing.
func (b *Broker) Transaction(ctx context.Context, t Tenant, pushes []PushItem, kv []KVOp, acks ...Ack) (TxnResult, error) {
	if err := ctx.Err(); err != nil {
		return TxnResult{}, err
	}
	ops := b.MaxTxnKVOps()
	c, err := newKVCall(t, kv, kvLimits{ops: ops, keys: max(ops, DefaultTxnKVKeys), inTxn: true})
	if err != nil {
		return TxnResult{}, err
	}
	a, err := newAckCall(t, acks)
	if err != nil {
		return TxnResult{}, err
	}
	if err := b.enter(); err != nil {
		return TxnResult{}, err
	}
	defer b.leave()
	id := newMessageID(b.clock())
	p := push{tenant: t, items: pushes, first: newMessageID(b.clock())}
	if err := p.sort(); err != nil {
		return TxnResult{}, err
	}
	p.encode()
	plan := func(d *store.Draft) error {
		b.machine.judgeAcks(a, b.now())
		if err := a.refused(); err != nil {
			return err
		}
		if err := b.machine.runKV(c, b.now()); err != nil {
			return err
		}
		if err := b.machine.planPush(&p, b.clock(), d); err != nil {
			return err
		}
		b.machine.commitAcks(a, b.now(), d)
		b.machine.commitKV(c, d)
		return nil
	}
	frees := len(pushes) == 0 && a.frees && c.writes == c.deletes && c.writes+len(acks) > 0
	err = b.do(ctx, &store.Command{Plan: plan, Bytes: p.bytes + a.bytes + c.bytes, Frees: frees})
	var refused *errAckRefused
	if errors.As(err, &refused) {
		return TxnResult{Reason: ReasonAckRefused, FailedIndex: len(pushes) + refused.index, Text: refused.why}, nil
	}
	var lost *KVPrecondition
	if errors.As(err, &lost) {
		return TxnResult{
			TransactionID: id.bytes(), Reason: ReasonPrecondition, FailedIndex: len(pushes) + len(acks) + lost.FailedIndex,
			KVReason: lost.Reason, Version: lost.Version, Value: lost.Value,
		}, nil
	}
	if err != nil {
		return TxnResult{}, err
	}
	return TxnResult{TransactionID: id.bytes(), Success: true, Pushes: p.results(nil), Acks: a.results, KV: c.results}, nil
}

// MaxTxnKVOps is how many KV operations one transaction takes: what a cell
// announces as txn-kv=<n>.
func (b *Broker) MaxTxnKVOps() int { return b.cfg.MaxTxnKVOps }
