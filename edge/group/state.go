package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Bounds of one group that nobody sets (kafka-surface §5, §8).
const (
	// MaxRebalance is the longest a member may ask a rebalance to wait for it.
	MaxRebalance = 30 * time.Minute
	// maxPending is how many ids may be told and not yet used.
	maxPending = 1024
	// emptyLife is how long a group without members is kept.
	emptyLife = 300 * time.Second
)

// rules are what a group goes by.
type rules struct {
	joinDelay              time.Duration
	minSession, maxSession time.Duration
	maxMembers, maxBytes   int
}

// state is one group. It decides and never does: step is its only door, and it
// knows the time only by what it is told.
type state struct {
	rules

	phase        Phase
	generation   int32
	protocolType string
	protocol     string
	leader       string    // member id
	members      []*member // in join order
	pending      []pending // oldest first

	window     time.Time // PreparingRebalance: when it closes
	forming    bool      // the group was empty: the window never closes early
	formedAt   time.Time // forming: the first join
	newcomer   bool      // forming: somebody came since the window was set
	syncBy     time.Time // when every member must have asked for its assignment
	emptySince time.Time

	now time.Time // of the step under way
	out []effect
}

// member is one member.
type member struct {
	id, instance     string // instance is empty for a dynamic member
	clientID, host   string
	session          time.Duration
	rebalance        time.Duration
	protocols        []Protocol
	assignment       []byte
	wait             wait
	deadline         time.Time // of the session; means nothing while a wait lives
	synced           bool      // has asked for its assignment of this generation, or is excused
	weight           int       // memory, assignment aside
	assignmentWeight int
}

// pending is an id that a newcomer was told and has not used yet (KIP-394).
type pending struct {
	id      string
	expires time.Time
}

// wait is a request of a member that is parked.
type wait struct {
	kind waitKind
	to   uint64
	// lost: the request was parked where the group was before and has not been
	// taken up again. It counts as a wait, and exempts from nothing.
	lost bool
}

type waitKind uint8

const (
	noWait waitKind = iota
	joinWait
	syncWait
)

// event is something that happens to a group.
type event any

type (
	joinEvent struct {
		to    uint64
		req   JoinRequest
		newID string // to be used where the joiner has no id
	}
	syncEvent struct {
		to  uint64
		req SyncRequest
	}
	heartbeatEvent struct {
		to                   uint64
		generation           int32
		memberID, instanceID string
	}
	leaveEvent struct {
		to      uint64
		leavers []Leaver
	}
	commitEvent struct {
		to                   uint64
		generation           int32
		memberID, instanceID string
	}
	goneEvent   struct{ to uint64 } // nobody waits for this answer any more
	deleteEvent struct{ to uint64 }
	tickEvent   struct{} // time has passed
)

// effect is something a step wants done.
type effect any

type (
	// reply answers a request.
	reply struct {
		to   uint64
		with answer
	}
	// rebalanced says that a rebalance began.
	rebalanced struct{ reason Reason }
	// retire says that the group is to be forgotten.
	retire struct{}
)

// answer is the answer of any request; the fields of others are empty.
type answer struct {
	code *kerr.Error
	join JoinAnswer
	sync SyncAnswer
	left []*kerr.Error // one for each Leaver
}

// newState makes a group that nobody has joined.
func newState(r rules, now time.Time) *state { return &state{rules: r, emptySince: now} }

// step is the group's whole behaviour: what happens, and what is overdue after
// it, so that no flood of events ever starves a timer.
func (s *state) step(now time.Time, ev event) []effect {
	s.now, s.out = now, nil
	switch ev := ev.(type) {
	case joinEvent:
		s.join(ev)
	case syncEvent:
		s.sync(ev)
	case heartbeatEvent:
		s.answer(ev.to, answer{code: s.heartbeat(ev)})
	case leaveEvent:
		s.leave(ev)
	case commitEvent:
		s.answer(ev.to, answer{code: s.commit(ev)})
	case goneEvent:
		s.gone(ev.to)
	case deleteEvent:
		s.delete(ev.to)
	case tickEvent:
	}
	s.overdue()
	out := s.out
	s.out = nil
	return out
}

// next is when the group has something to do without being told; zero: never.
func (s *state) next() time.Time {
	var next time.Time
	at := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	unsynced := false
	for _, m := range s.members {
		if !m.exempt() {
			at(m.deadline) // an exempt one may be long past: sleeping on it would be no sleep
		}
		unsynced = unsynced || !m.synced
	}
	for _, p := range s.pending {
		at(p.expires)
	}
	switch s.phase {
	case Empty:
		if len(s.pending) == 0 { // ids that were told keep a group
			at(s.emptySince.Add(emptyLife))
		}
	case PreparingRebalance:
		at(s.window)
	default:
		if unsynced {
			at(s.syncBy)
		}
	}
	return next
}

// overdue does what time asks for.
func (s *state) overdue() {
	s.pending = slices.DeleteFunc(s.pending, func(p pending) bool { return !p.expires.After(s.now) })
	if s.removeAll(func(m *member) bool { return !m.exempt() && !m.deadline.After(s.now) }) {
		s.settle(Expired)
	}
	for s.phase == PreparingRebalance && !s.window.After(s.now) {
		s.closeWindow()
	}
	if (s.phase == CompletingRebalance || s.phase == Stable) && !s.syncBy.After(s.now) {
		if s.removeAll(func(m *member) bool { return !m.synced }) {
			s.settle(Unsynced)
		}
	}
	if s.phase == Empty && len(s.pending) == 0 && (s.generation == 0 || !s.emptySince.Add(emptyLife).After(s.now)) {
		s.out = append(s.out, retire{})
	}
}

// exempt reports whether the session timer stands still: a slow rebalance must
// not tear its own members away.
func (m *member) exempt() bool { return m.wait.kind != noWait && !m.wait.lost }

func (s *state) answer(to uint64, a answer) { s.out = append(s.out, reply{to, a}) }

// touch is a sign of life.
func (s *state) touch(m *member) { m.deadline = s.now.Add(m.session) }

func (s *state) find(id string) *member {
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.id == id })
	if i < 0 || id == "" {
		return nil
	}
	return s.members[i]
}

func (s *state) byInstance(id string) *member {
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.instance == id })
	if i < 0 || id == "" {
		return nil
	}
	return s.members[i]
}

// who finds the member that a request names. A static one must be the present
// holder of its instance: a former one is fenced (82).
func (s *state) who(memberID, instanceID string) (*member, *kerr.Error) {
	if instanceID == "" {
		if m := s.find(memberID); m != nil {
			return m, nil
		}
		return nil, kerr.UnknownMemberID
	}
	m := s.byInstance(instanceID)
	if m == nil {
		return nil, kerr.UnknownMemberID
	}
	if m.id != memberID {
		return nil, kerr.FencedInstanceID
	}
	return m, nil
}

// memory is what the group takes: its members, and the ids that were told.
func (s *state) memory() int {
	const each = 64
	n := s.bytes()
	for _, p := range s.pending {
		n += each + len(p.id)
	}
	return n
}

// bytes is the memory the members take.
func (s *state) bytes() int {
	n := 0
	for _, m := range s.members {
		n += m.weight + m.assignmentWeight
	}
	return n
}
