package broker

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Limits of a push.
const (
	// MaxNameBytes bounds the name of a queue and of a partition together
	// (cell-http §3.13).
	MaxNameBytes = 511
	// maxTransactionID bounds a deduplication key.
	maxTransactionID = 4 << 10
	// maxPushBytes bounds one push as it is stored: it is one log entry, so
	// that a crash leaves all of it or nothing.
	maxPushBytes = 512 << 20
	// keyOpBytes is about what a run of deduplication keys takes in the log.
	keyOpBytes = 32
	// The largest push whose memory is used again is a full merged push of a
	// gateway: bytes of its blobs, its items, its partitions and, of one of them,
	// the chunks and the runs of keys.
	maxPooledBlobs  = 16 << 20
	maxPooledItems  = 64 << 10
	maxPooledLanes  = 1 << 10
	maxPooledChunks = 64
)

// lane is the share of a push that goes to one partition.
type lane struct {
	queue, partition string
	count            int64 // records
	size             int64 // bytes of its blobs
	open             int64 // bytes of the blob being filled
	before           int64 // records of the lanes before it

	runs    []keyRun // its deduplication keys
	series  []byte   // the key noted last up to its sequence, when it is of a producer; aliases the item's
	repeats bool     // one of them comes twice

	// The writer's verdict, see dedup.
	dups   []int64  // per item, nil when all are new
	kept   []keyRun // of what is stored
	stored int64    // records stored
	place  []int64  // of every item among the stored ones, when there are dups

	buf    []byte   // its blobs one behind the other
	from   int      // where the blob being filled begins
	given  int64    // records encoded or answered
	follow []keyRun // the keys of what is encoded: those not passed yet
	chunks []chunk
	blobs  []store.Blob

	part *partition // planned
	base int64
}

// push is one call on its way.
type push struct {
	tenant Tenant
	items  []PushItem
	lanes  []lane
	laneOf []int32 // per item; empty when there is one lane
	first  messageID
	bytes  int64
	room   []byte // what encode may write over
}

// Push appends items, all of them or none. Missing queues and partitions are
// created. An answer without error means that the records are on disk and
// visible to Fetch; a canceled ctx leaves open whether they will be. The results
// are appended to into.
func (b *Broker) Push(ctx context.Context, t Tenant, items []PushItem, into []PushResult) ([]PushResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	p := b.pushes.Take()
	p.begin(t, items, newMessageID(b.clock()))
	if err := p.sort(); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return []PushResult{}, nil
	}
	p.encode()
	plan := func(d *store.Draft) error { return b.machine.planPush(p, b.clock(), d) }
	if err := b.do(ctx, &store.Command{Plan: plan, Bytes: p.bytes}); err != nil {
		return nil, err // the writer may still read what was encoded
	}
	results := p.results(into)
	if p.lendable() {
		b.pushes.Put(p, int64(cap(p.room)))
	}
	return results, nil
}

// begin makes a push of another call's, whose memory it writes over.
func (p *push) begin(t Tenant, items []PushItem, first messageID) {
	*p = push{tenant: t, items: items, first: first, lanes: p.lanes[:0], laneOf: p.laneOf[:0], room: p.room}
}

// lendable lets go of what belongs to the call, and says whether what is left
// is worth keeping for the next one.
func (p *push) lendable() bool {
	p.items = nil
	for i := range p.lanes {
		l := &p.lanes[i]
		clear(l.blobs)
		*l = lane{runs: l.runs[:0], chunks: l.chunks[:0], blobs: l.blobs[:0]}
		if max(cap(l.runs), cap(l.chunks)) > maxPooledChunks {
			*l = lane{}
		}
	}
	return cap(p.room) <= maxPooledBlobs && cap(p.lanes) <= maxPooledLanes && cap(p.laneOf) <= maxPooledItems
}

