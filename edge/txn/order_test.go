package txn_test

import (
	"math"
	"testing"

	"github.com/queen-mq/queen-edge/edge/txn"
)

const (
	timedOut     int16 = 7 // a retriable code
	notLeader    int16 = 6 // another
	last         int32 = math.MaxInt32
	outOfOrder         = txn.OutOfOrderSequence
	beenBefore         = txn.DuplicateSequence
	staleEpoch         = txn.InvalidEpoch
	unknownPlace int64 = -1
)

func TestOrderFollowsOn(t *testing.T) {
	s := newOne(t)
	s.store(batch(0, 9), 100)
	s.store(batch(10, 10), 110)
	s.refused(batch(12, 15), outOfOrder)
	s.store(batch(11, 20), 111)
	s.duplicate(batch(0, 9), 100)
	s.duplicate(batch(11, 20), 111)
}

// The connection may have been elsewhere before: the first batch sets the order,
// whatever its sequence and epoch.
func TestOrderStartsAnywhere(t *testing.T) {
	for _, b := range []txn.Batch{batch(0, 0), batch(77, 80), inEpoch(3, 5, 9), batch(last, last), batch(last-1, 2)} {
		s := newOne(t)
		s.store(b, 1)
		s.store(txn.Batch{Epoch: b.Epoch, First: (b.Last + 1) & last, Last: (b.Last + 1) & last}, 2)
	}
}

// A client that sends a batch again before the first was answered is told to ask
// later, never that it lost something; later it is told the offset.
func TestOrderResendOfABatchUnderWay(t *testing.T) {
	s := newOne(t)
	tk := s.push(batch(111, 149))
	s.o.Stored(s.push(batch(100, 110)), 1)
	s.refused(batch(111, 149), timedOut)
	s.o.Stored(tk, 7)
	s.duplicate(batch(111, 149), 7)
}

// What lies before the first batch seen here is not known: the log decides. It
// is never answered as stored, nor as out of order.
func TestOrderBeforeItsFirstBatch(t *testing.T) {
	s := newOne(t)
	s.store(batch(50, 59), 500)
	for _, b := range []txn.Batch{batch(40, 49), batch(0, 9), batch(45, 54), batch(49, 49)} {
		tk := s.push(b)
		s.checked(tk, 0)
		s.o.Failed(tk, timedOut)
		s.o.Stored(s.push(b), 1)
	}
	s.store(batch(60, 60), 600)
}

func TestOrderRemembersFiveBatches(t *testing.T) {
	s := newOne(t)
	for i := range int32(7) {
		s.store(batch(i*10, i*10+9), int64(i))
	}
	for i := int32(2); i < 7; i++ {
		s.duplicate(batch(i*10, i*10+9), int64(i))
	}
	// Older ones were stored here: not as a success with a made-up offset.
	s.refused(batch(0, 9), beenBefore)
	s.refused(batch(10, 19), beenBefore)
	// Cut otherwise, they are not exact.
	s.refused(batch(60, 65), beenBefore)
	s.refused(batch(55, 69), beenBefore)
	// A tail that was not stored must not be answered as if it were.
	s.refused(batch(60, 75), outOfOrder)
}

// Where the log knows resends, it decides about all that was stored before: 46 is
// never said, and a tail that is new is not lost.
func TestOrderLogDecidesAboutOldBatches(t *testing.T) {
	s := inWindow(t)
	for i := range int32(7) {
		s.store(batch(i*10, i*10+9), int64(i))
	}
	s.duplicate(batch(60, 69), 6)
	for _, b := range []txn.Batch{batch(0, 9), batch(12, 13), batch(55, 69)} {
		tk := s.push(b)
		s.checked(tk, 0)
		s.o.Failed(tk, timedOut) // only its answer is missing: nobody waits for it
		s.store(b, unknownPlace)
	}
	s.refused(batch(71, 79), outOfOrder)
	tk := s.push(batch(65, 75)) // its tail is new
	s.o.Failed(tk, timedOut)
	s.refused(batch(76, 79), timedOut)
	s.store(batch(65, 75), unknownPlace)
	s.store(batch(76, 79), 76)
}

