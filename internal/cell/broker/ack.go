package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Why a verdict is not taken.
const (
	ackNoPartition = "unknown partition"
	ackNoLease     = "invalid or expired lease"
	ackNoMessage   = "the lease does not cover this message"
)

// errAckRefused is a transaction whose verdict on a record was not taken.
type errAckRefused struct {
	index int
	why   string
}

func (e *errAckRefused) Error() string { return e.why }

// ackBytes is about what a verdict takes in the log.
const ackBytes = 64

// Ack takes verdicts on delivered records. Those that are taken are on disk when
// it returns; one that is not taken changes nothing and spoils no other.
func (b *Broker) Ack(ctx context.Context, t Tenant, acks []Ack) ([]AckResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	a, err := newAckCall(t, acks)
	if err != nil {
		return nil, err
	}
	plan := func(d *store.Draft) error {
		b.machine.judgeAcks(a, b.now())
		b.machine.commitAcks(a, b.now(), d)
		return nil
	}
	if err := b.do(ctx, &store.Command{Plan: plan, Bytes: a.bytes, Frees: a.frees}); err != nil {
		return nil, err
	}
	return a.results, nil
}

// ackCall is one call on its way.
type ackCall struct {
	tenant  Tenant
	acks    []Ack
	results []AckResult
	judged  []judged // per ack
	bytes   int64
	frees   bool // nothing but cursors moves
}

// judged is what an ack is about; a nil claim was refused.
type judged struct {
	claim   *claim
	offsets []int64
}

func newAckCall(t Tenant, acks []Ack) (*ackCall, error) {
	if len(acks) > MaxAcks {
		return nil, fmt.Errorf("%w: %d acknowledgments, at most %d", ErrBadRequest, len(acks), MaxAcks)
	}
	a := &ackCall{
		tenant: t, acks: slices.Clone(acks), results: make([]AckResult, len(acks)), judged: make([]judged, len(acks)), frees: true,
	}
	for i := range a.acks {
		ack := &a.acks[i]
		if ack.Group == "" {
			ack.Group = QueueMode
		}
		if len(ack.Error) > MaxAckErrorBytes {
			ack.Error = ack.Error[:MaxAckErrorBytes]
		}
		a.bytes += ackBytes + int64(len(ack.Error))
		a.frees = a.frees && (ack.Status == Completed || ack.Status == RetryLater)
	}
	return a, nil
}

// refused is the first verdict that was not taken, or nil.
func (a *ackCall) refused() error {
	for i := range a.results {
		if why := a.results[i].Refused; why != "" {
			return &errAckRefused{index: i, why: why}
		}
	}
	return nil
}

// judgeAcks says which verdicts are taken. It changes nothing.
func (m *machine) judgeAcks(a *ackCall, now int64) {
	m.deliveries.mu.Lock()
	defer m.deliveries.mu.Unlock()
	for i := range a.acks {
		a.judged[i], a.results[i] = m.judgeAck(a.tenant, &a.acks[i], now)
	}
}

func (m *machine) judgeAck(t Tenant, ack *Ack, now int64) (judged, AckResult) {
	p := m.catalog.partition(t, ack.Partition)
	if p == nil || !m.exists(p.queue) {
		return judged{}, AckResult{Refused: ackNoPartition}
	}
	r := AckResult{Queue: p.queue.name, Partition: p.name}
	g := m.deliveries.groups[groupKey{p.queue.uid, ack.Group}]
	if g == nil || g.seats[p.uid] == nil {
		r.Refused = ackNoLease
		return judged{}, r
	}
	c := g.seats[p.uid].claim
	if c == nil || c.lease.expires <= now || ack.Lease != (LeaseID{}) && ack.Lease != c.lease.id {
		r.Refused = ackNoLease
		return judged{}, r
	}
	offsets := c.offsetsOf(ack.TransactionID)
	if offsets == nil {
		r.Refused = ackNoMessage
		return judged{}, r
	}
	return judged{claim: c, offsets: offsets}, r
}

// commitAcks does what was judged. A failed record is given back with all that
// has no verdict yet in its partition; what the same call settles stays settled.
func (m *machine) commitAcks(a *ackCall, now int64, d *store.Draft) {
	m.deliveries.mu.Lock()
	defer m.deliveries.mu.Unlock()
	released := make(map[*claim]bool)
	changed := make(map[*seat]bool)
	var order []*claim
	for i := range a.acks {
		j := &a.judged[i]
		if j.claim == nil {
			continue
		}
		if _, known := released[j.claim]; !known {
			released[j.claim] = false
			order = append(order, j.claim)
		}
		for _, offset := range j.offsets {
			moved, back := m.commitAck(&a.acks[i], j.claim, offset, now, d, &a.results[i])
			changed[j.claim.seat] = changed[j.claim.seat] || moved
			released[j.claim] = released[j.claim] || back || j.claim.left == 0
		}
	}
	for _, c := range order {
		if changed[c.seat] {
			d.Meta = appendCursorOp(d.Meta, c.seat)
			delete(changed, c.seat)
		}
		if released[c] {
			m.deliveries.end(c)
		}
	}
	for i := range a.judged {
		a.results[i].Released = a.judged[i].claim != nil && released[a.judged[i].claim]
	}
}