// addLane begins a lane, in memory that another call's had.
func (p *push) addLane(queue, partition string) {
	n := len(p.lanes)
	if n < cap(p.lanes) {
		p.lanes = p.lanes[:n+1]
	} else {
		p.lanes = append(p.lanes, lane{})
	}
	p.lanes[n].queue, p.lanes[n].partition = queue, partition
}

// sort checks the items and gives each its lane.
func (p *push) sort() error {
	var lanes map[[2]string]int32
	last := int32(-1)
	for i := range p.items {
		item := &p.items[i]
		if last < 0 || p.lanes[last].queue != item.Queue || p.lanes[last].partition != item.Partition {
			if len(p.lanes) == 1 && len(p.laneOf) == 0 {
				p.laneOf = slices.Grow(p.laneOf, len(p.items))[:i]
				clear(p.laneOf)
				lanes = map[[2]string]int32{{p.lanes[0].queue, p.lanes[0].partition}: 0}
			}
			key := [2]string{item.Queue, item.Partition}
			at, known := lanes[key]
			if !known {
				if err := checkNames(item.Queue, item.Partition); err != nil {
					return err
				}
				at = int32(len(p.lanes))
				p.addLane(item.Queue, item.Partition)
				if lanes != nil {
					lanes[key] = at
				}
			}
			last = at
		}
		if len(p.laneOf) > 0 {
			p.laneOf = append(p.laneOf, last)
		}
		if len(item.TransactionID) > maxTransactionID {
			return fmt.Errorf("%w: a transactionId of %d bytes", ErrNameTooLong, len(item.TransactionID))
		}
		l, n := &p.lanes[last], int64(recordBytes(item))
		if l.open == 0 || l.open+n > chunkBytes {
			l.open = blobHeader
			l.size += blobHeader
		}
		l.open += n
		l.size += n
		l.note(item.TransactionID, l.count)
		l.count++
	}
	for i := range p.lanes {
		p.bytes += p.lanes[i].size + MaxNameBytes + int64(len(p.lanes[i].runs))*keyOpBytes
		if i > 0 {
			p.lanes[i].before = p.lanes[i-1].before + p.lanes[i-1].count
		}
	}
	if p.bytes > maxPushBytes {
		return fmt.Errorf("%w: a push of %d bytes exceeds %d", ErrBadRequest, p.bytes, maxPushBytes)
	}
	return nil
}

func checkNames(queue, partition string) error {
	switch {
	case queue == "":
		return fmt.Errorf("%w: the queue has no name", ErrBadRequest)
	case partition == "":
		return fmt.Errorf("%w: the partition has no name", ErrBadRequest)
	case len(queue)+len(partition) > MaxNameBytes:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrNameTooLong, len(queue)+len(partition), MaxNameBytes)
	}
	return nil
}

func (p *push) laneFor(i int) *lane {
	if len(p.laneOf) == 0 {
		return &p.lanes[0]
	}
	return &p.lanes[p.laneOf[i]]
}

// encode writes the blobs, so that the store's writer has only to place them.
func (p *push) encode() {
	var size int64
	for i := range p.lanes {
		size += p.lanes[i].size
	}
	if int64(cap(p.room)) < size {
		room := size
		if size <= maxPooledBlobs {
			room = 1 << bits.Len64(uint64(size-1)) // for the next one, too, which may be a little longer
		}
		p.room = make([]byte, room)
	}
	buf := p.room[:size]
	for i := range p.lanes {
		l := &p.lanes[i]
		l.buf, buf = buf[:0:l.size], buf[l.size:]
		l.follow = l.runs
	}
	for i := range p.items {
		p.laneFor(i).encode(&p.items[i], p.first)
	}
	for i := range p.lanes {
		p.lanes[i].seal()
		p.lanes[i].findRepeats()
	}
}

