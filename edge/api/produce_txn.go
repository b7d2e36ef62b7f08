package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/tenancy"
)

// transactionalID is the id a Produce names; a null and an empty one are none.
func transactionalID(req *kmsg.ProduceRequest) string {
	if req.TransactionID == nil {
		return ""
	}
	return *req.TransactionID
}

// firstFencedProduce is the first version of Produce that is newer than the code
// 90 (KIP-588): clients that stop below it need not know that code.
const firstFencedProduce = 9

// stage keeps an encoded part until its transaction ends. Nothing of it reaches
// the cell before.
func (r *produceRun) stage(ctx context.Context, p *part, id string) {
	if r.h.clustered() || txnKey(id) == "" {
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
	o.code = fencedFrom(firstFencedProduce, r.reqs[p.frame].Version, o.code)
	if o.code != 0 {
		r.refuseStage(p, o)
		return
	}
	p.done = true // its offset is known to nobody before the commit: −1
	if p.admitted {
		r.c.order.Stored(p.ticket, -1)
	}
}

// refuseStage answers a part that its transaction did not take. One that the
// client sends again keeps its place before those behind it. A final refusal is
// the transaction's, which has it for those as well; the order of the connection
// must not carry it into the next transaction, where a producer that has given
// the batch up goes on behind it (librdkafka, at the same epoch).
func (r *produceRun) refuseStage(p *part, o outcome) {
	text := "The transaction does not take the records."
	if o.message != nil {
		text = *o.message
	}
	r.throttle(p, o.throttle)
	r.refuse(p, o.code, text)
	switch {
	case !p.admitted:
	case retriable(o.code):
		r.c.order.Failed(p.ticket, o.code)
	default:
		r.c.order.Forget(tenancy.KeyOf(r.c.scope, r.stream(p)))
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
	if h.clustered() {
		return false
	}
	for i := range t.Partitions {
		if h.cfg.Txns.Has(c.scope, id, txn.TopicPartition{Topic: t.Topic, Index: t.Partitions[i].Partition}) {
			return true
		}
	}
	return false
}
