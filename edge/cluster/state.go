package cluster

import (
	"fmt"
	"time"
)

// Row is a node's row of the registry.
type Row struct {
	Key     int32 // the id that its key names
	Member  Member
	Since   int64 // when the process started, in milliseconds since 1970
	Version int64 // of the row
}

// Call is one call to the registry: the own row is put under a condition, and
// all rows are read.
type Call struct {
	Put    bool
	Expect int64 // version of the own row; 0: there must be none
}

// Answer is what came of a Call.
type Answer struct {
	Applied bool
	Version int64 // of the row after the put; of the winner where it was not applied, 0: there is no row
	Winner  Member
	Rows    []Row
}

// TwinError ends a process whose node id another one uses.
type TwinError struct {
	Self     Member
	Other    Member // zero where its row could not be read
	Versions [2]int64
	Watched  time.Duration
}

func (e *TwinError) Error() string {
	return fmt.Sprintf("QUEEN_KAFKA_NODE_ID=%d: another process has this id and is alive: %s:%d (incarnation %d) "+
		"renewed its row while it was watched for %v, from version %d to %d. Give every gateway of a cluster an id of its own",
		e.Self.ID, e.Other.Host, e.Other.Port, e.Other.Incarnation, e.Watched.Round(time.Millisecond), e.Versions[0], e.Versions[1])
}

type phase uint8

const (
	claiming phase = iota // the row is nobody's, as far as is known
	watching              // another incarnation's row is there: is it alive?
	held                  // the row is this process's
	lost                  // another process has taken it: for good
	left                  // this process ends
)

// rules are what a state works with.
type rules struct {
	cluster        string
	self           Member
	heartbeat, ttl time.Duration
}

// state is what a node knows. It is moved by step alone.
type state struct {
	rules
	phase   phase
	owned   bool // the row has been this process's before
	version int64

	rival  Member // watching: whose row it is
	seenAt int64  // watching: its version
	since  time.Time

	renewed time.Time // begin of the last call that renewed the row
	ripe    time.Time // from when this node coordinates
	others  []Member
	next    time.Time // when to call
	hurried bool      // the call before was made at once
	away    bool      // the registry could not be asked the last time
}

func newState(r rules, now time.Time) *state { return &state{rules: r, next: now} }

// Events.
type (
	event    interface{ event() }
	tick     struct{}
	refresh  struct{} // somebody must know how things stand now
	answered struct {
		began time.Time
		with  Answer
	}
	failed struct {
		began time.Time
		err   error
	}
	leave struct{}
)

func (tick) event()     {}
func (refresh) event()  {}
func (answered) event() {}
func (failed) event()   {}
func (leave) event()    {}

// Effects.
type (
	effect  interface{ effect() }
	ask     struct{ call Call }
	publish struct{ view *View }
	// release has groups let go: those that are not this node's, or all.
	release struct{ all bool }
	tell    struct {
		what   Notice
		detail string
	}
	fatal struct{ err error }
)

func (ask) effect()     {}
func (publish) effect() {}
func (release) effect() {}
func (tell) effect()    {}
func (fatal) effect()   {}

// Notice is what an operator is told of.
type Notice uint8

// Notices.
const (
	Claimed   Notice = iota // the id is this process's
	Waiting                 // the id is another's, who may have died
	Away                    // the registry cannot be asked
	Back                    // it can again
	Expired                 // the own row had run out
	IDLost                  // the id is another's: coordinates nothing any more
	Departing               // the process ends
)

// String is what the log says.
func (n Notice) String() string {
	return [...]string{
		"this node's id is claimed",
		"this node's id is held by a row that is not this process's: waiting whether it is renewed",
		"the registry of nodes cannot be reached: data is served, groups are not coordinated once the row has run out",
		"the registry of nodes is reached again",
		"this node's row had run out: its groups are let go, the id is claimed anew",
		"this node's id has been taken by another process: no group is coordinated here any more, data is served on",
		"this node leaves the cluster",
	}[n]
}

// step moves the state.
func (s *state) step(now time.Time, ev event) []effect {
	switch ev := ev.(type) {
	case tick:
		if s.phase == left || now.Before(s.next) {
			return nil
		}
		return []effect{ask{s.call(now)}}
	case refresh:
		if s.phase == left {
			return nil
		}
		return []effect{ask{s.call(now)}}
	case failed:
		s.next = ev.began.Add(s.heartbeat)
		if s.away {
			return nil
		}
		s.away = true
		return []effect{tell{Away, ev.err.Error()}}
	case answered:
		return s.answered(now, ev)
	case leave:
		s.phase = left
		return []effect{publish{s.view()}, release{all: true}, tell{what: Departing}}
	}
	return nil
}