// commitAck does one verdict on one record, and says whether the cursor changed
// and whether the record is given back.
func (m *machine) commitAck(ack *Ack, c *claim, offset, now int64, d *store.Draft, r *AckResult) (moved, back bool) {
	s := c.seat
	if s.cursor.has(offset) {
		return false, false // said twice
	}
	count := s.cursor.failed(offset)
	o := &s.part.queue.plan.options
	switch ack.Status {
	case RetryLater:
		return false, true
	case FailedOnce:
		count = s.cursor.fail(offset)
		if count <= o.RetryLimit || !o.DeadLetterQueue || !o.DLQAfterMaxRetries {
			return true, true
		}
		fallthrough
	case DeadLetter:
		r.Dead = true
		d.Meta = appendDeadOp(d.Meta, s, offset, deadRow{died: now, count: count, text: ack.Error})
	}
	c.left--
	if c.behind {
		s.cursor.settle(s.cursor.next, offset)
	}
	s.cursor.settle(offset, offset+1)
	return true, false
}

// commit settles what a pop delivers at once.
func (p *pop) commit(ctx context.Context) error {
	plan := func(d *store.Draft) error {
		m := p.broker.machine
		m.deliveries.mu.Lock()
		defer m.deliveries.mu.Unlock()
		for _, t := range p.claims {
			s := t.claim.seat
			if s.claim != t.claim || !m.exists(s.part.queue) {
				return fmt.Errorf("%w: the queue is gone", ErrBadRequest)
			}
		}
		for _, t := range p.claims {
			s := t.claim.seat
			for _, r := range p.records[t.from:t.to] {
				s.cursor.settle(r.Offset, r.Offset+1)
			}
			d.Meta = appendCursorOp(d.Meta, s)
		}
		return nil
	}
	return p.broker.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes + int64(len(p.claims))*ackBytes, Frees: true})
}

// deadRow is what is kept of a dead letter beside its record.
type deadRow struct {
	died  int64 // µs
	count int64
	text  string
}

func deadRowKey(part uint64, offset int64, group string) []byte {
	return append(key2(deadRows, part, uint64(offset)), group...)
}

func appendDeadRow(b []byte, r *deadRow) []byte {
	return appendString(appendInt(appendInt(b, r.died), r.count), r.text)
}

func decodeDeadRow(b []byte) (deadRow, error) {
	d := decoder{b: b}
	r := deadRow{died: d.int(), count: d.int(), text: d.string()}
	return r, d.err
}

func appendDeadOp(dst []byte, s *seat, offset int64, r deadRow) []byte {
	return appendOp(dst, opDead, func(b []byte) []byte {
		b = binary.AppendUvarint(b, s.part.uid)
		b = appendString(b, s.group.name)
		b = appendInt(b, offset)
		return appendDeadRow(b, &r)
	})
}

func (m *machine) applyDead(o *op, b *store.Batch) error {
	if m.parts[o.uid] == nil {
		return nil
	}
	d := decoder{b: o.keys}
	offset := d.int()
	if d.err != nil {
		return d.err
	}
	return b.Set(deadRowKey(o.uid, offset, o.name), d.b)
}

// DeadLetters lists what groups of a queue have given up, by partition and
// offset. The total counts what the page leaves out, too.
func (b *Broker) DeadLetters(t Tenant, q DeadQuery) (page []Dead, total int, err error) {
	if err := b.enter(); err != nil {
		return nil, 0, err
	}
	defer b.leave()
	found := b.catalog.find(t, q.Queue)
	if found == nil {
		return nil, 0, nil
	}
	parts := found.partitions()
	slices.SortFunc(parts, func(a, b *partition) int { return cmp.Compare(a.uid, b.uid) })
	for _, p := range parts {
		if q.Partition != "" && q.Partition != p.name {
			continue
		}
		list, err := b.deadOf(p, &q)
		if err != nil {
			return nil, 0, err
		}
		for i := range list {
			if total++; total <= q.Offset || len(page) >= q.Limit {
				continue
			}
			d, err := b.deadMessage(p, &list[i])
			if err != nil {
				return nil, 0, err
			}
			page = append(page, d)
		}
	}
	return page, total, nil
}

// deadAt is one row of deadRows.
type deadAt struct {
	offset int64
	group  string
	row    deadRow
}

func (b *Broker) deadOf(p *partition, q *DeadQuery) (list []deadAt, err error) {
	start, _ := p.bounds()
	var failed error
	err = eachRowIn(b.store, key2(deadRows, p.uid, uint64(start)), key1(deadRows, p.uid+1), func(key, value []byte) bool {
		at := deadAt{offset: int64(binary.BigEndian.Uint64(key[9:])), group: string(key[17:])}
		if at.row, failed = decodeDeadRow(value); failed != nil {
			return false
		}
		died := instant(at.row.died)
		if (q.Group == "" || q.Group == at.group) && (q.From.IsZero() || !died.Before(q.From)) && (q.To.IsZero() || !died.After(q.To)) {
			list = append(list, at)
		}
		return true
	})
	return list, errors.Join(err, failed)
}

func (b *Broker) deadMessage(p *partition, at *deadAt) (Dead, error) {
	d := Dead{Group: at.group, Error: at.row.text, DiedAt: instant(at.row.died)}
	d.Message = Message{Queue: p.queue.name, Partition: p.name, PartitionID: newPartitionID(p.queue, p.name), Retries: at.row.count}
	records, err := b.read(span{part: p, from: at.offset, to: at.offset + 1, maxBytes: 1, maxRecords: 1}, nil)
	if errors.Is(err, errMoved) || err == nil && len(records) == 0 {
		d.Offset = at.offset // the record went meanwhile
		return d, nil
	}
	if err != nil {
		return d, err
	}
	d.Record = records[0]
	return d, nil
}
