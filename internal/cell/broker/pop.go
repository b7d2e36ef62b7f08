package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// maxPopBytes bounds the payload bytes of one pop.
const maxPopBytes = 8 << 20

// Pop takes records for a group. What it takes is held under one lease until it
// is acknowledged, failed, or the lease's time is over; another pop of the group
// gets nothing of a partition in between. It parks while there is nothing.
func (b *Broker) Pop(ctx context.Context, t Tenant, r PopRequest) (PopResult, error) {
	if err := r.check(); err != nil {
		return PopResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return PopResult{}, err
	}
	if err := b.enter(); err != nil {
		return PopResult{}, err
	}
	defer b.leave()
	p := pop{broker: b, tenant: t, ask: r, deliveries: b.machine.deliveries}
	if err := p.look(ctx); err != nil {
		return PopResult{}, err
	}
	if wait := min(r.Wait, maxWait); len(p.result.Messages) == 0 && wait > 0 {
		if err := p.park(ctx, wait); err != nil {
			return PopResult{}, err
		}
	}
	if ctx.Err() != nil && p.lease != nil {
		p.giveBack() // nobody is there to take them
		return PopResult{}, ctx.Err()
	}
	return p.result, nil
}

// check clamps what may be clamped and refuses the rest.
func (r *PopRequest) check() error {
	r.Batch = min(max(r.Batch, 1), MaxPopRecords)
	r.Partitions = min(max(r.Partitions, 1), MaxPopPartitions)
	switch {
	case r.Queue == "" && r.Namespace == "" && r.Task == "":
		return fmt.Errorf("%w: a pop names a queue, a namespace or a task", ErrBadRequest)
	case r.Conflate && r.Group == "":
		return fmt.Errorf("%w: conflation needs a consumer group", ErrBadRequest)
	case r.Conflate && r.Commit:
		return fmt.Errorf("%w: conflation and autoAck exclude each other", ErrBadRequest)
	case len(r.Group) > MaxGroupBytes:
		return fmt.Errorf("%w: the consumer group has %d bytes, at most %d", ErrNameTooLong, len(r.Group), MaxGroupBytes)
	}
	if r.Group == "" {
		r.Group = QueueMode
	}
	return nil
}

// pop is one call on its way.
type pop struct {
	broker     *Broker
	deliveries *deliveries
	tenant     Tenant
	ask        PopRequest
	result     PopResult

	lease   *lease
	records []Record
	claims  []taken
	bytes   int64
	retry   int64 // µs: when the first lease in the way ends; 0: none is

	signal  waiter
	watched map[watchable]struct{}
}

// taken is a claim and the records of it.
type taken struct {
	claim    *claim
	from, to int // in records
}

// park waits for something to take.
func (p *pop) park(ctx context.Context, wait time.Duration) error {
	p.signal, p.watched = make(waiter, 1), make(map[watchable]struct{})
	defer p.unwatch()
	end := time.NewTimer(wait)
	defer end.Stop()
	again := time.NewTimer(wait)
	defer again.Stop()
	for {
		// Watch first and look then, or what comes in between is missed.
		if err := p.look(ctx); err != nil || len(p.result.Messages) > 0 {
			return err
		}
		if p.retry > 0 {
			again.Reset(time.Duration(max(p.retry-p.broker.now(), 1000)) * time.Microsecond)
		}
		select {
		case <-p.signal:
		case <-again.C:
		case <-end.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-p.broker.closing:
			return ErrClosed
		}
	}
}

func (p *pop) watch(w watchable) {
	if p.signal == nil {
		return
	}
	if _, known := p.watched[w]; !known {
		w.watch(p.signal)
		p.watched[w] = struct{}{}
	}
}

func (p *pop) unwatch() {
	for w := range p.watched {
		w.unwatch(p.signal)
	}
}

