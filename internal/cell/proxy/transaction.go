package proxy

import (
	"net/http"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// transaction appends records and writes keys, all of it or nothing
// (cell-http §3.8). A transaction that did nothing is answered 200.
func (p *Proxy) transaction(c *call) *refusal {
	body, f := p.readBody(c)
	if f != nil {
		return f
	}
	defer p.giveBack(body)
	in, release := p.txnBodies()
	defer release()
	if f := in.decode(body.b, c.cluster.Limits); f != nil {
		return f
	}
	if len(in.acks) > 0 && !classConsume.permits(c.grant.Scopes) {
		return forbidden("operation not permitted for this credential")
	}
	held, f := p.admitPush(c, in.push)
	if f != nil {
		return f
	}
	if in.kv.wrong != nil {
		held.undo()
		p.refuseKV(c, in.kv.wrong)
		return nil
	}
	if in.others != "" {
		held.undo()
		p.txnRefused(c, "bad_request", "this cell takes no operation of the type "+shorten([]byte(in.others))+" in a transaction")
		return nil
	}
	if f := p.admitKeys(c, in.kv.ops); f != nil {
		held.undo()
		p.refuseKV(c, f)
		return nil
	}
	result, err := p.broker.Transaction(p.ctx(c), c.tenant(), in.push.items, in.kv.ops, in.acks...)
	if err != nil || !result.Success {
		held.undo()
	}
	if err != nil {
		if f := kvRefused(err); f != nil {
			p.refuseKV(c, f)
			return nil
		}
		return p.failed(c, "transaction", err)
	}
	if !result.Success {
		p.txnLost(c, &result)
		return nil
	}
	p.acceptPayload(c, in.push.items)
	p.answerTxn(c, &result)
	return nil
}

// txnBodies takes the two decoders of a transaction from their pools.
func (p *Proxy) txnBodies() (in *txnBody, release func()) {
	in = &txnBody{push: p.pushes.Take()}
	var ok bool
	if in.kv, ok = p.batches.Get().(*kvBody); !ok {
		in.kv = new(kvBody)
	}
	return in, func() {
		p.givePushBack(in.push)
		in.kv.reset()
		p.batches.Put(in.kv)
	}
}

// answerTxn renders the results in their flat space: items, acks, then keys.
func (p *Proxy) answerTxn(c *call, r *broker.TxnResult) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"transactionId":`)
	a.uuid(r.TransactionID)
	a.RawStr(`,"success":true,"results":[`)
	for i := range r.Pushes {
		if i > 0 {
			a.Comma()
		}
		a.RawStr(`{"index":`)
		a.int(int64(i))
		a.RawStr(`,"type":"push","success":true`)
		if r.Pushes[i].Status == broker.Duplicate {
			a.RawStr(`,"duplicate":true`)
		} else {
			c.msgs++
		}
		a.RawStr(`}`)
		a.flushIfFull()
	}
	for i := range r.Acks {
		if len(r.Pushes)+i > 0 {
			a.Comma()
		}
		a.RawStr(`{"index":`)
		a.int(int64(len(r.Pushes) + i))
		a.RawStr(`,"type":"ack","success":true,"dlq":`)
		a.Bool(r.Acks[i].Dead)
		a.RawStr(`}`)
	}
	before := len(r.Pushes) + len(r.Acks)
	for i := range r.KV {
		if before+i > 0 {
			a.Comma()
		}
		a.RawStr(`{"index":`)
		a.int(int64(before + i))
		a.RawStr(`,"opIndex":`)
		a.int(int64(i))
		a.RawStr(`,"type":"kv"`)
		a.kvResult(&r.KV[i])
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]}`)
	a.finish()
}

// txnLost renders the verdict on a transaction whose condition was lost, or
// that has a verdict nobody takes.
func (p *Proxy) txnLost(c *call, r *broker.TxnResult) {
	if r.Reason == broker.ReasonAckRefused {
		a := p.newAnswer(c, http.StatusOK)
		defer p.release(a)
		a.RawStr(`{"success":false,"ok":false,"reason":"ack_rejected","error":`)
		a.Str(r.Text)
		a.RawStr(`,"results":[],"failedIndex":`)
		a.int(int64(r.FailedIndex))
		a.RawStr(`}`)
		a.finish()
		return
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"success":false,"ok":false,"reason":`)
	a.Str(r.Reason)
	a.RawStr(`,"error":`)
	a.Str(broker.ErrorPreconditionText)
	a.RawStr(`,"results":[]`)
	a.winner(r.FailedIndex, r.KVReason, r.Version, r.Value)
	a.RawStr(`}`)
	a.finish()
}

// txnRefused answers a transaction of which nothing was tried.
func (p *Proxy) txnRefused(c *call, reason, text string) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"success":false,"ok":false,"reason":`)
	a.Str(reason)
	a.RawStr(`,"error":`)
	a.Str(text)
	a.RawStr(`,"results":[]}`)
	a.finish()
}