// encode adds a record. It takes no more room than sort counted.
func (l *lane) encode(item *PushItem, first messageID) {
	follows := l.follows()
	if l.given == 0 || len(l.buf)-l.from+recordBytes(item) > chunkBytes {
		l.seal()
		l.buf = appendBlobHeader(l.buf, first.plus(l.before+l.given))
		l.chunks = append(l.chunks, chunk{})
		follows = false
	}
	l.buf = appendRecord(l.buf, item, follows)
	c := &l.chunks[len(l.chunks)-1]
	c.count++
	c.bytes += int64(len(item.Payload))
	l.given++
}

// follows says whether the key of the record to be encoded is the next of the
// one before.
func (l *lane) follows() bool {
	for len(l.follow) > 0 && l.given >= l.follow[0].from+l.follow[0].count {
		l.follow = l.follow[1:]
	}
	return len(l.follow) > 0 && l.given > l.follow[0].from
}

func (l *lane) seal() {
	if len(l.buf) > l.from {
		data := l.buf[l.from:]
		l.blobs = append(l.blobs, store.Blob{Data: data, CRC: store.Checksum(data)})
	}
	l.from = len(l.buf)
}

// planPush gives every record its offset and writes the entry. It does not
// touch the items: their caller may have given up.
func (m *machine) planPush(p *push, now time.Time, d *store.Draft) error {
	if err := m.dedup(p, now.UnixMicro()); err != nil {
		return err
	}
	at := now.UnixMicro()
	for i := range p.lanes {
		l := &p.lanes[i]
		if l.stored == 0 {
			continue
		}
		q := m.queues[queueKey{p.tenant, l.queue}]
		if q == nil {
			q = m.newQueue(p.tenant, l.queue, now)
			q.plan.options = DefaultOptions()
			d.Meta = appendQueueOp(d.Meta, q, q.plan.options)
		}
		if l.part = q.plan.parts[l.partition]; l.part == nil {
			l.part = &partition{uid: m.takeUID(), name: l.partition, queue: q}
			m.addPartition(l.part)
			d.Meta = appendPartitionOp(d.Meta, l.part)
		}
		at = max(at, l.part.plan.time)
	}
	for i := range p.lanes {
		if l := &p.lanes[i]; l.stored > 0 {
			m.planLane(l, at, d)
		}
	}
	return nil
}

func (m *machine) planLane(l *lane, at int64, d *store.Draft) {
	l.base = l.part.plan.next
	l.part.plan.time = at
	for j := range l.chunks {
		c := &l.chunks[j]
		c.base, c.time, c.before = l.part.plan.next, at, l.part.plan.before
		l.part.plan.next += c.count
		l.part.plan.before += c.bytes
		d.Meta = appendChunkOp(d.Meta, opAppend, l.part.uid, c, len(d.Blobs)+j, 0)
	}
	d.Blobs = append(d.Blobs, l.blobs...)
	if len(l.kept) == 0 {
		return
	}
	d.Meta = appendDedupOp(d.Meta, l.part.uid, at, l.kept, l.base)
	for j := range l.kept {
		m.plannedKeys.add(l.part.uid, &l.kept[j], l.base+l.kept[j].from)
	}
}

// results appends the verdicts on the items.
func (p *push) results(into []PushResult) []PushResult {
	into = slices.Grow(into, len(p.items))
	for i := range p.lanes {
		p.lanes[i].given = 0
	}
	for i := range p.items {
		l := p.laneFor(i)
		status, offset, ordinal := l.result(l.given)
		into = append(into, PushResult{Status: status, Offset: offset, MessageID: p.first.plus(l.before + ordinal).bytes()})
		l.given++
	}
	return into
}

// result is the verdict on an item and its place in the run of message ids:
// those of stored records come first, in the order of their offsets.
func (l *lane) result(item int64) (status PushStatus, offset, ordinal int64) {
	if l.dups == nil {
		return Queued, l.base + item, item
	}
	place := l.place[item]
	switch d := l.dups[item]; {
	case d == isNew:
		return Queued, l.base + place, place
	case d <= inPush:
		return Duplicate, l.base + l.place[inPush-d], l.stored + item - place
	default:
		return Duplicate, d, l.stored + item - place
	}
}
