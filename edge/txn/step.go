package txn

import (
	"slices"
	"time"
)

// Outcome is what a request of a transaction comes to. What it is called on the
// wire is each API's own affair.
type Outcome uint8

// Outcomes.
const (
	OK           Outcome = iota
	Unavailable          // the store gave no answer: the outcome is open, ask again
	Busy                 // somebody else is at it: ask again
	NoRoom               // a ceiling of the process is reached: ask again
	TooMany              // more than one call carries
	TooLarge             // the records are more than a transaction may have
	Unknown              // there is no such transactional id
	OtherID              // it belongs to another producer id
	Fenced               // a newer epoch has it
	Ahead                // the epoch is one that was never given
	Invalid              // the transaction does not allow it
	TimedOut             // the transaction ran out of time: only an abort goes
	Gone                 // an earlier owner lost the transaction: only an abort goes
	OutOfOrder           // a batch between is missing
	AlreadyThere         // a batch that is not remembered came again
)

// Reply is the answer to an event.
type Reply struct {
	Outcome  Outcome
	Producer Producer // of an InitProducerId
	Fit      int      // partitions or offsets that were taken, from the first on
	Err      error    // of Unavailable: what the store said
}

// event is what can happen to a stage.
type event interface{ isEvent() }

// A request of a producer. Token is a fresh write id, for the write it may need.
type request struct {
	Producer Producer
	Token    string
	Took     int64 // memory taken for it beforehand
	NoRoom   bool  // there was none
}

type (
	// initProducer asks for a producer: Fresh where a new one is needed. The
	// request's producer is the one it names, or Nobody.
	initProducer struct {
		request
		Timeout time.Duration
		Fresh   int64
	}
	addPartitions struct {
		request
		Partitions []TopicPartition
	}
	addGroup struct {
		request
		Group Group
		Ops   int // key-value operations that one call takes
	}
	stageRecords struct {
		request
		TopicPartition
		First, Last int32 // sequences
		Sequenced   bool
		Chunk       Chunk
		Bytes       int64
		Never       bool // there could never be room for it
	}
	stageOffsets struct {
		request
		Group   Group
		Offsets []Offset
		Ops     int
	}
	endTxn struct {
		request
		Commit bool
	}
	// closed: the session's connection has ended.
	closed struct{}
	// tick: time has passed.
	tick struct{}

	// rowRead and rowWritten answer the effects of these names.
	rowRead struct {
		Value   []byte // nil: there is no row
		Version int64
		Err     error
	}
	rowWritten struct {
		Applied bool
		Version int64  // the new one, or the winner's
		Value   []byte // the winner's
		Err     error
	}
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic string
	Index int32
}

func (initProducer) isEvent()  {}
func (addPartitions) isEvent() {}
func (addGroup) isEvent()      {}
func (stageRecords) isEvent()  {}
func (stageOffsets) isEvent()  {}
func (endTxn) isEvent()        {}
func (closed) isEvent()        {}
func (tick) isEvent()          {}
func (rowRead) isEvent()       {}
func (rowWritten) isEvent()    {}

// effect is what the loop has to do. At most one of a step's effects is a call
// (readRow, writeRow), whose answer is the next event; else there is a reply.
type effect interface{ isEffect() }

type (
	reply   Reply
	readRow struct{}
	// writeRow writes the row where its version is still Expect (0: there is
	// none), and with it, in one call, what the transaction holds.
	writeRow struct {
		Row    Row
		Expect int64
		Bundle bool
	}
	// free gives memory back.
	free struct{ Bytes int64 }
	// forget ends the stage: what is to be known is in the row.
	forget struct{}
)

func (reply) isEffect()    {}
func (readRow) isEffect()  {}
func (writeRow) isEffect() {}
func (free) isEffect()     {}
func (forget) isEffect()   {}

// doing is a request that waits for a call.
type doing struct {
	event  event // what to do when the row is known
	why    write
	row    Row // being written
	rounds int // calls so far
}

// write says what a row is written for.
type write uint8

const (
	noWrite write = iota
	forInit
	forOpen   // the mark of a transaction that begins
	forLost   // of one that an earlier owner had
	forCommit // with all that is staged
	forAbort
)

// maxRounds bounds the calls of one request: beyond them somebody else writes
// the row at the same time.
const maxRounds = 6

// machine moves stages.
type machine struct{ limits Limits }

// step moves a stage by one event.
func (m machine) step(s *Stage, now time.Time, ev event) []effect {
	switch ev := ev.(type) {
	case closed, tick:
		return m.time(s, now, ev)
	case rowRead:
		return m.read(s, now, ev)
	case rowWritten:
		return m.written(s, now, ev)
	}
	out := s.expire(now)
	s.doing = doing{event: ev}
	return append(out, m.request(s, now, ev)...)
}