// look takes what there is to take now.
func (p *pop) look(ctx context.Context) (err error) {
	p.retry, p.result.Conflating, p.result.Conflict = 0, false, false
	defer func() {
		if err != nil {
			p.giveBack()
		}
	}()
	p.watch(&p.broker.catalog)
	for _, q := range p.queues() {
		if err := p.lookAt(ctx, q); err != nil {
			return err
		}
	}
	if len(p.records) == 0 {
		return nil
	}
	p.deliver()
	if !p.ask.Commit {
		p.result.Lease = p.lease.id
		return nil
	}
	if err := p.commit(ctx); err != nil {
		p.result.Messages = nil
		return err
	}
	p.giveBack() // there is nothing left to hold
	return nil
}

// queues are those the call is about.
func (p *pop) queues() []*queue {
	if p.ask.Queue != "" {
		if q := p.broker.catalog.find(p.tenant, p.ask.Queue); q != nil {
			return []*queue{q}
		}
		return nil
	}
	var list []*queue
	for _, q := range p.broker.catalog.list(p.tenant) {
		o := q.settings()
		if (p.ask.Namespace == "" || o.Namespace == p.ask.Namespace) && (p.ask.Task == "" || o.Task == p.ask.Task) {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b *queue) int { return cmp.Compare(a.uid, b.uid) })
	return list
}

// lookAt takes what one queue has.
func (p *pop) lookAt(ctx context.Context, q *queue) error {
	p.watch(q)
	g, err := p.broker.subscribe(ctx, q, &p.ask)
	if err != nil || g == nil {
		return err // nil: the queue is going away
	}
	p.watch(groupWaiter{p.deliveries, g})
	p.result.Conflating = p.result.Conflating || g.sub.conflates
	p.result.Conflict = p.result.Conflict || g.sub.conflates != p.ask.Conflate
	for _, part := range p.partitions(q, g) {
		if len(p.claims) == p.ask.Partitions || len(p.records) >= p.ask.Batch || p.bytes >= maxPopBytes {
			return nil
		}
		p.watch(part)
		if err := p.take(g, part); err != nil {
			return fmt.Errorf("pop %s/%s: %w", q.name, part.name, err)
		}
	}
	return nil
}

// partitions are the queue's, beginning behind the one that was served last, so
// that a busy one does not starve the others.
func (p *pop) partitions(q *queue, g *group) []*partition {
	if p.ask.Partition != "" {
		if part := q.partition(p.ask.Partition); part != nil {
			return []*partition{part}
		}
		return nil
	}
	list := q.partitions()
	slices.SortFunc(list, func(a, b *partition) int { return cmp.Compare(a.uid, b.uid) })
	p.deliveries.mu.Lock()
	turn := g.turn
	p.deliveries.mu.Unlock()
	at, found := slices.BinarySearchFunc(list, turn, func(a *partition, uid uint64) int { return cmp.Compare(a.uid, uid) })
	if found {
		at++
	}
	return slices.Concat(list[at:], list[:at])
}

// take claims a partition, if nobody holds it and there is something in it. Where
// records were copied forward or removed while they were read, it looks again: a
// call that waits for nothing must not find nothing for that.
func (p *pop) take(g *group, part *partition) error {
	for range maxTries {
		if moved, err := p.tryTake(g, part); !moved || err != nil {
			return err
		}
	}
	return nil
}

func (p *pop) tryTake(g *group, part *partition) (moved bool, err error) {
	beginning, begun, err := p.beginning(g, part)
	if err != nil || !begun {
		return false, err
	}
	start, next := part.bounds()
	c, open, conflates := p.claim(g, part, beginning, start, next)
	if c == nil {
		return false, nil
	}
	if conflates {
		newest := open[len(open)-1].to
		open = []stretch{{newest - 1, newest}}
	}
	t := taken{claim: c, from: len(p.records)}
	if err = p.read(part, open); errors.Is(err, errMoved) {
		moved, err = true, nil
	}
	t.to = len(p.records)
	p.claims = append(p.claims, t)
	if err == nil && t.from == t.to {
		p.claims = p.claims[:len(p.claims)-1]
		p.drop(c)
		return moved, err
	}
	return false, err
}

// beginning is where a group that has no place in a partition yet begins; not
// begun, if that is still to come.
func (p *pop) beginning(g *group, part *partition) (at int64, begun bool, err error) {
	p.deliveries.mu.Lock()
	s := g.seats[part.uid]
	placed, since := s != nil && s.placed, g.sub.since
	p.deliveries.mu.Unlock()
	if placed || since == 0 {
		return 0, true, nil
	}
	at, err = p.broker.beginning(part, since)
	_, next := part.bounds()
	return at, at < next || since <= p.broker.now(), err
}

