package proxy

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// push appends records and answers 201 with one verdict per item, in the
// items' order (cell-http §3.4).
func (p *Proxy) push(c *call) *refusal {
	body, f := p.readBody(c)
	if f != nil {
		return f
	}
	defer p.bodies.Put(body)
	in, ok := p.pushes.Get().(*pushBody)
	if !ok {
		in = new(pushBody)
	}
	defer p.pushes.Put(in)
	defer in.reset()
	if f := in.decode(body.b, c.cluster.Limits); f != nil {
		return f
	}
	held, f := p.admitPush(c, in)
	if f != nil {
		return f
	}
	var results []broker.PushResult
	if len(in.items) > 0 {
		var err error
		if results, err = p.broker.Push(p.ctx(c), c.tenant(), in.items); err != nil {
			held.undo()
			return p.failed(c, "push", err)
		}
		p.acceptPayload(c, in.items)
	}
	for i := range results {
		if results[i].Status == broker.Queued {
			c.msgs++
		}
	}
	p.answerPush(c, in.items, results)
	return nil
}

// admitPush holds items against rate and registry, in the order of
// cell-http §5.1.
func (p *Proxy) admitPush(c *call, in *pushBody) (admission, *refusal) {
	if f := p.messageRate(c, in.count); f != nil {
		return admission{}, f
	}
	return p.admitItems(c, in.items)
}

// answerPush renders the verdicts as a bare array.
func (p *Proxy) answerPush(c *call, items []broker.PushItem, results []broker.PushResult) {
	a := p.newAnswer(c, http.StatusCreated)
	defer p.release(a)
	a.ArrStart()
	for i := range results {
		if i > 0 {
			a.Comma()
		}
		a.pushResult(int64(i), items[i].Queue, &results[i])
		a.flushIfFull()
	}
	a.ArrEnd()
	a.finish()
}

// pushResult renders one verdict; offset is absent where none was assigned.
func (a *answer) pushResult(index int64, queue string, r *broker.PushResult) {
	a.RawStr(`{"index":`)
	a.int(index)
	a.RawStr(`,"message_id":`)
	a.uuid(r.MessageID)
	a.RawStr(`,"transaction_id":`)
	a.transactionID(r.TransactionID, r.MessageID)
	a.RawStr(`,"queueName":`)
	a.Str(queue)
	a.RawStr(`,"status":"`)
	a.RawStr(pushStatus(r.Status))
	a.RawStr(`"`)
	if r.Offset >= 0 {
		a.RawStr(`,"offset":`)
		a.int(r.Offset)
	}
	a.RawStr(`}`)
}

// transactionID renders what the item carried, or the id that was minted.
func (a *answer) transactionID(given string, minted [16]byte) {
	if given == "" {
		a.uuid(minted)
		return
	}
	a.Str(given)
}

// pushStatus is the wire word of a verdict.
func pushStatus(s broker.PushStatus) string {
	switch s {
	case broker.Queued:
		return "queued"
	case broker.Duplicate:
		return "duplicate"
	default:
		return "failed"
	}
}

// failed maps a broker's error to its envelope; an unforeseen one is logged,
// for the client learns no more than that.
func (p *Proxy) failed(c *call, what string, err error) *refusal {
	if c.upstream != nil && errors.Is(context.Cause(c.upstream), errUpstreamTimeout) {
		return fromBroker(http.StatusGatewayTimeout, "upstream_timeout", "upstream timeout")
	}
	f := brokerRefusal(err)
	if f.status == http.StatusInternalServerError {
		p.log.Error("the broker failed", zap.String("call", what), zap.Error(err))
	}
	return f
}