// request dispatches a request, for the first time or again once the row is
// known.
func (m machine) request(s *Stage, now time.Time, ev event) []effect {
	if ev, ok := ev.(initProducer); ok {
		return m.initProducer(s, ev)
	}
	if !s.Known {
		return s.call(readRow{})
	}
	req := requestOf(ev)
	if v := s.check(req.Producer); v != OK {
		if s.doing.rounds == 0 && v != Fenced { // the row may have gone on without this process
			s.Known = false
			return s.call(readRow{})
		}
		return s.refuse(v, req.Took)
	}
	s.Orphaned = time.Time{}
	switch ev := ev.(type) {
	case addPartitions:
		return m.addPartitions(s, now, ev)
	case addGroup:
		return m.addGroup(s, now, ev)
	case stageRecords:
		return m.stageRecords(s, ev)
	case stageOffsets:
		return m.stageOffsets(s, ev)
	case endTxn:
		return m.endTxn(s, ev)
	}
	panic("txn: an event that is no request")
}

func requestOf(ev event) request {
	switch ev := ev.(type) {
	case initProducer:
		return ev.request
	case addPartitions:
		return ev.request
	case addGroup:
		return ev.request
	case stageRecords:
		return ev.request
	case stageOffsets:
		return ev.request
	case endTxn:
		return ev.request
	}
	return request{Producer: Nobody()}
}

// check compares the producer of a request with the stage's.
func (s *Stage) check(p Producer) Outcome {
	switch {
	case p.ID != s.Producer.ID:
		return OtherID
	case p.Epoch < s.Producer.Epoch:
		return Fenced
	case p.Epoch > s.Producer.Epoch:
		return Ahead
	}
	return OK
}

// refused is the verdict of a phase in which only an abort goes.
func (p Phase) refused() Outcome {
	switch p {
	case Expired:
		return TimedOut
	case Lost:
		return Gone
	case Committing:
		return Busy
	}
	return Invalid
}

// call is one more call for the request under way.
func (s *Stage) call(e effect) []effect {
	if s.doing.rounds >= maxRounds {
		took := requestOf(s.doing.event).Took
		s.settled(s.Version)
		s.Known = false
		return s.refuse(Busy, took)
	}
	s.doing.rounds++
	return []effect{e}
}

// put writes the row for a reason.
func (s *Stage) put(why write, row Row, expect int64) []effect {
	s.doing.why, s.doing.row = why, row
	return s.call(writeRow{Row: row, Expect: expect, Bundle: why == forCommit && len(s.Chunks)+len(s.Offsets) > 0})
}

// refuse answers a request that changes nothing.
func (s *Stage) refuse(v Outcome, took int64) []effect {
	return s.answer(Reply{Outcome: v}, took)
}

// answer ends a request; back is memory that it does not need.
func (s *Stage) answer(r Reply, back int64) []effect {
	s.doing = doing{}
	var out []effect
	if back > 0 {
		out = append(out, free{back})
	}
	return append(out, reply(r))
}

// settleMemory gives back what the stage does not hold any more.
func (s *Stage) settleMemory() []effect {
	n := s.Held - s.size()
	if n <= 0 {
		return nil
	}
	s.Held -= n
	return []effect{free{n}}
}

// expire ends a transaction whose time has run out. It stays abortable: were it
// empty, a late commit would succeed with nothing written.
func (s *Stage) expire(now time.Time) []effect {
	if s.Phase != Open && s.Phase != Poisoned || now.Before(s.Deadline) {
		return nil
	}
	s.ends(timedOut)
	commit := s.Commit // its outcome may still be asked for
	s.drop()
	s.Phase, s.Commit = Expired, commit
	return s.settleMemory()
}

// time handles what no client asked for.
func (m machine) time(s *Stage, now time.Time, ev event) []effect {
	out := s.expire(now)
	if _, ok := ev.(closed); ok && s.Orphaned.IsZero() {
		s.Orphaned = now
	}
	if !s.Orphaned.IsZero() && s.Phase != Open && s.Phase != Committing && !now.Before(s.Orphaned.Add(s.Timeout)) {
		return append(out, forget{})
	}
	return out
}

// own reports a write of this stage whose answer was lost.
func (s *Stage) own(id string) bool { return id != "" && slices.Contains(s.Unsure, id) }

// unsure remembers a write whose answer was lost.
func (s *Stage) unsure(id string) {
	const most = 8
	if s.own(id) {
		return
	}
	if len(s.Unsure) == most {
		s.Unsure = slices.Delete(s.Unsure, 0, 1)
	}
	s.Unsure = append(s.Unsure, id)
}
