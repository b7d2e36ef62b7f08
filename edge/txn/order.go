package txn

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Kafka codes this package answers (kafka-surface §0).
const (
	RequestTimedOut    int16 = 7
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
// log; those up to next were admitted and are under way, or were stored ahead
// of a batch that failed. What lies before floor came up after the first batch
// seen here: of it only the first failure is known.
type stream struct {
	epoch    int16
	floor    int32
	stored   int32
	next     int32
	failed   int16 // code for followers of a failed batch; 0: none failed
	failedAt int32 // the first sequence that failed, when failed is set
	early    int16 // the same for batches before floor
	earlyAt  int32
	pending  []*attempt
	recent   [rememberedBatches]kept
	count    int
}

// attempt is one admitted batch until its outcome is known.
type attempt struct {
	batch Batch
	dead  int16 // code where a batch before it has failed since; 0: none has
}

type kept struct {
	first, last int32
	offset      int64
}

// farBehind is how far the floor stays behind what is stored: sequences compare
// by the shorter way round, which must stay the way they went.
const farBehind = 1 << 29

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

// Ticket names an admitted batch until its outcome is known. One of a batch
// that is not tracked names nothing.
type Ticket struct {
	stream  *stream
	attempt *attempt
}

// Verdict is a Decision with its details.
type Verdict struct {
	Decision Decision
	Ticket   Ticket
	Offset   int64
	Code     int16
}

// Admit judges a batch before it is pushed. An unknown stream is always
// accepted: the connection may have been elsewhere before. window says that the
// log knows resends by their keys: what has been stored before is then pushed,
// and it decides.
func (o *Order) Admit(key tenancy.Key[Stream], b Batch, window bool) Verdict {
	s, ok := o.get(key)
	if !ok {
		return Verdict{Ticket: o.add(key, b)}
	}
	switch {
	case b.Epoch < s.epoch:
		return Verdict{Decision: Refuse, Code: InvalidEpoch}
	case b.Epoch > s.epoch && b.First != 0:
		return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
	case b.Epoch > s.epoch:
		*s = stream{epoch: b.Epoch}
	}
	switch {
	case s.knows(b):
		return Verdict{Decision: Duplicate, Offset: s.offsetOf(b)}
	case s.underWay(b):
		// Sent twice before the first was answered: its outcome is not known yet,
		// and the next resend will be told.
		return Verdict{Decision: Refuse, Code: RequestTimedOut}
	case s.early != 0 && ahead(s.earlyAt, b.First) && !s.again(s.earlyAt):
		return Verdict{Decision: Refuse, Code: s.early}
	case b.First == s.next:
		return Verdict{Ticket: s.admit(b)}
	case ahead(s.next, b.First) && s.failed != 0:
		return Verdict{Decision: Refuse, Code: s.failed}
	case ahead(s.next, b.First):
		return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
	case ahead(b.First, s.floor), window:
		// From before this connection's first batch, whether it was stored is not
		// known here; from after it, the log knows better. The order stands.
		return Verdict{Ticket: s.admit(b)}
	case !ahead(s.stored, after(b.Last)):
		return Verdict{Decision: Refuse, Code: DuplicateSequence}
	}
	return Verdict{Decision: Refuse, Code: OutOfOrderSequence}
}

// Recheck judges an admitted batch again just before it is sent: since Admit
// one before it may have failed. A zero code means send. Batches that go out in
// one call with those before them are in order.
func (o *Order) Recheck(t Ticket) int16 {
	if t.attempt == nil {
		return 0
	}
	return t.attempt.dead
}

// Stored says that a batch is in the log at offset (−1: unknown).
func (o *Order) Stored(t Ticket, offset int64) {
	if _, ok := t.conclude(); !ok {
		return
	}
	s, b := t.stream, t.attempt.batch
	if b.Last == before(b.First) {
		return // it held nothing
	}
	if !s.knows(b) { // an attempt that was thought dead may have been first
		s.remember(kept{first: b.First, last: b.Last, offset: offset})
	}
	if s.early != 0 && b.has(s.earlyAt) {
		s.early = 0
	}
	if b.has(s.stored) {
		s.advance(after(b.Last))
	}
	s.next = s.skip(s.next)
}

// Failed says that a batch was not stored, or that nobody knows. Its followers
// on this connection get code: the same retriable code, or OutOfOrderSequence
// after a permanent refusal, as Apache Kafka does.
func (o *Order) Failed(t Ticket, code int16) {
	behind, ok := t.conclude()
	if !ok || t.attempt.dead != 0 {
		return // those behind a dead one were told when it died
	}
	s, b := t.stream, t.attempt.batch
	if s.holds(b) {
		return // only the answer is missing
	}
	for _, a := range behind {
		a.dead = code
	}
	if ahead(b.First, s.floor) && (s.early == 0 || !ahead(s.earlyAt, b.First)) {
		s.early, s.earlyAt = code, b.First
	}
	first, lost := s.firstLost(b, behind)
	if !lost {
		return
	}
	if ahead(first, s.next) {
		s.next = s.skip(first)
	}
	if s.failed == 0 || !ahead(s.failedAt, first) {
		s.failed, s.failedAt = code, first
	}
}

// firstLost is the first sequence from floor on that a failure keeps out of the
// log: the failed batch's own, or, where that is from before floor, that of the
// first of those it took along. False means that all of them are in the log.
func (s *stream) firstLost(b Batch, behind []*attempt) (first int32, lost bool) {
	consider := func(b Batch) {
		if !ahead(s.stored, after(b.Last)) {
			return
		}
		from := b.First
		if ahead(from, s.stored) {
			from = s.stored // what lies before is in the log
		}
		if !lost || ahead(from, first) {
			first, lost = from, true
		}
	}
	consider(b)
	for _, a := range behind {
		consider(a.batch)
	}
	return first, lost
}

// Forget drops a stream: its next batch is judged as a connection's first one is.
func (o *Order) Forget(key tenancy.Key[Stream]) {
	if o.streams != nil && o.streams.Remove(key) {
		o.room.Give(1)
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

// add starts a stream at its first batch. Where there is no room the stream
// least recently written makes some, unless even that one is under way: then
// the batch goes out untracked.
func (o *Order) add(key tenancy.Key[Stream], b Batch) Ticket {
	if o.streams == nil {
		o.streams = newStreams()
	}
	full := o.streams.Len() >= maxStreams
	if full || !o.room.Take() {
		_, oldest, ok := o.streams.GetOldest()
		if !ok || len(oldest.pending) > 0 {
			return Ticket{}
		}
		o.streams.RemoveOldest()
	}
	s := &stream{epoch: b.Epoch, floor: b.First, stored: b.First, next: b.First}
	o.streams.Add(key, s)
	return s.admit(b)
}

func newStreams() *simplelru.LRU[tenancy.Key[Stream], *stream] {
	c, err := simplelru.NewLRU[tenancy.Key[Stream], *stream](maxStreams+1, nil)
	if err != nil { // only a size below 1 errs
		panic(err)
	}
	return c
}

// admit puts a batch under way. One that was pushed before takes nothing further.
func (s *stream) admit(b Batch) Ticket {
	a := &attempt{batch: b}
	s.pending = append(s.pending, a)
	if b.First == s.next || ahead(s.next, after(b.Last)) {
		s.next = s.skip(after(b.Last))
	}
	return Ticket{stream: s, attempt: a}
}

// holds reports whether all of a batch is known to be in the log.
func (s *stream) holds(b Batch) bool {
	return !ahead(b.First, s.floor) && ahead(b.First, s.stored) && !ahead(s.stored, after(b.Last))
}

// has reports whether a sequence is one of the batch's.
func (b Batch) has(seq int32) bool {
	return !ahead(seq, b.First) && ahead(seq, after(b.Last))
}

// conclude takes the attempt out of those under way and returns those that were
// admitted after it. False means that there is nothing to know about it: it was
// not tracked, it has an outcome, or its producer has gone on to another epoch.
func (t Ticket) conclude() (behind []*attempt, ok bool) {
	if t.stream == nil {
		return nil, false
	}
	s := t.stream
	i := slices.Index(s.pending, t.attempt)
	switch {
	case i < 0:
		return nil, false
	case i == 0: // in order, as nearly always: nothing is moved
		s.pending = s.pending[1:]
	default:
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	return s.pending[i:], true
}

// advance moves the end of what is stored without a gap.
func (s *stream) advance(to int32) {
	s.stored = s.skip(to)
	if s.failed != 0 && ahead(s.failedAt, s.stored) {
		s.failed = 0 // the failed batch is in the log now
	}
	if ahead(s.next, s.stored) {
		s.next = s.stored
	}
	if floor := (s.stored - farBehind) & maxSequence; ahead(s.floor, floor) {
		s.floor = floor
	}
}

// skip goes over batches that were stored ahead of one that failed.
func (s *stream) skip(seq int32) int32 {
	for range rememberedBatches {
		i := slices.IndexFunc(s.remembered(), func(k kept) bool { return k.first == seq })
		if i < 0 {
			break
		}
		seq = after(s.recent[i].last)
	}
	return seq
}

func (s *stream) remembered() []kept { return s.recent[:min(s.count, rememberedBatches)] }

func (s *stream) remember(k kept) {
	s.recent[s.count%rememberedBatches] = k
	s.count++
}

// underWay reports whether this very batch is on its way and has no outcome yet.
func (s *stream) underWay(b Batch) bool {
	return slices.ContainsFunc(s.pending, func(a *attempt) bool { return a.batch == b && a.dead == 0 })
}

// again reports whether a batch with a sequence that failed is on its way once
// more.
func (s *stream) again(seq int32) bool {
	return slices.ContainsFunc(s.pending, func(a *attempt) bool { return a.dead == 0 && a.batch.has(seq) })
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
	for _, k := range s.remembered() {
		if k.first == b.First && k.last == b.Last {
			return k, true
		}
	}
	return kept{}, false
}

// maxSequence is the last sequence; its successor is 0.
const maxSequence = 1<<31 - 1

// after is the next sequence.
func after(seq int32) int32 { return (seq + 1) & maxSequence }

// before is the previous sequence.
func before(seq int32) int32 { return (seq - 1) & maxSequence }

// ahead reports whether b lies ahead of a, by the shorter way round.
func ahead(a, b int32) bool {
	d := (b - a) & maxSequence
	return d != 0 && d < 1<<30
}
