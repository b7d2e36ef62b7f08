package broker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// machine gives the entries of the log their meaning. It belongs to the store's
// writer: plans read and change its maps as of the last planned command, Apply
// follows behind, Publish tells the catalog. Deleted partitions wait in purge.
type machine struct {
	catalog    *catalog
	deliveries *deliveries
	store      *store.Store // plans read what is applied; what is not yet, is in the planned maps

	queues  map[queueKey]*queue // as planned
	byUID   map[uint64]*queue   // not dropped, as applied or planned
	parts   map[uint64]*partition
	nextUID uint64
	kept    uint64 // nextUID of the row
	applied []change

	plannedKV   map[string]kvRow // by index key, of this group; version 0: removed
	plannedKeys plannedKeys      // deduplication keys of this group
	usage       map[Tenant]KVUsage
	nextVersion int64
	keptVersion int64 // of the row

	// reopening is true while Open applies the log again: plans did not run, so
	// Apply carries their side of the state too.
	reopening bool

	mu    sync.Mutex   // guards purge and trims
	purge []uint64     // deleted partitions whose rows are to be removed
	trims []*partition // those that have chunks below their start
}

type queueKey struct {
	tenant Tenant
	name   string
}

// change is an applied operation that is not visible yet.
type change struct {
	kind    opKind
	queue   *queue
	part    *partition
	options Options
	next    int64
	bytes   int64
	tenant  Tenant
	usage   KVUsage
}

func newMachine(c *catalog) *machine {
	return &machine{
		catalog: c, deliveries: newDeliveries(),
		queues: make(map[queueKey]*queue), byUID: make(map[uint64]*queue), parts: make(map[uint64]*partition),
		nextUID: 1, reopening: true,
		plannedKV: make(map[string]kvRow), usage: make(map[Tenant]KVUsage), nextVersion: 1,
		plannedKeys: plannedKeys{spans: make(map[producer][]keySpan), singles: make(map[singleKey]int64)},
	}
}

func (m *machine) takeUID() uint64 {
	m.nextUID++
	return m.nextUID - 1
}

// addQueue makes a queue known to plans.
func (m *machine) addQueue(q *queue) {
	q.plan.parts = make(map[string]*partition)
	q.parts = make(map[string]*partition)
	m.queues[queueKey{q.tenant, q.name}] = q
	m.byUID[q.uid] = q
	m.nextUID = max(m.nextUID, q.uid+1)
}

func (m *machine) addPartition(p *partition) {
	p.queue.plan.parts[p.name] = p
	m.parts[p.uid] = p
	m.nextUID = max(m.nextUID, p.uid+1)
}

// dropQueue makes plans forget a queue; its partitions stay for Apply.
func (m *machine) dropQueue(q *queue) {
	if key := (queueKey{q.tenant, q.name}); m.queues[key] == q {
		delete(m.queues, key)
	}
}

// Apply implements store.Machine.
func (m *machine) Apply(e *store.Entry, b *store.Batch) error {
	return eachOp(e.Meta, func(o *op) error {
		switch o.kind {
		case opQueue:
			return m.applyQueue(o, b)
		case opDrop:
			return m.applyDrop(o, b)
		case opPartition:
			return m.applyPartition(o, b)
		case opKV:
			return m.applyKV(o, b)
		case opDedup:
			return m.applyDedup(o, b)
		case opTrim:
			return m.applyTrim(o, b)
		case opGroup:
			return m.applyGroup(o, b)
		case opGroupEnd:
			return m.applyGroupEnd(o, b)
		case opCursor:
			return m.applyCursor(o, b)
		case opDead:
			return m.applyDead(o, b)
		default:
			return m.applyChunk(e, o, b)
		}
	})
}

func (m *machine) applyQueue(o *op, b *store.Batch) error {
	q := m.byUID[o.uid]
	if q == nil { // applied again
		q = o.queueOf()
		m.addQueue(q)
	}
	var options Options
	if err := json.Unmarshal(o.options, &options); err != nil {
		return err
	}
	if m.reopening {
		q.plan.options = options
	}
	m.applied = append(m.applied, change{kind: opQueue, queue: q, options: options})
	if err := m.keepUID(o.uid, b); err != nil {
		return err
	}
	return b.Set(key1(queueRows, q.uid), appendQueueRow(nil, q, options))
}

func (o *op) queueOf() *queue {
	return &queue{uid: o.uid, id: o.id, tenant: o.tenant, name: o.name, created: time.UnixMicro(o.created).UTC()}
}

// keepUID sees to it that a uid is not given again, even when nothing is left
// of what had it.
func (m *machine) keepUID(uid uint64, b *store.Batch) error {
	if uid < m.kept {
		return nil
	}
	m.kept = uid + 1
	return b.Set([]byte{uidRow}, binary.AppendUvarint(nil, m.kept))
}