// A batch from before the first one seen here that fails holds up all that
// follows it, as any other does.
func TestOrderFollowersOfAnEarlyFailure(t *testing.T) {
	for _, code := range []int16{timedOut, outOfOrder} {
		s := newOne(t)
		s.store(batch(40, 49), 400)
		first := s.push(batch(10, 19))
		second := s.push(batch(20, 29))
		s.o.Failed(first, code)
		s.checked(second, code)
		s.o.Failed(second, code)
		s.refused(batch(30, 39), code)
		s.refused(batch(50, 59), code)
		s.duplicate(batch(40, 49), 400)
		first = s.push(batch(10, 19))
		second = s.push(batch(20, 29)) // behind the resend, in one call
		s.checked(second, 0)
		s.o.Stored(first, 410)
		s.o.Stored(second, 420)
		s.store(batch(30, 39), 430)
		s.store(batch(50, 59), 440)
	}
}

// An early failure may take a later batch along. What comes after that one waits
// for it, even while the early batch is on its way again.
func TestOrderEarlyFailureTakesALaterBatchAlong(t *testing.T) {
	s := newOne(t)
	first := s.push(batch(40, 49))
	early := s.push(batch(30, 39))
	taken := s.push(batch(50, 59))
	s.o.Stored(first, 400)
	s.o.Failed(early, timedOut)
	s.checked(taken, timedOut)
	s.o.Failed(taken, timedOut)
	early = s.push(batch(30, 39))
	s.refused(batch(60, 69), timedOut)
	s.o.Stored(early, 390)
	s.refused(batch(60, 69), timedOut)
	s.store(batch(50, 59), 410)
	s.store(batch(60, 69), 420)
}

func TestOrderDuplicateWithoutAnOffset(t *testing.T) {
	s := newOne(t)
	s.store(batch(0, 9), unknownPlace)
	s.duplicate(batch(0, 9), unknownPlace)
}

func TestOrderWraps(t *testing.T) {
	s := newOne(t)
	s.store(batch(last-5, last-1), 10)
	s.store(batch(last, 3), 15)
	s.duplicate(batch(last, 3), 15)
	s.refused(batch(5, 6), outOfOrder)
	s.store(batch(4, 8), 20)
	s.duplicate(batch(last-5, last-1), 10)
	s.refused(batch(last-5, last), beenBefore)
	s.fail(batch(9, 9), timedOut)
	s.refused(batch(10, 10), timedOut)
}

// A stream may run past half the sequence space on one connection: what was
// stored there stays behind.
func TestOrderRunsAroundTheWholeSpace(t *testing.T) {
	s := newOne(t)
	const step = 1 << 27
	first := int32(0)
	for range 40 {
		end := (first + step - 1) & last
		s.store(batch(first, end), 1)
		s.duplicate(batch(first, end), 1)
		s.refused(batch(first, first), beenBefore)
		first = (end + 1) & last
		s.refused(batch((first+1)&last, (first+1)&last), outOfOrder)
	}
}

func TestOrderEpochs(t *testing.T) {
	s := newOne(t)
	s.store(inEpoch(1, 0, 9), 1)
	s.refused(inEpoch(0, 0, 9), staleEpoch)
	s.refused(inEpoch(2, 10, 19), outOfOrder) // a higher epoch starts at 0
	s.store(inEpoch(1, 10, 19), 2)            // and its refusal changed nothing
	s.store(inEpoch(2, 0, 4), 3)
	s.refused(inEpoch(1, 20, 29), staleEpoch)
	s.duplicate(inEpoch(2, 0, 4), 3)
	// What was remembered of the other epoch does not answer this one.
	s.refused(inEpoch(2, 0, 9), outOfOrder)
	s.store(inEpoch(2, 5, 9), 4)
}

// Outcomes of an epoch that is over say nothing about the next one.
func TestOrderLateOutcomesOfAnEpoch(t *testing.T) {
	s := newOne(t)
	failed, stored := s.push(inEpoch(0, 0, 9)), s.push(inEpoch(0, 10, 19))
	next := s.push(inEpoch(1, 0, 9))
	s.o.Failed(failed, timedOut)
	s.o.Stored(stored, 5)
	s.checked(next, 0)
	s.o.Stored(next, 7)
	s.store(inEpoch(1, 10, 19), 8)
	s.duplicate(inEpoch(1, 0, 9), 7)
}

// A batch never goes after one that failed; it gets the same code, so that both
// are sent again, and goes when that one is in the log.
func TestOrderFollowersOfAFailure(t *testing.T) {
	for _, code := range []int16{timedOut, notLeader, outOfOrder} {
		s := newOne(t)
		s.store(batch(0, 9), 0)
		s.fail(batch(10, 19), code)
		s.refused(batch(20, 29), code)
		s.refused(batch(30, 39), code)
		s.duplicate(batch(0, 9), 0)
		s.fail(batch(10, 19), code) // again
		s.refused(batch(20, 29), code)
		s.store(batch(10, 19), 10)
		s.refused(batch(30, 39), outOfOrder) // a gap without a failure
		s.store(batch(20, 29), 20)
		s.store(batch(30, 39), 30)
	}
}