// call is what the registry is asked now.
func (s *state) call(now time.Time) Call {
	switch {
	case s.phase == held:
		return Call{Put: true, Expect: s.version}
	case s.phase == lost:
		return Call{}
	case s.phase == watching && now.Sub(s.since) >= s.ttl+s.heartbeat:
		return Call{Put: true, Expect: s.seenAt} // it has not moved for longer than a row lives
	}
	return Call{Put: true}
}

func (s *state) answered(now time.Time, ev answered) []effect {
	if s.phase == left {
		return nil
	}
	var out []effect
	if s.away {
		s.away = false
		out = append(out, tell{what: Back})
	}
	s.next = ev.began.Add(s.heartbeat)
	s.read(ev.with.Rows)
	var let release
	switch {
	case s.phase == lost:
	case ev.with.Applied:
		out = append(out, s.renew(now, ev)...)
		s.hurried = false
	default:
		effects, all := s.defeated(now, ev.with)
		out, let.all = append(out, effects...), all
	}
	return append(out, publish{s.view()}, let)
}

// renew is what a put that was applied does.
func (s *state) renew(now time.Time, ev answered) []effect {
	s.version, s.renewed = ev.with.Version, ev.began
	if s.phase == held {
		return nil
	}
	return s.claimed(now)
}

// claimed begins to hold the id. Where there are others they get a heartbeat to
// see this node before it coordinates anything: until then they own its groups.
func (s *state) claimed(now time.Time) []effect {
	s.phase, s.owned, s.ripe = held, true, now
	if len(s.others) > 0 {
		s.ripe = now.Add(s.heartbeat)
	}
	return []effect{tell{what: Claimed}}
}

// defeated is what a put that was not applied does; all says that no group may
// be kept.
func (s *state) defeated(now time.Time, a Answer) (out []effect, all bool) {
	absent, own := a.Version == 0, a.Version != 0 && a.Winner.Incarnation == s.self.Incarnation
	switch {
	case own: // an answer was lost: that put had been applied
		s.version = a.Version
		if s.phase != held {
			out = s.claimed(now)
		}
		s.hurry(now)
	case absent && s.phase == held:
		// It ran out, and others may have seen that.
		s.phase, s.renewed = claiming, time.Time{}
		s.hurry(now)
		return []effect{tell{what: Expired}}, true
	case absent: // what was watched is gone
		s.phase = claiming
		s.hurry(now)
	case s.owned:
		s.phase, s.renewed = lost, time.Time{}
		return []effect{tell{IDLost, s.evidence(a)}}, true
	case s.phase == watching && a.Version != s.seenAt:
		return []effect{fatal{&TwinError{Self: s.self, Other: a.Winner, Versions: [2]int64{s.seenAt, a.Version}, Watched: now.Sub(s.since)}}}, true
	case s.phase != watching:
		s.phase, s.rival, s.seenAt, s.since = watching, a.Winner, a.Version, now
		out = []effect{tell{Waiting, s.evidence(a)}}
	case now.Sub(s.since) >= s.ttl+s.heartbeat:
		s.hurry(now) // to take it over
	}
	return out, false
}

// hurry has the next call made at once, but never twice in a row: no cell can
// make it a loop.
func (s *state) hurry(now time.Time) {
	if !s.hurried {
		s.next = now
	}
	s.hurried = !s.hurried
}

func (s *state) evidence(a Answer) string {
	return fmt.Sprintf("%s:%d, incarnation %d, version %d", a.Winner.Host, a.Winner.Port, a.Winner.Incarnation, a.Version)
}

// read keeps the rows of the others. One whose value names another id than its
// key is nobody's.
func (s *state) read(rows []Row) {
	s.others = make([]Member, 0, len(rows))
	for _, r := range rows {
		if r.Key == r.Member.ID && r.Key != s.self.ID {
			s.others = append(s.others, r.Member)
		}
	}
}

// view is what this node says of the cluster: always including itself, unless it
// leaves and there are others.
func (s *state) view() *View {
	members := append(make([]Member, 0, len(s.others)+1), s.others...)
	if s.phase != left || len(members) == 0 {
		members = append(members, s.self)
	}
	v := viewOf(s.cluster, s.self.ID, members)
	if !s.renewed.IsZero() && (s.phase == held || s.phase == left && len(s.others) > 0) {
		// Counted from before the call: the row lives longer than this.
		v.from, v.to = s.ripe, s.renewed.Add(s.ttl)
	}
	return v
}
