package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// settings are a queue's options now.
func (q *queue) settings() Options {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.options
}

// subscribe finds the group of a pop in a queue, or makes it: durably, for where
// it begins and what it delivers are settled once. Nil when the queue is gone.
func (b *Broker) subscribe(ctx context.Context, q *queue, r *PopRequest) (*group, error) {
	if g := b.machine.deliveries.find(q, r.Group); g != nil {
		return g, nil
	}
	sub := subscription{created: b.now(), conflates: r.Conflate}
	switch {
	case r.New:
		sub.since = sub.created
	case !r.Since.IsZero():
		sub.since = max(r.Since.UnixMicro(), 1)
	}
	var g *group
	plan := func(d *store.Draft) (err error) {
		g, err = b.machine.planSubscribe(q, r.Group, sub, d)
		return err
	}
	return g, b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes})
}

func (m *machine) planSubscribe(q *queue, name string, sub subscription, d *store.Draft) (*group, error) {
	if !m.exists(q) {
		return nil, nil
	}
	m.deliveries.mu.Lock()
	defer m.deliveries.mu.Unlock()
	if g := m.deliveries.groups[groupKey{q.uid, name}]; g != nil {
		return g, nil
	}
	groups := 0
	for key := range m.deliveries.groups {
		if key.queue == q.uid {
			groups++
		}
	}
	if groups >= MaxGroups {
		return nil, fmt.Errorf("%w: the queue has %d consumer groups, and may not have more", ErrBadRequest, groups)
	}
	d.Meta = appendGroupOp(d.Meta, q.uid, name, sub)
	return m.deliveries.groupOf(q, name, sub), nil
}

// MoveSubscription lets a group begin with what was appended at or after since,
// wherever it has no place in a partition yet.
func (b *Broker) MoveSubscription(ctx context.Context, t Tenant, name string, since time.Time) (queues int, err error) {
	if err := b.enter(); err != nil {
		return 0, err
	}
	defer b.leave()
	plan := func(d *store.Draft) error {
		ds := b.machine.deliveries
		ds.mu.Lock()
		defer ds.mu.Unlock()
		for _, g := range ds.named(t, name, "") {
			if !b.machine.exists(g.queue) {
				continue
			}
			g.sub.since = max(since.UnixMicro(), 1)
			d.Meta = appendGroupOp(d.Meta, g.queue.uid, name, g.sub)
			queues++
		}
		return nil
	}
	return queues, b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes})
}

// named lists a tenant's groups of one name, of one queue or of all; the caller
// holds mu.
func (d *deliveries) named(t Tenant, name, queue string) []*group {
	var list []*group
	for key, g := range d.groups {
		if key.name == name && g.queue.tenant == t && (queue == "" || g.queue.name == queue) {
			list = append(list, g)
		}
	}
	return list
}

// DeleteGroup lets a group begin anew, in one queue or in all. With forget its
// subscription goes too. It says in how many partitions the group had a place.
func (b *Broker) DeleteGroup(ctx context.Context, t Tenant, name, queue string, forget bool) (partitions int, err error) {
	if err := b.enter(); err != nil {
		return 0, err
	}
	defer b.leave()
	plan := func(d *store.Draft) error {
		ds := b.machine.deliveries
		ds.mu.Lock()
		defer ds.mu.Unlock()
		for _, g := range ds.named(t, name, queue) {
			if !b.machine.exists(g.queue) {
				continue
			}
			partitions += len(g.seats)
			d.Meta = appendGroupEndOp(d.Meta, g, forget)
			ds.drop(groupKey{g.queue.uid, name}, g)
			if !forget {
				ds.groupOf(g.queue, name, g.sub)
			}
		}
		return nil
	}
	return partitions, b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes, Frees: true})
}

// SeekGroup moves a group in every partition of a queue. What it holds is given
// up; what was settled behind the new place is delivered again.
func (b *Broker) SeekGroup(ctx context.Context, t Tenant, name, queue string, to Seek) (partitions int, err error) {
	if err := b.enter(); err != nil {
		return 0, err
	}
	defer b.leave()
	q := b.catalog.find(t, queue)
	if q == nil || b.machine.deliveries.find(q, name) == nil {
		return 0, nil
	}
	places := make(map[*partition]int64)
	for _, p := range q.partitions() {
		if places[p], err = b.seekTo(p, to); err != nil {
			return 0, err
		}
	}
	plan := func(d *store.Draft) error {
		ds := b.machine.deliveries
		ds.mu.Lock()
		defer ds.mu.Unlock()
		g := ds.groups[groupKey{q.uid, name}]
		if g == nil || !b.machine.exists(q) {
			return nil
		}
		for p, at := range places {
			s := g.seatOf(p)
			s.cursor, s.placed = cursor{next: at}, true
			if s.claim != nil {
				ds.end(s.claim)
			}
			d.Meta = appendCursorOp(d.Meta, s)
			partitions++
		}
		g.waiters.wake()
		return nil
	}
	return partitions, b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes + int64(len(places))*64})
}