// The last failure of the expected batch is what its followers are told.
func TestOrderTellsTheLatestCode(t *testing.T) {
	s := newOne(t)
	s.fail(batch(0, 9), timedOut)
	s.fail(batch(0, 9), outOfOrder)
	s.refused(batch(10, 19), outOfOrder)
	s.fail(batch(0, 9), notLeader)
	s.refused(batch(10, 19), notLeader)
}

// A client that gives a batch up and fills its place (sequences are taken again)
// goes on.
func TestOrderPlaceOfAFailureIsTakenAgain(t *testing.T) {
	s := newOne(t)
	s.fail(batch(0, 9), outOfOrder)
	s.refused(batch(10, 14), outOfOrder)
	s.store(batch(0, 4), 1)
	s.store(batch(5, 9), 2)
}

// Merged frames: several batches of a stream are admitted before any outcome.
func TestOrderMerged(t *testing.T) {
	s := newOne(t)
	a, b, c := s.push(batch(0, 9)), s.push(batch(10, 19)), s.push(batch(20, 29))
	for _, tk := range []txn.Ticket{a, b, c} {
		s.checked(tk, 0) // they go in one call, in this order
	}
	s.o.Stored(a, 0)
	s.checked(b, 0)
	s.o.Stored(b, 10)
	s.o.Stored(c, 20)
	s.store(batch(30, 30), 30)
	s.duplicate(batch(0, 9), 0)
}

// One of them is refused when they are sent on their own: those behind it must
// not go, those before it are not touched.
func TestOrderMergedAndCutApart(t *testing.T) {
	for _, code := range []int16{timedOut, outOfOrder} {
		s := newOne(t)
		a, b, c := s.push(batch(0, 9)), s.push(batch(10, 19)), s.push(batch(20, 29))
		s.o.Failed(b, code)
		s.checked(a, 0)
		s.checked(c, code)
		s.o.Failed(c, code)
		s.o.Stored(a, 0)
		// a's success does not hide that b failed.
		s.refused(batch(20, 29), code)
		s.refused(batch(30, 39), code)
		s.store(batch(10, 19), 10)
		s.store(batch(20, 29), 20)
	}
}

// A call may store a later batch and not the one before it. The client sends the
// failed one again and never the stored one: the order must go on after both.
func TestOrderStoredAheadOfAFailure(t *testing.T) {
	s := newOne(t)
	a, b, c := s.push(batch(0, 9)), s.push(batch(10, 19)), s.push(batch(20, 29))
	s.o.Failed(a, timedOut)
	s.o.Stored(b, 5)
	s.o.Stored(c, 15)
	s.duplicate(batch(10, 19), 5)
	s.refused(batch(30, 39), timedOut)
	s.store(batch(0, 9), 25)
	s.store(batch(30, 39), 35)
	s.refused(batch(10, 18), beenBefore)
}

// A ticket has one outcome, and one that died with an earlier batch does not
// undo what came after.
func TestOrderOutcomesAreFinal(t *testing.T) {
	s := newOne(t)
	a, b := s.push(batch(0, 9)), s.push(batch(10, 19))
	s.o.Failed(a, timedOut)
	s.o.Stored(a, 99)
	s.store(batch(0, 9), 1)
	again := s.push(batch(10, 19))
	s.o.Failed(b, notLeader)
	s.checked(again, 0)
	s.o.Stored(again, 2)
	s.o.Failed(again, notLeader)
	s.store(batch(20, 29), 3)
	s.duplicate(batch(0, 9), 1)
}

func TestOrderStreamsAreApart(t *testing.T) {
	o := newOrder(t)
	a, b := scope(t, "acme"), scope(t, "umbrella")
	o.Stored(o.Admit(stream(a, 0), batch(0, 9), false).Ticket, 1)
	o.Failed(o.Admit(stream(a, 1), batch(0, 9), false).Ticket, timedOut)
	if v := o.Admit(stream(a, 0), batch(10, 19), false); v.Decision != txn.Push {
		t.Errorf("a failure reached another partition: %+v", v)
	}
	if v := o.Admit(stream(b, 0), batch(50, 59), false); v.Decision != txn.Push {
		t.Errorf("another tenant's stream is known: %+v", v)
	}
}

