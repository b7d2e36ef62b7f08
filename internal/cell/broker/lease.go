package broker

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
)

// deliveries is where native consumer groups are in their queues. What a group
// has settled is durable, in entries of the log; leases are in memory only: the
// loss of one at a restart means that its records are delivered again, which a
// lease promises anyhow.
type deliveries struct {
	mu     sync.Mutex // guards all below it, and is never held over I/O
	groups map[groupKey]*group
	leases map[LeaseID]*lease
}

type groupKey struct {
	queue uint64 // uid
	name  string
}

// group is one consumer group of one life of a queue.
type group struct {
	queue   *queue
	name    string
	sub     subscription
	seats   map[uint64]*seat // by uid of the partition
	turn    uint64           // uid of the partition served last
	waiters waiters          // for records that are given back
}

// subscription is what a group was made with. Its stored form wins over what a
// later consumer asks for.
type subscription struct {
	created   int64 // µs
	since     int64 // µs: begins with what was appended then; 0: with everything
	conflates bool
}

// seat is a group's place in one partition.
type seat struct {
	group  *group
	part   *partition
	cursor cursor
	placed bool   // the cursor has a beginning
	claim  *claim // nil: nobody holds records
}

// lease is what one pop handed out.
type lease struct {
	id      LeaseID
	tenant  Tenant
	expires int64 // µs
	lasts   int64 // µs, from a renewal on
	claims  []*claim
}

// claim is a lease's hold on one partition.
type claim struct {
	lease  *lease
	seat   *seat
	byID   map[string]int64   // offset by transaction id
	more   map[string][]int64 // further offsets of an id that comes twice
	behind bool               // settling a record settles all before it, too
	left   int                // records without a verdict
}

func newDeliveries() *deliveries {
	return &deliveries{groups: make(map[groupKey]*group), leases: make(map[LeaseID]*lease)}
}

// newPartitionID is the same at every opening, and cannot be guessed: the id of
// the queue is in it.
func newPartitionID(q *queue, name string) PartitionID {
	sum := sha256.Sum256([]byte(q.id + "/" + name))
	id := PartitionID(sum[:16])
	id[6] = id[6]&0x0f | 8<<4
	id[8] = id[8]&0x3f | 2<<6
	return id
}

func newLeaseID() (id LeaseID) {
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process first
	id[6] = id[6]&0x0f | 4<<4
	id[8] = id[8]&0x3f | 2<<6
	return id
}

// groupOf makes a group known; the caller holds mu.
func (d *deliveries) groupOf(q *queue, name string, sub subscription) *group {
	key := groupKey{q.uid, name}
	g := d.groups[key]
	if g == nil {
		g = &group{queue: q, name: name, seats: make(map[uint64]*seat)}
		d.groups[key] = g
	}
	g.sub = sub
	return g
}

// seatOf is a group's seat in a partition; the caller holds mu.
func (g *group) seatOf(p *partition) *seat {
	s := g.seats[p.uid]
	if s == nil {
		s = &seat{group: g, part: p}
		g.seats[p.uid] = s
	}
	return s
}

// end gives back what a claim still holds; the caller holds mu.
func (d *deliveries) end(c *claim) {
	if c.seat.claim == c {
		c.seat.claim = nil
	}
	c.lease.claims = slices.DeleteFunc(c.lease.claims, func(other *claim) bool { return other == c })
	if len(c.lease.claims) == 0 {
		delete(d.leases, c.lease.id)
	}
	c.seat.group.waiters.wake()
}

// expire ends the leases whose time is over.
func (d *deliveries) expire(now int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.leases {
		if l.expires > now {
			continue
		}
		for _, c := range slices.Clone(l.claims) {
			d.end(c)
		}
	}
}

// forget drops the groups of a queue that is gone.
func (d *deliveries) forget(q *queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, g := range d.groups {
		if key.queue == q.uid {
			d.drop(key, g)
		}
	}
}

// drop forgets one group; the caller holds mu.
func (d *deliveries) drop(key groupKey, g *group) {
	delete(d.groups, key)
	for _, s := range g.seats {
		if s.claim != nil {
			d.end(s.claim)
		}
	}
	g.waiters.wake()
}

// find gives a group of a queue, or nil.
func (d *deliveries) find(q *queue, name string) *group {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.groups[groupKey{q.uid, name}]
}

// of lists the groups of a queue.
func (d *deliveries) of(q *queue) []*group {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*group
	for key, g := range d.groups {
		if key.queue == q.uid {
			list = append(list, g)
		}
	}
	return list
}

// Renew lets a lease last as long again from now on. One that is gone is not
// brought back.
func (b *Broker) Renew(t Tenant, id LeaseID) Renewal {
	now := b.now()
	d := b.machine.deliveries
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.leases[id]
	if l == nil || l.tenant != t || l.expires <= now {
		return Renewal{}
	}
	l.expires = now + l.lasts
	return Renewal{Partitions: len(l.claims), Expires: instant(l.expires)}
}

// groupWaiter makes a group watchable.
type groupWaiter struct {
	d *deliveries
	g *group
}

func (w groupWaiter) watch(c waiter) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.g.waiters.add(c)
}

func (w groupWaiter) unwatch(c waiter) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.g.waiters.remove(c)
}

// offsetsOf are the delivered records with a transaction id.
func (c *claim) offsetsOf(id string) []int64 {
	first, ok := c.byID[id]
	if !ok {
		return nil
	}
	return append([]int64{first}, c.more[id]...)
}

// hold notes a delivered record.
func (c *claim) hold(id string, offset int64) {
	c.left++
	if _, twice := c.byID[id]; !twice {
		c.byID[id] = offset
		return
	}
	if c.more == nil {
		c.more = make(map[string][]int64)
	}
	c.more[id] = append(c.more[id], offset)
}
