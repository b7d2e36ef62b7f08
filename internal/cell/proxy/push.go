package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-faster/jx"
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
	defer p.giveBack(body)
	in := p.pushes.Take()
	defer p.givePushBack(in)
	if f := in.decode(body.b, c.cluster.Limits); f != nil {
		return f
	}
	held, f := p.admitPush(c, in)
	if f != nil {
		return f
	}
	if len(in.items) > 0 {
		results, err := p.broker.Push(p.ctx(c), c.tenant(), in.items, in.results[:0])
		if err != nil {
			held.undo()
			return p.failed(c, "push", err)
		}
		in.results = results
		p.acceptPayload(c, in.items)
	}
	for i := range in.results {
		if in.results[i].Status == broker.Queued {
			c.msgs++
		}
	}
	p.answerPush(c, in.items, in.results)
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
	var v verdicts
	for i := range results {
		if i > 0 {
			a.Comma()
		}
		a.Buf = v.append(a.Buf, int64(i), &items[i], &results[i])
		a.flushIfFull()
	}
	a.ArrEnd()
	a.finish()
}

// verdicts renders those of one push, of which each has much in common with the
// one before.
type verdicts struct {
	queue string
	named jx.Writer // the members that name the queue
	id    [16]byte
	text  [uuidText]byte // of id
}

// append renders one verdict; offset is absent where none was assigned.
func (v *verdicts) append(b []byte, index int64, item *broker.PushItem, r *broker.PushResult) []byte {
	v.name(item.Queue)
	v.identify(&r.MessageID)
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, index, 10)
	b = append(b, `,"message_id":`...)
	b = append(b, v.text[:]...)
	b = append(b, `,"transaction_id":`...)
	if len(item.TransactionID) == 0 {
		b = append(b, v.text[:]...)
	} else {
		b = appendText(b, item.TransactionID)
	}
	b = append(b, v.named.Buf...)
	b = append(b, pushStatus(r.Status)...)
	b = append(b, '"')
	if r.Offset >= 0 {
		b = append(b, `,"offset":`...)
		b = strconv.AppendInt(b, r.Offset, 10)
	}
	return append(b, '}')
}

// name renders the members that name a queue.
func (v *verdicts) name(queue string) {
	if len(v.named.Buf) > 0 && v.queue == queue {
		return
	}
	v.queue = queue
	v.named.Buf = append(v.named.Buf[:0], `,"queueName":`...)
	v.named.Str(queue)
	v.named.RawStr(`,"status":"`)
}

// identify renders an id. Those of a push count up, so mostly it is the last
// bytes that are others.
func (v *verdicts) identify(id *[16]byte) {
	const kept = 14
	if v.text[0] != 0 && [kept]byte(v.id[:kept]) == [kept]byte(id[:kept]) {
		hexDigits(v.text[uuidText-5:], id[kept:])
	} else {
		appendUUID(v.text[:0], id)
	}
	v.id = *id
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
