package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// The routes of native clients. The contract names their classes and no more
// (cell-http §5.2): paths, parameters and answers are those the official client
// speaks.

// classifyNative knows the routes by which native clients consume.
func classifyNative(method, rest string) target {
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" {
			return target{}
		}
		parts[i] = text
	}
	is := func(m string, pattern ...string) bool {
		if method != m || len(parts) != len(pattern) {
			return false
		}
		for i := range pattern {
			if pattern[i] != "" && parts[i] != pattern[i] {
				return false
			}
		}
		return true
	}
	switch {
	case is(http.MethodGet, "pop"):
		return target{route: RoutePop, class: classConsume}
	case is(http.MethodGet, "pop", "queue", ""):
		return target{route: RoutePop, class: classConsume, queue: parts[2]}
	case is(http.MethodGet, "pop", "queue", "", "partition", ""):
		return target{route: RoutePop, class: classConsume, queue: parts[2], partition: parts[4]}
	case is(http.MethodPost, "ack"), is(http.MethodPost, "ack", "batch"):
		return target{route: RouteAck, class: classConsume}
	case is(http.MethodPost, "lease", "", "extend"):
		return target{route: RouteLease, class: classConsume, lease: parts[1]}
	case is(http.MethodGet, "consumer-groups", "lagging"):
		return target{route: RouteGroups, class: classRead, lagging: true}
	case is(http.MethodGet, "consumer-groups", ""):
		return target{route: RouteGroups, class: classRead, group: parts[1]}
	case is(http.MethodGet, "dlq"):
		return target{route: RouteDead, class: classRead}
	case is(http.MethodDelete, "consumer-groups", ""):
		return target{route: RouteGroupDelete, class: classQueueAdmin, group: parts[1]}
	case is(http.MethodDelete, "consumer-groups", "", "queues", ""):
		return target{route: RouteGroupDelete, class: classQueueAdmin, group: parts[1], queue: parts[3]}
	case is(http.MethodPost, "consumer-groups", "", "queues", "", "seek"):
		return target{route: RouteGroupSeek, class: classQueueAdmin, group: parts[1], queue: parts[3]}
	case is(http.MethodPost, "consumer-groups", "", "subscription"):
		return target{route: RouteGroupSubscription, class: classQueueAdmin, group: parts[1]}
	default:
		return target{}
	}
}

// What autopilot takes where the client leaves a dimension open.
const (
	autopilotBatch      = 100
	autopilotPartitions = 8
)

// popQuery is a pop's parameters.
type popQuery struct {
	ask       broker.PopRequest
	wait      bool
	autopilot bool
}

// readPop reads them.
func readPop(t target, q url.Values) (popQuery, *refusal) {
	p := popQuery{ask: broker.PopRequest{
		Queue: t.queue, Partition: t.partition, Namespace: q.Get("namespace"), Task: q.Get("task"), Group: q.Get("consumerGroup"),
		Batch: 1, Partitions: 1,
	}}
	var f *refusal
	flag := func(name string) bool {
		on, err := strconv.ParseBool(q.Get(name))
		if q.Has(name) && err != nil {
			f = badRequest(name + " must be true or false")
		}
		return on
	}
	number := func(name string, absent int) int {
		if !q.Has(name) {
			return absent
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 32)
		if err != nil || n < 0 {
			f = badRequest(name + " must be a number from 0 on")
		}
		return int(n)
	}
	p.autopilot, p.wait = flag("autopilot"), flag("wait")
	p.ask.Commit, p.ask.Conflate = flag("autoAck"), flag("conflation")
	if p.autopilot {
		p.ask.Batch, p.ask.Partitions = autopilotBatch, autopilotPartitions
	}
	p.ask.Batch = max(number("batch", p.ask.Batch), 1)
	p.ask.Partitions = max(number("partitions", p.ask.Partitions), 1)
	if ms := number("timeout", ceilingMaxWait); p.wait {
		p.ask.Wait = time.Duration(min(ms, ceilingMaxWait)) * time.Millisecond
	}
	if f == nil {
		f = p.begin(q.Get("subscriptionMode"), q.Get("subscriptionFrom"))
	}
	return p, f
}

