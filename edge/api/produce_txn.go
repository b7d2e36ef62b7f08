package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/txn"
)

// transactionalID is the id a Produce names; a null and an empty one are none.
func transactionalID(req *kmsg.ProduceRequest) string {
	if req.TransactionID == nil {
		return ""
	}
	return *req.TransactionID
}

// stage keeps an encoded part until its transaction ends. Nothing of it reaches
// the cell before.
func (r *produceRun) stage(ctx context.Context, p *part, id string) {
	if txnKey(id) == "" {
		r.refuseStage(p, outcome{code: kerr.InvalidTxnState.Code})
		return
	}
	items := r.body.Cut(p.from, r.body.Mark())
	call := Call{Scope: r.c.scope, Conn: r.c}
	reply := r.h.cfg.Txns.StageRecords(ctx, call.caller(id, p.producer, p.seq.Epoch), txn.Batches{
		TopicPartition: txn.TopicPartition{Topic: p.name, Index: p.resp.Partition},
		Sequenced:      p.sequenced, First: p.seq.First, Last: p.seq.Last,
		Chunk: txn.Chunk{Items: items.Encoded, Count: items.Count},
		Bytes: p.bytes,
	})
	o := stageOutcomes.of(reply, produceCodes)
	if o.code != 0 {
		r.refuseStage(p, o)
		return
	}
	p.done = true // its offset is known to nobody before the commit: −1
	if p.admitted {
		r.c.order.Stored(p.ticket, -1)
	}
}

// refuseStage answers a part that its transaction did not take. Batches that
// follow on this connection get the same code: the transaction is the reason.
func (r *produceRun) refuseStage(p *part, o outcome) {
	text := "The transaction does not take the records."
	if o.message != nil {
		text = *o.message
	}
	r.throttle(p, o.throttle)
	r.refuse(p, o.code, text)
	if p.admitted {
		r.c.order.Failed(p.ticket, o.code)
	}
}

// recordBytes is what a record counts for in a transaction.
func recordBytes(rec *batch.Record) int64 {
	n := len(rec.Key) + len(rec.Value)
	for i := range rec.Headers {
		n += len(rec.Headers[i].Key) + len(rec.Headers[i].Value)
	}
	return int64(n)
}

// writable reports whether a topic of a request may be created for it: not for a
// transaction that has none of its partitions.
func (h *Handlers) writable(c *Conn, req *kmsg.ProduceRequest, t *kmsg.ProduceRequestTopic) bool {
	id := transactionalID(req)
	if id == "" {
		return true
	}
	for i := range t.Partitions {
		if h.cfg.Txns.Has(c.scope, id, txn.TopicPartition{Topic: t.Topic, Index: t.Partitions[i].Partition}) {
			return true
		}
	}
	return false
}