func (m *machine) applyDrop(o *op, b *store.Batch) error {
	q := m.byUID[o.uid]
	if q == nil {
		return fmt.Errorf("queue %d is dropped and does not exist", o.uid)
	}
	m.dropQueue(q)
	delete(m.byUID, q.uid)
	m.applied = append(m.applied, change{kind: opDrop, queue: q})
	for _, p := range q.plan.parts {
		delete(m.parts, p.uid)
		if err := b.Set(key1(purgeRows, p.uid), nil); err != nil {
			return err
		}
	}
	for _, kind := range []byte{partitionRows, groupRows} {
		if err := b.DeleteRange(key1(kind, q.uid), key1(kind, q.uid+1)); err != nil {
			return err
		}
	}
	return b.Delete(key1(queueRows, q.uid))
}

func (m *machine) applyPartition(o *op, b *store.Batch) error {
	p := m.parts[o.uid]
	if p == nil { // applied again
		q := m.byUID[o.queue]
		if q == nil {
			return fmt.Errorf("partition %d is of queue %d, which does not exist", o.uid, o.queue)
		}
		p = &partition{uid: o.uid, name: o.name, queue: q}
		m.addPartition(p)
	}
	m.applied = append(m.applied, change{kind: opPartition, queue: p.queue, part: p})
	if err := m.keepUID(o.uid, b); err != nil {
		return err
	}
	return b.Set(key2(partitionRows, p.queue.uid, p.uid), appendPartitionRow(nil, p.name, floor{}))
}

func (m *machine) applyChunk(e *store.Entry, o *op, b *store.Batch) error {
	p := m.parts[o.uid]
	if p == nil || o.blob >= e.Blobs() {
		return fmt.Errorf("a chunk of partition %d has no partition or no blob", o.uid)
	}
	c := &o.chunk
	c.ref = e.Ref(o.blob)
	b.AddLive(c.ref.Segment, c.live())
	if o.kind == opMove {
		b.AddLive(o.from, -c.live())
	} else {
		end := c.base + c.count
		if m.reopening {
			p.plan = partitionPlan{start: p.plan.start, next: end, time: c.time, before: c.before + c.bytes}
		}
		m.applied = append(m.applied, change{kind: opAppend, part: p, next: end, bytes: c.bytes})
	}
	var room [80]byte
	return b.Set(key2(chunkRows, p.uid, uint64(c.base)), appendChunkRow(room[:0], c))
}

// Publish implements store.Machine.
func (m *machine) Publish() {
	for i := range m.applied {
		switch c := &m.applied[i]; c.kind {
		case opQueue:
			m.catalog.put(c.queue, c.options)
		case opPartition:
			c.queue.publish(c.part)
			m.catalog.name(c.part)
		case opAppend:
			c.part.extend(c.next, c.bytes)
		case opDrop:
			m.catalog.remove(c.queue)
			m.queuePurge(c.queue)
			m.deliveries.forget(c.queue)
		case opKV:
			m.catalog.use(c.tenant, c.usage)
		case opTrim:
			c.part.trim(c.next, c.bytes)
			m.queueTrim(c.part)
		}
	}
	clear(m.applied)
	m.applied = m.applied[:0]
	m.plannedKV = emptied(m.plannedKV)
	m.plannedKeys.empty()
}

// emptied clears a map; clearing costs what the map once held, so a large one
// is given up.
func emptied[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) > 1024 {
		return make(M)
	}
	clear(m)
	return m
}

func (m *machine) queuePurge(q *queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range q.plan.parts {
		m.purge = append(m.purge, p.uid)
	}
}

func (c *catalog) put(q *queue, options Options) {
	q.mu.Lock()
	q.options = options
	q.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	queues := c.tenants[q.tenant]
	if queues == nil {
		queues = make(map[string]*queue)
		c.tenants[q.tenant] = queues
	}
	if queues[q.name] != q {
		c.waiters.wake()
	}
	queues[q.name] = q
}

// name lets a partition be found by its id.
func (c *catalog) name(p *partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[newPartitionID(p.queue, p.name)] = p
}

// remove takes a queue out of sight and wakes whoever waits for it.
func (c *catalog) remove(q *queue) {
	c.mu.Lock()
	if queues := c.tenants[q.tenant]; queues[q.name] == q {
		delete(queues, q.name)
		if len(queues) == 0 {
			delete(c.tenants, q.tenant)
		}
	}
	c.mu.Unlock()
	parts := q.partitions()
	for _, p := range parts {
		p.extend(0, 0)
	}
	c.mu.Lock()
	for _, p := range parts {
		delete(c.ids, newPartitionID(q, p.name))
	}
	c.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiters.wake()
}

func (q *queue) publish(p *partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parts[p.name] = p
	q.waiters.wake()
}

// extend moves the high watermark up to next and wakes whoever waits.
func (p *partition) extend(next, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = max(p.next, next)
	p.bytes += bytes
	p.waiters.wake()
}
