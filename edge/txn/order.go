package txn

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Kafka codes this package answers (kafka-surface §0).
const (
	OutOfOrderSequence int16 = 45
	DuplicateSequence  int16 = 46
	InvalidEpoch       int16 = 47
)

const (
	// rememberedBatches is how many stored batches of a stream are remembered:
	// as many as a client may have in flight (kafka-surface §7.3).
	rememberedBatches = 5
	// maxStreams bounds the streams of one connection; the least recently
	// written is forgotten and then behaves as never seen.
	maxStreams = 65536
)

// Stream is one producer's sequence into one partition. The topic is part of
// it because sequences start at 0 in every partition.
type Stream struct {
	ProducerID int64
	Topic      string
	Partition  int32
}

// Batch is the sequence range of one partition's batches in one request.
type Batch struct {
	Epoch int16
	First int32 // sequence of the first record
	Last  int32 // of the last one; First−1 when there is none
}

// Order judges the sequences of idempotent batches on ONE connection (B3). What
// another connection did may be newer than what this one knows, so nothing is
// shared between connections: the log itself decides about resends.
//
// It is used by one goroutine at a time.
type Order struct {
	room    Room
	streams *simplelru.LRU[tenancy.Key[Stream], *stream]
}

// Room bounds the streams of all connections.
type Room interface {
	Take() bool
	Give(n int)
}

// stream is one stream's state. Sequences from floor up to stored are in the
// log; those up to next were admitted and are under way.
type stream struct {
	epoch  int16
	floor  int32
	stored int32
	next   int32
	failed int16 // code for followers of a failed batch; 0: none failed
	recent [rememberedBatches]kept
	count  int
}

type kept struct {
	first, last int32
	offset      int64
}

// NewOrder makes the order of one connection.
func NewOrder(room Room) *Order { return &Order{room: room} }

// Decision is what to do with a batch.
type Decision uint8

// Decisions of Admit.
const (
	Push      Decision = iota // push it, then call Stored or Failed with its Ticket
	Duplicate                 // stored on this connection before: answer Offset, push nothing
	Refuse                    // answer Code, push nothing
)

// Ticket names an admitted batch until its outcome is known.
type Ticket struct {
	key   tenancy.Key[Stream]
	batch Batch
	held  bool // the stream is tracked
}

// Verdict is a Decision with its details.
type Verdict struct {
	Decision Decision
	Ticket   Ticket
	Offset   int64
	Code     int16
}

// Admit judges a batch before it is pushed. An unknown stream is always
// accepted: the connection may have been elsewhere before.
func (o *Order) Admit(key tenancy.Key[Stream], b Batch) Verdict {
	t := Ticket{key: key, batch: b}
	s, ok := o.get(key)
	if !ok {
		t.held = o.add(key, b)
		return Verdict{Ticket: t}
	}
	t.held = true
	switch {
	case b.Epoch < s.epoch:
		return Verdict{Decision: Refuse, Code: InvalidEpoch}
	case b.Epoch > s.epoch && b.First != 0:
		return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
	case b.Epoch > s.epoch:
		*s = stream{epoch: b.Epoch}
	}
	switch {
	case b.First == s.next:
		s.next = after(b.Last)
		return Verdict{Ticket: t}
	case s.knows(b):
		return Verdict{Decision: Duplicate, Offset: s.offsetOf(b)}
	case ahead(s.next, b.First) && s.failed != 0:
		return Verdict{Decision: Refuse, Code: s.failed}
	case ahead(s.next, b.First):
		return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
	case !ahead(b.First, s.floor) && !ahead(s.stored, after(b.Last)):
		return Verdict{Decision: Refuse, Code: DuplicateSequence}
	case ahead(b.First, s.floor):
		// From before this connection's first batch: whether it was stored is
		// not known here, so the log decides and the order stands.
		t.held = false
		return Verdict{Ticket: t}
	}
	return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
}

// Recheck judges an admitted batch again just before it is sent on its own:
// since Admit its predecessor may have failed. A zero code means send.
func (o *Order) Recheck(t Ticket) int16 {
	s, ok := o.tracked(t)
	if !ok || t.batch.First == s.stored {
		return 0
	}
	if s.failed != 0 {
		return s.failed
	}
	return OutOfOrderSequence
}

// Stored says that a batch is in the log at offset (−1: unknown).
func (o *Order) Stored(t Ticket, offset int64) {
	s, ok := o.tracked(t)
	if !ok || t.batch.First != s.stored {
		return
	}
	s.stored = after(t.batch.Last)
	s.failed = 0
	if t.batch.Last != before(t.batch.First) {
		s.remember(kept{first: t.batch.First, last: t.batch.Last, offset: offset})
	}
}

// Failed says that a batch was not stored, or that nobody knows. Its followers
// on this connection get code: the same retriable code, or OutOfOrderSequence
// after a permanent refusal, as Apache Kafka does.
func (o *Order) Failed(t Ticket, code int16) {
	s, ok := o.tracked(t)
	if !ok {
		return
	}
	if ahead(t.batch.First, s.next) {
		s.next = t.batch.First
	}
	if s.failed == 0 || t.batch.First == s.stored {
		s.failed = code
	}
}

// Close forgets everything and gives its room back.
func (o *Order) Close() {
	if o.streams == nil {
		return
	}
	o.room.Give(o.streams.Len())
	o.streams = nil
}

func (o *Order) get(key tenancy.Key[Stream]) (*stream, bool) {
	if o.streams == nil {
		return nil, false
	}
	return o.streams.Get(key)
}

// add starts a stream at its first batch, or reports that there is no room.
func (o *Order) add(key tenancy.Key[Stream], b Batch) bool {
	if o.streams == nil {
		o.streams = newStreams()
	}
	full := o.streams.Len() >= maxStreams
	if full || !o.room.Take() {
		if _, _, ok := o.streams.RemoveOldest(); !ok {
			return false
		}
	}
	o.streams.Add(key, &stream{epoch: b.Epoch, floor: b.First, stored: b.First, next: after(b.Last)})
	return true
}

func newStreams() *simplelru.LRU[tenancy.Key[Stream], *stream] {
	c, err := simplelru.NewLRU[tenancy.Key[Stream], *stream](maxStreams+1, nil)
	if err != nil { // only a size below 1 errs
		panic(err)
	}
	return c
}

// tracked returns the stream of a ticket if it is still the same one.
func (o *Order) tracked(t Ticket) (*stream, bool) {
	if !t.held {
		return nil, false
	}
	s, ok := o.get(t.key)
	return s, ok && s.epoch == t.batch.Epoch
}

func (s *stream) remember(k kept) {
	s.recent[s.count%rememberedBatches] = k
	s.count++
}

func (s *stream) knows(b Batch) bool {
	_, ok := s.find(b)
	return ok
}

func (s *stream) offsetOf(b Batch) int64 {
	k, _ := s.find(b)
	return k.offset
}

// find looks for an exact resend: same first and last sequence.
func (s *stream) find(b Batch) (kept, bool) {
	for _, k := range s.recent[:min(s.count, rememberedBatches)] {
		if k.first == b.First && k.last == b.Last {
			return k, true
		}
	}
	return kept{}, false
}

// after is the next sequence; sequences wrap from 2³¹−1 to 0.
func after(seq int32) int32 { return (seq + 1) & (1<<31 - 1) }

// before is the previous sequence.
func before(seq int32) int32 { return (seq - 1) & (1<<31 - 1) }

// ahead reports whether b lies ahead of a, by the shorter way round.
func ahead(a, b int32) bool {
	d := (b - a) & (1<<31 - 1)
	return d != 0 && d < 1<<30
}