// begin reads where a new group begins.
func (p *popQuery) begin(mode, from string) *refusal {
	switch mode {
	case "", "all", "from-beginning", "earliest":
	case "new", "new-only", "latest":
		p.ask.New = true
	default:
		return badRequest("subscriptionMode must be all or new")
	}
	switch from {
	case "", "all", "beginning", "earliest":
		return nil
	case "now", "latest":
		p.ask.New = true
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, from)
	if err != nil || at.UnixMilli() < 0 {
		return badRequest("subscriptionFrom must be now or an ISO-8601 time")
	}
	p.ask.New, p.ask.Since = false, at
	return nil
}

// maxParked is how many pops of all clusters may wait at once (cell-http §5.6).
const maxParked = 5000

// parkedRetryAfter is what a pop that may not wait is told, in s.
const parkedRetryAfter = 5

// parkPop takes a place among the waiting pops.
func (p *Proxy) parkPop(c *call) (leave func(), _ *refusal) {
	a := p.account(c.cluster)
	a.mu.Lock()
	a.parked++
	over := c.cluster.Limits.MaxParkedPops.Exceeded(a.parked)
	a.mu.Unlock()
	all := p.parked.Add(1)
	leave = func() {
		p.parked.Add(-1)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.parked--
	}
	if over || all > maxParked {
		if f := p.unlessShadow(c, rateLimited("too many parked consumers", parkedRetryAfter)); f != nil {
			leave()
			return nil, f
		}
	}
	return leave, nil
}

// pop takes records for a consumer group, and parks while there is none.
func (p *Proxy) pop(c *call) *refusal {
	q, f := readPop(c.target, c.r.URL.Query())
	if f != nil {
		return f
	}
	if q.ask.Wait > 0 {
		leave, f := p.parkPop(c)
		if f != nil {
			return f
		}
		defer leave()
	}
	r, err := p.take(c, q.ask)
	if err != nil {
		return p.failed(c, "pop", err)
	}
	p.answerPop(c, &q, &r)
	return nil
}

// take pops; a server that drains answers a parked pop with what there is.
func (p *Proxy) take(c *call, r broker.PopRequest) (broker.PopResult, error) {
	ctx, cancel := context.WithCancel(p.ctx(c))
	defer cancel()
	unhook := context.AfterFunc(p.draining, cancel)
	defer unhook()
	result, err := p.broker.Pop(ctx, c.tenant(), r)
	if err == nil || ctx.Err() == nil || p.ctx(c).Err() != nil {
		return result, err
	}
	r.Wait = 0
	return p.broker.Pop(p.ctx(c), c.tenant(), r)
}

