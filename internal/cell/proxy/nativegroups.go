package proxy

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// deleteGroup lets a native consumer group begin anew. What a Kafka group has
// committed are keys, and stays.
func (p *Proxy) deleteGroup(c *call) *refusal {
	forget := true
	if q := c.r.URL.Query(); q.Has("deleteMetadata") {
		var err error
		if forget, err = strconv.ParseBool(q.Get("deleteMetadata")); err != nil {
			return badRequest("deleteMetadata must be true or false")
		}
	}
	n, err := p.broker.DeleteGroup(p.ctx(c), c.tenant(), c.target.group, c.target.queue, forget)
	if err != nil {
		return p.failed(c, "delete group", err)
	}
	p.answerGroup(c, "deletedPartitions", n)
	return nil
}

// seekGroup moves a group in every partition of a queue.
func (p *Proxy) seekGroup(c *call) *refusal {
	to, f := p.readSeek(c)
	if f != nil {
		return f
	}
	if to.Since.IsZero() && !to.ToEnd {
		return badRequest("a seek names a timestamp or toEnd")
	}
	n, err := p.broker.SeekGroup(p.ctx(c), c.tenant(), c.target.group, c.target.queue, to)
	if err != nil {
		return p.failed(c, "seek group", err)
	}
	p.answerGroup(c, "partitionsUpdated", n)
	return nil
}

// moveSubscription changes where a group begins in partitions it has not seen.
func (p *Proxy) moveSubscription(c *call) *refusal {
	to, f := p.readSeek(c)
	if f != nil {
		return f
	}
	if to.Since.IsZero() {
		return badRequest("subscriptionTimestamp is required")
	}
	n, err := p.broker.MoveSubscription(p.ctx(c), c.tenant(), c.target.group, to.Since)
	if err != nil {
		return p.failed(c, "subscription", err)
	}
	p.answerGroup(c, "queuesUpdated", n)
	return nil
}

// answerGroup says what was done to a group, and to how much of it.
func (p *Proxy) answerGroup(c *call, counted string, n int) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"success":true,"consumerGroup":`)
	a.Str(c.target.group)
	a.Comma()
	a.Str(counted)
	a.RawStr(`:`)
	a.int(int64(n))
	a.RawStr(`}`)
	a.finish()
}

// readSeek reads a body that names a time or the end.
func (p *Proxy) readSeek(c *call) (to broker.Seek, f *refusal) {
	body, f := p.readBody(c)
	if f != nil {
		return to, f
	}
	defer p.giveBack(body)
	if !utf8.Valid(body.b) {
		return to, badBody()
	}
	d := jx.DecodeBytes(body.b)
	if d.Next() != jx.Object {
		return to, notAnObject(d)
	}
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch {
		case string(key) == "toEnd" && d.Next() == jx.Bool:
			to.ToEnd, err = d.Bool()
			return err
		case (string(key) == "timestamp" || string(key) == "subscriptionTimestamp") && d.Next() == jx.String:
			text, err := d.Str()
			if err != nil {
				return err
			}
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || at.UnixMilli() < 0 {
				f = badTimestamp()
				return nil
			}
			to.Since = at
			return nil
		default:
			return d.Skip()
		}
	})
	if err != nil || trailing(d) {
		return to, badBody()
	}
	return to, f
}

// depth counts what a group has still to settle of a queue; without a group, of
// the one that is furthest behind.
func (p *Proxy) depth(c *call) *refusal {
	group := c.r.URL.Query().Get("group")
	d, ok := p.broker.Depth(c.tenant(), c.target.queue, group)
	if !ok {
		return queueNotFound()
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"queue":`)
	a.Str(c.target.queue)
	a.RawStr(`,"group":`)
	if group == "" {
		a.Null()
	} else {
		a.Str(group)
	}
	a.RawStr(`,"pending":`)
	a.int(d.Pending)
	a.RawStr(`,"partitionsPending":`)
	a.int(d.PartitionsPending)
	a.RawStr(`,"conflation":`)
	a.Bool(d.Conflates)
	a.RawStr(`,"effectivePending":`)
	if d.Conflates {
		a.int(d.PartitionsPending)
	} else {
		a.int(d.Pending)
	}
	a.RawStr(`,"partitions":[`)
	for i := range d.Partitions {
		if i > 0 {
			a.Comma()
		}
		a.RawStr(`{"partition":`)
		a.Str(d.Partitions[i].Name)
		a.RawStr(`,"pending":`)
		a.int(d.Partitions[i].Pending)
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]}`)
	a.finish()
	return nil
}
