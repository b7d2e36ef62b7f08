package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// sync is SyncGroup (kafka-surface §8.4).
func (s *state) sync(ev syncEvent) {
	req := &ev.req
	m, code := s.who(req.MemberID, req.InstanceID)
	switch {
	case code != nil:
	case req.Generation != s.generation:
		code = kerr.IllegalGeneration
	case s.phase == PreparingRebalance:
		code = kerr.RebalanceInProgress
		s.live(m)
	case req.ProtocolType != nil && *req.ProtocolType != s.protocolType, req.Protocol != nil && *req.Protocol != s.protocol:
		code = kerr.InconsistentGroupProtocol
	}
	if code != nil {
		s.answer(ev.to, answer{sync: SyncAnswer{Code: code}})
		return
	}
	if s.phase == Stable {
		m.synced = true
		s.touch(m)
		s.answer(ev.to, answer{sync: s.assigned(m)})
		return
	}
	s.parkSync(ev, m)
}

// parkSync holds a SyncGroup until the leader has assigned; the leader's own
// ends the wait of all.
func (s *state) parkSync(ev syncEvent, m *member) {
	if m.id == s.leader && !s.assign(ev.req.Assignments) {
		s.answer(ev.to, answer{sync: SyncAnswer{Code: kerr.UnknownServerError}})
		return
	}
	s.release(m, kerr.RebalanceInProgress) // a second SyncGroup takes the place of the first
	m.wait, m.synced = wait{kind: syncWait, to: ev.to}, true
	if m.id != s.leader {
		return
	}
	s.phase = Stable
	for _, m := range s.members {
		if m.wait.kind != syncWait {
			continue
		}
		s.answer(m.wait.to, answer{sync: s.assigned(m)})
		m.wait = wait{}
		s.touch(m)
	}
}

// assign takes the leader's assignments; false: they are more than a group may
// hold. Members it does not name get none, names it made up are let be.
func (s *state) assign(list []Assignment) bool {
	for _, m := range s.members {
		m.assignment, m.assignmentWeight = nil, 0
	}
	n := s.bytes()
	for _, a := range list {
		n += len(a.Data)
	}
	if n > s.maxBytes {
		return false
	}
	for _, a := range list {
		if m := s.find(a.MemberID); m != nil {
			m.assignment, m.assignmentWeight = a.Data, len(a.Data)
		}
	}
	return true
}

func (s *state) assigned(m *member) SyncAnswer {
	return SyncAnswer{ProtocolType: s.protocolType, Protocol: s.protocol, Assignment: m.assignment}
}

// live is a sign of life of a member, unless its timer stands still anyway.
func (s *state) live(m *member) {
	if !m.exempt() {
		s.touch(m)
	}
}

// heartbeat is Heartbeat. While the leader assigns it is 0: 27 would make its
// member join again, and the window would open for ever.
func (s *state) heartbeat(ev heartbeatEvent) *kerr.Error {
	m, code := s.who(ev.memberID, ev.instanceID)
	switch {
	case code != nil:
		return code
	case ev.generation != s.generation:
		return kerr.IllegalGeneration
	}
	s.live(m)
	if s.phase == PreparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// commit is the membership check of a commit (kafka-surface §8.5).
func (s *state) commit(ev commitEvent) *kerr.Error {
	if ev.generation < 0 && ev.memberID == "" && ev.instanceID == "" {
		if len(s.members) > 0 {
			return kerr.UnknownMemberID
		}
		return nil
	}
	if len(s.members) == 0 {
		return kerr.IllegalGeneration
	}
	m, code := s.who(ev.memberID, ev.instanceID)
	switch {
	case code != nil:
		return code
	case ev.generation != s.generation:
		return kerr.IllegalGeneration
	}
	s.live(m)
	return nil
}

// leave is LeaveGroup: all leavers go before anything follows from it.
func (s *state) leave(ev leaveEvent) {
	before := len(s.members)
	codes := make([]*kerr.Error, len(ev.leavers))
	for i, l := range ev.leavers {
		codes[i] = s.leaveOne(l)
	}
	s.answer(ev.to, answer{left: codes})
	if len(s.members) < before {
		s.settle(Left)
	}
}

func (s *state) leaveOne(l Leaver) *kerr.Error {
	if l.InstanceID == "" && s.takePending(l.MemberID) {
		return nil
	}
	m := s.byInstance(l.InstanceID)
	if m == nil || l.MemberID != "" { // an instance alone is how an administrator names a member
		var code *kerr.Error
		if m, code = s.who(l.MemberID, l.InstanceID); code != nil {
			return code
		}
	}
	s.removeAll(func(other *member) bool { return other == m })
	return nil
}

// gone ends the wait of a client that left; its session timer starts.
func (s *state) gone(to uint64) {
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.exempt() && m.wait.to == to })
	if i < 0 {
		return
	}
	s.members[i].wait = wait{}
	s.touch(s.members[i])
}

// delete forgets a group that has no members.
func (s *state) delete(to uint64) {
	if len(s.members) > 0 {
		s.answer(to, answer{code: kerr.NonEmptyGroup})
		return
	}
	s.answer(to, answer{})
	s.pending, s.generation = nil, 0 // nothing keeps it
}