// The room is the process's: a stream that finds none takes the place of the
// connection's least recently written one, which then is as never seen.
func TestOrderEviction(t *testing.T) {
	r := &room{left: 2}
	o, a := txn.NewOrder(r), scope(t, "acme")
	for p := range int32(3) {
		o.Stored(o.Admit(stream(a, p), batch(0, 9), false).Ticket, int64(p))
	}
	if v := o.Admit(stream(a, 2), batch(0, 9), false); v.Decision != txn.Duplicate || v.Offset != 2 {
		t.Errorf("the newest was forgotten: %+v", v)
	}
	v := o.Admit(stream(a, 0), batch(70, 79), false)
	if v.Decision != txn.Push {
		t.Errorf("an evicted stream is not as never seen: %+v", v)
	}
	o.Stored(v.Ticket, 1)
	if r.left != 0 {
		t.Errorf("%d places left", r.left)
	}
	o.Close()
	o.Close()
	if r.left != 2 {
		t.Errorf("%d places after close, want 2", r.left)
	}
}

// A stream under way is not forgotten: its followers could not be judged.
func TestOrderEvictsNothingUnderWay(t *testing.T) {
	o, a := txn.NewOrder(&room{left: 1}), scope(t, "acme")
	first := o.Admit(stream(a, 0), batch(0, 9), false).Ticket
	other := o.Admit(stream(a, 1), batch(0, 9), false) // goes out untracked
	if other.Decision != txn.Push || o.Recheck(other.Ticket) != 0 {
		t.Errorf("without room: %+v", other)
	}
	o.Failed(other.Ticket, timedOut)
	o.Stored(other.Ticket, 1)
	follower := o.Admit(stream(a, 0), batch(10, 19), false).Ticket
	o.Failed(first, timedOut)
	if got := o.Recheck(follower); got != timedOut {
		t.Errorf("recheck of the follower: %d", got)
	}
	o.Failed(follower, timedOut)
	if v := o.Admit(stream(a, 0), batch(10, 19), false); v.Code != timedOut {
		t.Errorf("the follower: %+v", v)
	}
	if v := o.Admit(stream(a, 1), batch(10, 19), false); v.Decision != txn.Push {
		t.Errorf("a stream at rest makes room: %+v", v)
	}
}

func TestOrderWithoutAnyRoom(t *testing.T) {
	o, a := txn.NewOrder(&room{}), scope(t, "acme")
	for range 3 {
		v := o.Admit(stream(a, 0), batch(5, 9), false)
		if v.Decision != txn.Push {
			t.Fatalf("refused: %+v", v)
		}
		o.Failed(v.Ticket, timedOut)
	}
	o.Close()
	txn.NewOrder(nil).Close() // of a connection that never logged in
}

// One connection's streams are bounded whatever the room.
func TestOrderBoundsAConnection(t *testing.T) {
	r := &room{left: 1 << 20}
	o, a := txn.NewOrder(r), scope(t, "acme")
	for p := range int32(70_000) {
		o.Stored(o.Admit(stream(a, p), batch(0, 0), false).Ticket, 0)
	}
	if taken := 1<<20 - r.left; taken != 65536 {
		t.Errorf("%d streams are kept", taken)
	}
	o.Close()
	if r.left != 1<<20 {
		t.Errorf("%d places after close", r.left)
	}
}

// What is forgotten is as never seen, and has no place any more.
func TestOrderForget(t *testing.T) {
	r := &room{left: 2}
	o, a := txn.NewOrder(r), scope(t, "acme")
	o.Forget(stream(a, 0)) // nothing is known yet
	o.Failed(o.Admit(stream(a, 0), batch(0, 9), true).Ticket, 48)
	behind := o.Admit(stream(a, 1), batch(0, 9), true).Ticket
	if v := o.Admit(stream(a, 0), batch(20, 29), true); v.Code != 48 {
		t.Errorf("behind a failed batch: %+v", v)
	}
	o.Forget(stream(a, 0))
	o.Forget(stream(a, 0))
	if r.left != 1 {
		t.Errorf("%d places left, want 1", r.left)
	}
	if v := o.Admit(stream(a, 0), batch(20, 29), true); v.Decision != txn.Push {
		t.Errorf("after it was forgotten: %+v", v)
	}
	o.Forget(stream(a, 1)) // while a batch is under way
	o.Stored(behind, 1)
	if o.Close(); r.left != 2 {
		t.Errorf("%d places after close, want 2", r.left)
	}
}