// answerPop renders what was delivered. Nothing at all is a 204, but for what a
// conflating group has to be told.
func (p *Proxy) answerPop(c *call, q *popQuery, r *broker.PopResult) {
	if len(r.Messages) == 0 && !q.ask.Conflate && !r.Conflating {
		c.status = http.StatusNoContent
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	c.msgs = int64(len(r.Messages))
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"success":true`)
	if r.Conflating {
		a.RawStr(`,"conflation":true`)
	}
	if r.Conflict {
		a.RawStr(`,"conflationConflict":true`)
	}
	if q.autopilot {
		a.RawStr(`,"autopilot":{"partitions":`)
		a.int(int64(q.ask.Partitions))
		a.RawStr(`,"batch":`)
		a.int(int64(q.ask.Batch))
		a.RawStr(`}`)
	}
	a.RawStr(`,"messages":[`)
	for i := range r.Messages {
		if i > 0 {
			a.Comma()
		}
		m := &r.Messages[i]
		a.RawStr(`{`)
		a.message(m)
		a.RawStr(`,"consumerGroup":`)
		a.Str(groupOr(q.ask.Group))
		if r.Lease != (broker.LeaseID{}) {
			a.RawStr(`,"leaseId":`)
			a.uuid(r.Lease)
		}
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]}`)
	a.finish()
}

func groupOr(name string) string {
	if name == "" {
		return broker.QueueMode
	}
	return name
}

// message renders what every delivered record shows.
func (a *answer) message(m *broker.Message) {
	a.RawStr(`"id":`)
	a.uuid(m.MessageID)
	a.RawStr(`,"transactionId":`)
	a.transactionID(m.TransactionID, m.MessageID)
	a.RawStr(`,"queue":`)
	a.Str(m.Queue)
	a.RawStr(`,"partition":`)
	a.Str(m.Partition)
	a.RawStr(`,"partitionId":`)
	a.uuid(m.PartitionID)
	a.RawStr(`,"offset":`)
	a.int(m.Offset)
	a.RawStr(`,"retryCount":`)
	a.int(m.Retries)
	a.RawStr(`,"createdAt":`)
	a.time(m.AppendTime, millis)
	a.RawStr(`,"data":`)
	a.payload(m.Payload)
}

// renew lets a lease last longer. One that is gone is no error: the answer says so.
func (p *Proxy) renew(c *call) *refusal {
	r := p.broker.Renew(c.tenant(), leaseID(c.target.lease))
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"leaseId":`)
	a.Str(c.target.lease)
	a.RawStr(`,"success":`)
	a.Bool(r.Partitions > 0)
	a.RawStr(`,"renewed":`)
	a.int(int64(r.Partitions))
	for _, name := range []string{"newExpiresAt", "expiresAt", "lease_expires_at"} {
		a.Comma()
		a.Str(name)
		a.RawStr(`:`)
		if r.Partitions > 0 {
			a.time(r.Expires, millis)
		} else {
			a.Null()
		}
	}
	if r.Partitions == 0 {
		a.RawStr(`,"error":"the lease is gone"`)
	}
	a.RawStr(`}`)
	a.finish()
	return nil
}

// The page of a dead letter listing.
const (
	defaultDeadLimit = 100
	ceilingDeadLimit = 1000
)

// deadLetters lists what consumer groups have given up.
func (p *Proxy) deadLetters(c *call) *refusal {
	q := c.r.URL.Query()
	ask := broker.DeadQuery{Queue: q.Get("queue"), Group: q.Get("consumerGroup"), Partition: q.Get("partition"), Limit: defaultDeadLimit}
	for name, into := range map[string]*int{"limit": &ask.Limit, "offset": &ask.Offset} {
		if !q.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 32)
		if err != nil || n < 0 {
			return badRequest(name + " must be a number from 0 on")
		}
		*into = int(n)
	}
	for name, into := range map[string]*time.Time{"from": &ask.From, "to": &ask.To} {
		if !q.Has(name) {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, q.Get(name))
		if err != nil {
			return badRequest(name + " must be an ISO-8601 time")
		}
		*into = at
	}
	ask.Limit = min(ask.Limit, ceilingDeadLimit)
	page, total, err := p.broker.DeadLetters(c.tenant(), ask)
	if err != nil {
		return p.failed(c, "dead letters", err)
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"messages":[`)
	for i := range page {
		if i > 0 {
			a.Comma()
		}
		d := &page[i]
		a.RawStr(`{`)
		a.message(&d.Message)
		a.RawStr(`,"consumerGroup":`)
		a.Str(d.Group)
		a.RawStr(`,"errorMessage":`)
		a.Str(d.Error)
		a.RawStr(`,"failedAt":`)
		a.time(d.DiedAt, millis)
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`],"total":`)
	a.int(int64(total))
	a.RawStr(`}`)
	a.finish()
	return nil
}
