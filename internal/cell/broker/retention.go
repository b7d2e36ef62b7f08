package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Retention raises the start of a partition with an entry of the log; from then
// on nobody reads below it. The rows of the chunks below go afterwards, without
// an entry: after a crash that brings them back, loadEnds sees them and they go
// again.

// retain raises the log start of every partition whose first records are older
// than their queue keeps them.
func (b *Broker) retain() error {
	now := b.clock().UnixMicro()
	for _, q := range b.catalog.all() {
		q.mu.RLock()
		o := q.options
		q.mu.RUnlock()
		if !o.RetentionEnabled || o.RetentionSeconds <= 0 || o.RetentionSeconds >= now/1e6 {
			continue // kept for ever, or for longer than there has been time
		}
		for _, p := range q.partitions() {
			if b.isClosing() {
				return nil
			}
			if err := b.retainPartition(p, now-o.RetentionSeconds*1e6); err != nil {
				return err
			}
		}
	}
	return nil
}

// retainPartition keeps what was appended at or after since, in µs.
func (b *Broker) retainPartition(p *partition, since int64) error {
	start, next := p.bounds()
	first, err := b.chunkFrom(p, start)
	if err != nil || first == nil || first.time >= since {
		return err
	}
	keep, ok, err := b.firstChunkSince(p, start, next, since)
	switch {
	case errors.Is(err, errMoved):
		return nil // the queue is going away
	case err != nil:
		return err
	case ok:
		return b.trim(p, keep.base, keep.before)
	}
	last, err := b.chunkFrom(p, next-1)
	if err != nil || last == nil {
		return err
	}
	return b.trim(p, last.base+last.count, last.before+last.bytes)
}

// chunkFrom gives the chunk an offset is in or, if that is gone, the next one.
func (b *Broker) chunkFrom(p *partition, offset int64) (found *chunk, err error) {
	it, err := b.store.Rows(key1(chunkRows, p.uid), key1(chunkRows, p.uid+1))
	if err != nil {
		return nil, err
	}
	ok := it.SeekLT(key2(chunkRows, p.uid, uint64(offset)+1))
	if !ok {
		ok = it.First()
	}
	for ; ok && err == nil && found == nil; ok = it.Next() {
		var c chunk
		if c, err = decodeChunkRow(it.Key(), it.Value()); err == nil && c.base+c.count > offset {
			found = &c
		}
	}
	return found, errors.Join(err, it.Close())
}

// trim raises the start of a partition. cut is how many payload bytes were ever
// appended below it.
func (b *Broker) trim(p *partition, start, cut int64) error {
	return b.freeing(func(d *store.Draft) error {
		if b.machine.parts[p.uid] != p || !b.machine.exists(p.queue) {
			return nil
		}
		if start <= p.plan.start {
			return nil
		}
		p.plan.start = start
		d.Meta = appendTrimOp(d.Meta, p, cut)
		return nil
	})
}

// freeing runs a command that makes space.
func (b *Broker) freeing(plan func(*store.Draft) error) error {
	return b.do(context.Background(), &store.Command{Plan: plan, Bytes: manageBytes, Frees: true})
}

func (m *machine) exists(q *queue) bool {
	return m.queues[queueKey{q.tenant, q.name}] == q
}

func appendTrimOp(dst []byte, p *partition, cut int64) []byte {
	f := p.plan
	return appendOp(dst, opTrim, func(b []byte) []byte {
		b = appendInt(b, int64(p.uid))
		for _, n := range []int64{f.start, f.next, f.time, f.before, cut} {
			b = appendInt(b, n)
		}
		return b
	})
}

func (m *machine) applyTrim(o *op, b *store.Batch) error {
	p := m.parts[o.uid]
	if p == nil {
		return nil // deleted by an entry before
	}
	if m.reopening {
		p.plan.start = o.floor.start
	}
	m.applied = append(m.applied, change{kind: opTrim, part: p, next: o.floor.start, bytes: o.cut})
	// A dead letter goes with its record.
	if err := b.DeleteRange(key1(deadRows, p.uid), key2(deadRows, p.uid, uint64(o.floor.start))); err != nil {
		return err
	}
	return b.Set(key2(partitionRows, p.queue.uid, p.uid), appendPartitionRow(nil, p.name, o.floor))
}

// trim makes a new start visible. Who waits looks again.
func (p *partition) trim(start, cut int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = max(p.start, start)
	p.bytes -= cut - p.cut
	p.cut = cut
	p.waiters.wake()
}

func (m *machine) queueTrim(p *partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.trims, p) {
		m.trims = append(m.trims, p)
	}
}

func (m *machine) takeTrims() []*partition {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.trims
	m.trims = nil
	return list
}

// sweepTrims removes the rows of chunks below the start of their partition.
func (b *Broker) sweepTrims() error {
	list := b.machine.takeTrims()
	for i, p := range list {
		start, _ := p.bounds()
		for done := false; !done; {
			var err error
			done, err = b.removeChunks(key1(chunkRows, p.uid), key2(chunkRows, p.uid, uint64(start)), nil)
			if err == nil && !b.isClosing() {
				continue
			}
			for _, p := range list[i:] {
				b.machine.queueTrim(p)
			}
			return err
		}
	}
	return nil
}

// sweepAtLeast is the least time between two looks at a partition's keys, in s.
const sweepAtLeast = 60

// sweepQueueKeys removes expired deduplication keys, of each partition about
// eight times in a window: a row is then looked at about that often.
func (b *Broker) sweepQueueKeys(force bool) error {
	now := b.clock()
	for _, q := range b.catalog.all() {
		q.mu.RLock()
		window := q.options.DedupWindowSeconds
		q.mu.RUnlock()
		for _, p := range q.partitions() {
			if since := now.Sub(p.swept).Seconds(); !force && since >= 0 && since < max(float64(window)/8, sweepAtLeast) {
				continue
			}
			if err := b.sweepKeys(p.uid, window); err != nil || b.isClosing() {
				return err
			}
			p.swept = now
		}
	}
	return nil
}