func (b *Broker) seekTo(p *partition, to Seek) (int64, error) {
	if to.ToEnd {
		_, next := p.bounds()
		return next, nil
	}
	return b.beginning(p, min(to.Since.UnixMicro(), math.MaxInt64/2))
}

// The rows of groups, of their cursors and of dead letters.

func groupRowKey(queue uint64, name string) []byte { return append(key1(groupRows, queue), name...) }

func cursorRowKey(part uint64, name string) []byte { return append(key1(cursorRows, part), name...) }

func appendGroupOp(dst []byte, queue uint64, name string, sub subscription) []byte {
	return appendOp(dst, opGroup, func(b []byte) []byte {
		b = binary.AppendUvarint(b, queue)
		b = appendString(b, name)
		return appendSubscription(b, &sub)
	})
}

func appendSubscription(b []byte, s *subscription) []byte {
	flags := uint64(0)
	if s.conflates {
		flags = 1
	}
	return binary.AppendUvarint(appendInt(appendInt(b, s.created), s.since), flags)
}

func decodeSubscription(d *decoder) subscription {
	return subscription{created: d.int(), since: d.int(), conflates: d.uint()&1 != 0}
}

func appendGroupEndOp(dst []byte, g *group, forget bool) []byte {
	return appendOp(dst, opGroupEnd, func(b []byte) []byte {
		b = binary.AppendUvarint(b, g.queue.uid)
		b = appendString(b, g.name)
		if forget {
			return append(b, 1)
		}
		return append(b, 0)
	})
}

func appendCursorOp(dst []byte, s *seat) []byte {
	return appendOp(dst, opCursor, func(b []byte) []byte {
		b = binary.AppendUvarint(b, s.part.uid)
		b = appendString(b, s.group.name)
		return appendCursor(b, &s.cursor)
	})
}

func (m *machine) applyGroup(o *op, b *store.Batch) error {
	q := m.byUID[o.uid]
	if q == nil {
		return nil // deleted by an entry before
	}
	if m.reopening {
		m.deliveries.groupOf(q, o.name, decodeSubscription(&decoder{b: o.keys}))
	}
	return b.Set(groupRowKey(o.uid, o.name), o.keys)
}

func (m *machine) applyGroupEnd(o *op, b *store.Batch) error {
	q := m.byUID[o.uid]
	if q == nil {
		return nil
	}
	forget := len(o.keys) > 0 && o.keys[0] == 1
	if m.reopening {
		if key := (groupKey{q.uid, o.name}); m.deliveries.groups[key] != nil {
			sub := m.deliveries.groups[key].sub
			delete(m.deliveries.groups, key)
			if !forget {
				m.deliveries.groupOf(q, o.name, sub)
			}
		}
	}
	for _, p := range q.plan.parts {
		if err := b.Delete(cursorRowKey(p.uid, o.name)); err != nil {
			return err
		}
	}
	if !forget {
		return nil
	}
	return b.Delete(groupRowKey(q.uid, o.name))
}

func (m *machine) applyCursor(o *op, b *store.Batch) error {
	p := m.parts[o.uid]
	if p == nil {
		return nil
	}
	if m.reopening {
		m.seatAgain(p, o.name, o.keys)
	}
	return b.Set(cursorRowKey(o.uid, o.name), o.keys)
}

// seatAgain puts a stored cursor in its place. A group is made before its
// cursors, so one without a group is of a group that was forgotten since.
func (m *machine) seatAgain(p *partition, name string, row []byte) {
	g := m.deliveries.groups[groupKey{p.queue.uid, name}]
	if g == nil {
		return
	}
	s := g.seatOf(p)
	s.cursor, s.placed = decodeCursor(&decoder{b: row}), true
}

func (m *machine) loadGroup(key, value []byte) error {
	d := decoder{b: value}
	sub := decodeSubscription(&d)
	if q := m.byUID[binary.BigEndian.Uint64(key[1:])]; q != nil && d.err == nil {
		m.deliveries.groupOf(q, string(key[9:]), sub)
	}
	return d.err
}

func (m *machine) loadCursor(key, value []byte) error {
	if p := m.parts[binary.BigEndian.Uint64(key[1:])]; p != nil {
		m.seatAgain(p, string(key[9:]), value)
	}
	return nil
}
