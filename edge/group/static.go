package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// joinStatic is JoinGroup of a static member (KIP-345). Its instance id is what
// it is known by: without a member id it is a restart, and the id of whoever
// held the instance before is worth nothing any more.
func (s *state) joinStatic(ev joinEvent) {
	req := &ev.req
	m := s.byInstance(req.InstanceID)
	switch {
	case m == nil && req.MemberID == "":
		s.add(ev, ev.newID)
	case m == nil:
		s.refuse(ev, kerr.UnknownMemberID)
	case req.MemberID == "":
		s.restart(ev, m)
	case req.MemberID != m.id:
		s.refuse(ev, kerr.FencedInstanceID)
	default:
		s.rejoin(ev, m)
	}
}

// restart gives a static member's place to its next holder. In a stable group
// whose assignment it does not change, nobody else notices.
func (s *state) restart(ev joinEvent, m *member) {
	former, topics := m.id, s.topics(m)
	s.release(m, kerr.FencedInstanceID)
	m.id = ev.newID
	s.update(m, &ev.req)
	led := s.leader == former
	if led {
		s.leader = m.id
	}
	switch {
	case s.phase == Stable && s.elect() == s.protocol && s.sameTopics(topics, m):
		s.answer(ev.to, answer{join: s.resumed(ev, m, former, led)})
		return
	case s.phase != PreparingRebalance:
		// While CompletingRebalance too: the leader may be assigning to the former id.
		s.prepare(Rejoined)
	}
	s.park(m, ev.to)
}

// resumed is the answer of a restart that changes nothing. A leader is told not
// to assign (KIP-814); one that cannot be told is shown its former id as the
// leader's, so that it takes itself for a follower.
func (s *state) resumed(ev joinEvent, m *member, former string, led bool) JoinAnswer {
	a := s.joined(m)
	switch {
	case led && ev.req.Skips:
		a.SkipAssignment = true
	case led:
		a.Leader, a.Members = former, nil
	}
	return a
}

// topics are what a member of a consumer group subscribes to, sorted. Userdata
// and owned partitions are left aside: they differ after every restart.
func (s *state) topics(m *member) []string {
	if s.protocolType != consumerType {
		return nil
	}
	topics, _ := topicsOf(m.metadata(s.protocol))
	slices.Sort(topics)
	return slices.Compact(topics)
}

func (s *state) sameTopics(before []string, m *member) bool { return slices.Equal(before, s.topics(m)) }