// beginning finds the first offset that was appended at or after since.
func (b *Broker) beginning(part *partition, since int64) (int64, error) {
	start, next := part.bounds()
	c, ok, err := b.firstChunkSince(part, start, next, since)
	switch {
	case errors.Is(err, errMoved):
		return start, nil
	case err != nil:
		return 0, err
	case !ok:
		return next, nil
	}
	return max(c.base, start), nil
}

// claim takes the group's seat in a partition. Nil when there is nothing to
// have.
func (p *pop) claim(g *group, part *partition, beginning, start, next int64) (_ *claim, open []stretch, conflates bool) {
	now := p.broker.now()
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	s := g.seatOf(part)
	if !s.placed {
		s.cursor.settle(0, beginning)
		s.placed = true
	}
	s.cursor.raise(start)
	if c := s.claim; c != nil {
		if c.lease.expires > now {
			if p.retry == 0 || c.lease.expires < p.retry {
				p.retry = c.lease.expires
			}
			return nil, nil, false
		}
		p.deliveries.end(c)
	}
	if open = s.cursor.gaps(next); len(open) == 0 {
		return nil, nil, false
	}
	if p.lease == nil {
		lasts := max(part.queue.settings().LeaseTime, 1)
		lasts = min(lasts, math.MaxInt32) * 1e6
		p.lease = &lease{id: newLeaseID(), tenant: p.tenant, lasts: lasts, expires: now + lasts}
		p.deliveries.leases[p.lease.id] = p.lease
	}
	s.claim = &claim{lease: p.lease, seat: s, byID: make(map[string]int64), behind: g.sub.conflates}
	p.lease.claims = append(p.lease.claims, s.claim)
	g.turn = part.uid
	return s.claim, open, g.sub.conflates
}

// read adds the records of the open stretches, as far as the call takes them.
func (p *pop) read(part *partition, open []stretch) error {
	for _, s := range open {
		had := len(p.records)
		if had >= p.ask.Batch || p.bytes >= maxPopBytes {
			return nil
		}
		var err error
		p.records, err = p.broker.read(span{
			part: part, from: s.from, to: s.to, maxBytes: maxPopBytes - p.bytes, maxRecords: p.ask.Batch - had,
		}, p.records)
		for i := had; i < len(p.records); i++ {
			p.bytes += int64(len(p.records[i].Payload))
		}
		if err != nil {
			return err
		}
		if got := p.records[had:]; len(got) == 0 || got[len(got)-1].Offset+1 < s.to {
			return nil // full
		}
	}
	return nil
}

// drop gives a claim back that came to nothing.
func (p *pop) drop(c *claim) {
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	p.deliveries.end(c)
	if len(p.lease.claims) == 0 {
		p.lease = nil
	}
}

// giveBack ends what a call has claimed.
func (p *pop) giveBack() {
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	for _, t := range p.claims {
		p.deliveries.end(t.claim)
	}
	p.claims, p.records, p.bytes, p.lease = nil, nil, 0, nil
}

// deliver notes under every claim what it holds, and makes the messages.
func (p *pop) deliver() {
	p.deliveries.mu.Lock()
	defer p.deliveries.mu.Unlock()
	p.result.Messages = make([]Message, 0, len(p.records))
	for _, t := range p.claims {
		s := t.claim.seat
		id := newPartitionID(s.part.queue, s.part.name)
		for _, r := range p.records[t.from:t.to] {
			t.claim.hold(recordID(&r), r.Offset)
			p.result.Messages = append(p.result.Messages, Message{
				Queue: s.part.queue.name, Partition: s.part.name, PartitionID: id, Record: r, Retries: s.cursor.failed(r.Offset),
			})
		}
	}
}

// recordID is the transaction id of a record as clients see it.
func recordID(r *Record) string {
	if r.TransactionID != "" {
		return r.TransactionID
	}
	return uuidText(r.MessageID)
}

func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
