package broker

import (
	"context"
	"math"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// KV runs the operations of one call as one transaction (cell-http §4): all its
// writes are on disk when it returns without an error, or none is written. The
// result at an index answers the operation at that index.
func (b *Broker) KV(ctx context.Context, t Tenant, ops []KVOp) ([]KVResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := newKVCall(t, ops, kvLimits{ops: MaxKVOps, keys: MaxKVKeys})
	if err != nil {
		return nil, err
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	if c.writes == 0 {
		if err := b.readKV(c); err != nil {
			return nil, err
		}
		return c.results, nil
	}
	plan := func(d *store.Draft) error {
		if err := b.machine.runKV(c, b.now()); err != nil {
			return err
		}
		b.machine.commitKV(c, d)
		return nil
	}
	if err := b.do(ctx, &store.Command{Plan: plan, Bytes: c.bytes, Frees: c.writes == c.deletes}); err != nil {
		return nil, err
	}
	return c.results, nil
}

// readKV runs a call without writes beside the writer: one iterator sees one
// moment, and everything that was answered before.
func (b *Broker) readKV(c *kvCall) (err error) {
	v := kvView{store: b.store, tenant: c.tenant}
	defer v.close(&err)
	if err := v.open(); err != nil {
		return err
	}
	return c.run(&v, b.now(), 0)
}

// now is the clock that expiries are held against, in µs. It never goes back,
// so that what has expired stays so.
func (b *Broker) now() int64 {
	now := b.clock().UnixMicro()
	for {
		last := b.latest.Load()
		if now <= last {
			return last
		}
		if b.latest.CompareAndSwap(last, now) {
			return now
		}
	}
}

// runKV runs a call on top of everything planned before it.
func (m *machine) runKV(c *kvCall, now int64) (err error) {
	v := kvView{store: m.store, tenant: c.tenant}
	v.over[1] = m.plannedKV
	defer v.close(&err)
	err = c.run(&v, now, m.nextVersion)
	m.nextVersion = max(m.nextVersion, c.version) // also of a call that lost: it may have shown them
	return err
}

// commitKV puts what a call has staged into the entry and before the plans
// that follow.
func (m *machine) commitKV(c *kvCall, d *store.Draft) {
	if len(c.staged) == 0 {
		return
	}
	for i := range c.staged {
		m.plannedKV[string(c.staged[i].key)] = c.staged[i].row
	}
	d.Meta = appendKVOp(d.Meta, c.tenant, kvOp{now: c.now, rows: c.delta.Rows, bytes: c.delta.Bytes}, c.staged)
}

func (m *machine) applyKV(o *op, b *store.Batch) error {
	var key [8 + 1 + kvKeyOverhead + 64 + MaxKVKeyBytes]byte
	var row [256]byte
	var latest int64
	err := o.eachWrite(func(w *kvWrite) error {
		latest = max(latest, w.row.version)
		if w.oldExpires != 0 && w.oldExpires != w.row.expires {
			if err := b.Delete(appendExpiryKey(key[:0], w.oldExpires, w.key)); err != nil {
				return err
			}
		}
		if w.row.version == 0 {
			return b.Delete(w.key)
		}
		if w.row.expires != 0 {
			if err := b.Set(appendExpiryKey(key[:0], w.row.expires, w.key), nil); err != nil {
				return err
			}
		}
		return b.Set(w.key, appendKVRow(row[:0], &w.row))
	})
	if err != nil {
		return err
	}
	if err := m.keepVersion(latest, b); err != nil {
		return err
	}
	return m.applyUsage(o, b)
}

// versionsAtOnce is how many versions the row that keeps them is ahead: it
// need not be written with every call.
const versionsAtOnce = 1 << 12

// keepVersion sees to it that a version is not given again after the next
// opening, even when nothing is left that has it.
func (m *machine) keepVersion(version int64, b *store.Batch) error {
	if m.reopening {
		m.nextVersion = max(m.nextVersion, version+1)
	}
	if version == 0 || version < m.keptVersion {
		return nil
	}
	m.keptVersion = version + versionsAtOnce
	return b.Set([]byte{versionRow}, appendInt(nil, m.keptVersion))
}

func (m *machine) applyUsage(o *op, b *store.Batch) error {
	u := m.usage[o.tenant]
	u.Rows += o.kv.rows
	u.Bytes += o.kv.bytes
	m.applied = append(m.applied, change{kind: opKV, tenant: o.tenant, usage: u})
	key := append([]byte{usageRows}, o.tenant[:]...)
	if u == (KVUsage{}) {
		delete(m.usage, o.tenant)
		return b.Delete(key)
	}
	m.usage[o.tenant] = u
	return b.Set(key, appendInt(appendInt(nil, u.Rows), u.Bytes))
}

// KVStats says what a tenant's keys take.
func (b *Broker) KVStats(t Tenant) KVUsage {
	b.catalog.mu.RLock()
	defer b.catalog.mu.RUnlock()
	return b.catalog.usage[t]
}

func (c *catalog) use(t Tenant, u KVUsage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u == (KVUsage{}) {
		delete(c.usage, t)
		return
	}
	c.usage[t] = u
}

// sweepAtOnce is how many expired rows one entry removes.
const sweepAtOnce = 1024

// sweepKV removes the rows that have expired.
func (b *Broker) sweepKV() error {
	for !b.isClosing() {
		now := b.now()
		var keys [][]byte // of the expiry, in the index
		end := appendExpiryKey(nil, min(now, math.MaxInt64-1)+1, nil)
		err := eachRowIn(b.store, []byte{expiryRows}, end, func(key, _ []byte) bool {
			keys = append(keys, append([]byte(nil), key...))
			return len(keys) < sweepAtOnce
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		last := len(keys) < sweepAtOnce
		plan := func(d *store.Draft) error { return b.machine.planSweep(keys, now, d) }
		if err := b.do(context.Background(), &store.Command{Plan: plan, Bytes: int64(len(keys)) * 64, Frees: true}); err != nil || last {
			return err
		}
	}
	return nil
}

// planSweep leaves out what was written again since it was found.
func (m *machine) planSweep(keys [][]byte, now int64, d *store.Draft) error {
	v := kvView{store: m.store}
	v.over[1] = m.plannedKV
	c := kvCall{now: now}
	for i := range keys {
		key := keys[i][9:]
		row, err := v.get(key)
		if err != nil {
			return err
		}
		if row.version == 0 || row.live(now) {
			continue
		}
		tenant := Tenant(key[1:])
		if tenant != c.tenant {
			m.commitKV(&c, d)
			c = kvCall{now: now, tenant: tenant}
		}
		c.staged = append(c.staged, kvWrite{key: key, oldExpires: row.expires})
		c.delta.add(&row, &kvRow{}, key)
	}
	m.commitKV(&c, d)
	return nil
}
