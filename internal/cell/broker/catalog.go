package broker

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// catalog is what callers see: queues, partitions and their bounds, all of it
// durable. Only machine.Publish changes it.
type catalog struct {
	mu      sync.RWMutex // guards the fields below and the maps in them
	tenants map[Tenant]map[string]*queue
	usage   map[Tenant]KVUsage
	ids     map[PartitionID]*partition
	waiters waiters // for the creation of queues
}

// partition finds one of a tenant's by its id, or gives nil.
func (c *catalog) partition(t Tenant, id PartitionID) *partition {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p := c.ids[id]; p != nil && p.queue.tenant == t {
		return p
	}
	return nil
}

// queue is one life of a queue name, from its creation to its deletion.
type queue struct {
	uid     uint64 // never given twice
	id      string
	tenant  Tenant
	name    string
	created time.Time

	plan queuePlan

	mu      sync.RWMutex // guards the fields below
	options Options
	parts   map[string]*partition
	waiters waiters // for the creation of partitions and for the end of the queue
}

// queuePlan is the queue as of the last planned command. It belongs to the
// store's writer.
type queuePlan struct {
	options Options
	parts   map[string]*partition
}

// partition is one partition of one life of a queue.
type partition struct {
	uid   uint64 // never given twice
	name  string
	queue *queue

	plan  partitionPlan
	swept time.Time // when expired deduplication keys were looked for; tidy's

	mu      sync.Mutex // guards the fields below
	start   int64      // first retained offset
	next    int64      // next offset to be assigned
	bytes   int64      // payload bytes retained
	cut     int64      // payload bytes ever appended below start
	waiters waiters
}

// partitionPlan is the end of the partition as of the last planned command. It
// belongs to the store's writer.
type partitionPlan struct {
	start  int64
	next   int64
	time   int64 // µs, of the last append
	before int64 // payload bytes of everything ever appended
}

func (p *partition) bounds() (start, next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start, p.next
}

func (p *partition) retained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

func (q *queue) partition(name string) *partition {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.parts[name]
}

func (q *queue) partitions() []*partition {
	q.mu.RLock()
	defer q.mu.RUnlock()
	list := make([]*partition, 0, len(q.parts))
	for _, p := range q.parts {
		list = append(list, p)
	}
	return list
}

func (q *queue) describe() Queue {
	q.mu.RLock()
	options := q.options
	q.mu.RUnlock()
	return q.describeWith(options)
}

func (q *queue) describeWith(options Options) Queue {
	parts := q.partitions()
	d := Queue{ID: q.id, Name: q.name, Partitions: len(parts), CreatedAt: q.created, Options: options}
	for _, p := range parts {
		d.RetainedBytes += p.retained()
	}
	return d
}

// find gives the queue of that name, or nil.
func (c *catalog) find(t Tenant, name string) *queue {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tenants[t][name]
}

func (c *catalog) list(t Tenant) []*queue {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]*queue, 0, len(c.tenants[t]))
	for _, q := range c.tenants[t] {
		list = append(list, q)
	}
	return list
}

// all lists the queues of all tenants.
func (c *catalog) all() []*queue {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var list []*queue
	for _, queues := range c.tenants {
		for _, q := range queues {
			list = append(list, q)
		}
	}
	return list
}

// Queues lists a tenant's queues by name.
func (b *Broker) Queues(t Tenant) []Queue {
	queues := b.catalog.list(t)
	list := make([]Queue, len(queues))
	for i, q := range queues {
		list[i] = q.describe()
	}
	slices.SortFunc(list, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Queue describes one queue; false when it does not exist.
func (b *Broker) Queue(t Tenant, name string) (Queue, bool) {
	q := b.catalog.find(t, name)
	if q == nil {
		return Queue{}, false
	}
	return q.describe(), true
}

// PartitionSizes gives the retained payload bytes by partition name; false
// when the queue does not exist.
func (b *Broker) PartitionSizes(t Tenant, name string) (map[string]int64, bool) {
	q := b.catalog.find(t, name)
	if q == nil {
		return nil, false
	}
	sizes := make(map[string]int64)
	for _, p := range q.partitions() {
		sizes[p.name] = p.retained()
	}
	return sizes, true
}
