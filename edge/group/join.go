package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxProtocols bounds the assignors that a member names; clients name a handful.
// Every join looks through those of all members.
const maxProtocols = 128

// join is JoinGroup (kafka-surface §8.3).
func (s *state) join(ev joinEvent) {
	req := &ev.req
	self := s.joiner(req)
	switch {
	case req.Reattach:
		s.reattach(ev)
	case req.Session < s.minSession || req.Session > s.maxSession:
		s.refuse(ev, kerr.InvalidSessionTimeout)
	case req.ProtocolType == "" || len(req.Protocols) == 0 || len(req.Protocols) > maxProtocols:
		s.refuse(ev, kerr.InconsistentGroupProtocol)
	case len(s.members) > 0 && req.ProtocolType != s.protocolType:
		s.refuse(ev, kerr.InconsistentGroupProtocol)
	case !s.understands(req.Protocols, self):
		s.refuse(ev, kerr.InconsistentGroupProtocol)
	case self == nil && len(s.members) >= s.maxMembers, !s.fits(req, self):
		s.refuse(ev, kerr.GroupMaxSizeReached)
	case req.InstanceID != "":
		s.joinStatic(ev)
	case req.MemberID == "" && req.TellsID:
		s.tellID(ev)
	case req.MemberID == "":
		s.add(ev, ev.newID)
	case s.takePending(req.MemberID):
		s.add(ev, req.MemberID)
	case self == nil:
		s.refuse(ev, kerr.UnknownMemberID)
	default:
		s.rejoin(ev, self)
	}
}

// joiner is the member that a join is by, or replaces; nil: a newcomer.
func (s *state) joiner(req *JoinRequest) *member {
	if m := s.byInstance(req.InstanceID); m != nil {
		return m
	}
	return s.find(req.MemberID)
}

func (s *state) refuse(ev joinEvent, code *kerr.Error) {
	s.answer(ev.to, answer{join: JoinAnswer{Code: code, Generation: -1, MemberID: ev.req.MemberID}})
}

// understands reports whether a joiner speaks what the others do.
func (s *state) understands(protocols []Protocol, self *member) bool {
	_, ok := s.common(protocols, self)
	return ok
}

// common is the first of the protocols that every member but one speaks: what a
// joiner brings is compared with the others, not with its own former list. Each
// member's are looked through once; there may be thousands of members.
func (s *state) common(protocols []Protocol, except *member) (name string, ok bool) {
	spoken := make(map[string]int, len(protocols)) // by how many members without a gap, from the first on
	for _, p := range protocols {
		spoken[p.Name] = 0
	}
	n := 0
	for _, m := range s.members {
		if m == except {
			continue
		}
		for i := range m.protocols {
			if by, asked := spoken[m.protocols[i].Name]; asked && by == n {
				spoken[m.protocols[i].Name] = n + 1
			}
		}
		n++
	}
	for _, p := range protocols {
		if spoken[p.Name] == n {
			return p.Name, true
		}
	}
	return "", false
}

// metadata is what the member said for a protocol.
func (m *member) metadata(name string) []byte {
	i := slices.IndexFunc(m.protocols, func(p Protocol) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return m.protocols[i].Metadata
}

// fits reports whether the group stays below its bytes with what a joiner brings.
func (s *state) fits(req *JoinRequest, self *member) bool {
	n := s.bytes() + Weight(req)
	if self != nil {
		n -= self.weight
	}
	return n <= s.maxBytes
}

// tellID hands a newcomer its id; it joins with it (KIP-394). No member is made.
func (s *state) tellID(ev joinEvent) {
	if len(s.pending) >= maxPending {
		s.pending = slices.Delete(s.pending, 0, 1)
	}
	s.pending = append(s.pending, pending{id: ev.newID, expires: s.now.Add(ev.req.Session)})
	s.answer(ev.to, answer{join: JoinAnswer{Code: kerr.MemberIDRequired, Generation: -1, MemberID: ev.newID}})
}

func (s *state) takePending(id string) bool {
	i := slices.IndexFunc(s.pending, func(p pending) bool { return p.id == id })
	if i < 0 {
		return false
	}
	s.pending = slices.Delete(s.pending, i, i+1)
	return true
}

// add makes a member.
func (s *state) add(ev joinEvent, id string) {
	m := &member{id: id, instance: ev.req.InstanceID}
	s.members = append(s.members, m)
	s.update(m, &ev.req)
	switch {
	case s.phase == Empty:
		s.form(ev.req.ProtocolType)
	case s.phase != PreparingRebalance:
		s.prepare(Joined)
	case s.forming:
		s.newcomer = true
	}
	s.park(m, ev.to)
}

// rejoin lets a known member join again, which always starts a rebalance.
func (s *state) rejoin(ev joinEvent, m *member) {
	if m.wait.kind == joinWait {
		s.release(m, kerr.RebalanceInProgress)
	}
	s.update(m, &ev.req)
	if s.phase != PreparingRebalance {
		s.prepare(Rejoined)
	}
	s.park(m, ev.to)
}

// update takes over what a member says of itself with each join.
func (s *state) update(m *member, req *JoinRequest) {
	m.clientID, m.host = req.ClientID, req.Host
	m.session, m.rebalance = req.Session, req.rebalanceTimeout()
	m.protocols = req.Protocols
	m.weight = Weight(req)
	s.touch(m)
}

// rebalanceTimeout is how long a rebalance waits for the member: a request
// without one means its session timeout, and none means longer than
// MaxRebalance, or one client could hold a group for 24 days.
func (r *JoinRequest) rebalanceTimeout() time.Duration {
	if r.Rebalance <= 0 {
		return min(r.Session, MaxRebalance)
	}
	return min(r.Rebalance, MaxRebalance)
}

// park holds a member's JoinGroup until the window closes.
func (s *state) park(m *member, to uint64) {
	m.wait = wait{kind: joinWait, to: to}
	s.completeEarly()
}

// release answers a member's parked request with a code, and starts its session
// timer.
func (s *state) release(m *member, code *kerr.Error) {
	switch m.wait.kind {
	case noWait:
		return
	case joinWait:
		s.answer(m.wait.to, answer{join: JoinAnswer{Code: code, Generation: -1, MemberID: m.id}})
	case syncWait:
		s.answer(m.wait.to, answer{sync: SyncAnswer{Code: code}})
	}
	m.wait = wait{}
	s.touch(m)
}

// reattach takes up the wait of a JoinGroup that was parked where the group was
// before. Where the window has closed meanwhile, it is answered as it was then.
func (s *state) reattach(ev joinEvent) {
	m, code := s.who(ev.req.MemberID, ev.req.InstanceID)
	if code != nil {
		s.refuse(ev, code)
		return
	}
	if m.exempt() {
		s.release(m, kerr.RebalanceInProgress)
	}
	if s.phase == PreparingRebalance {
		s.park(m, ev.to)
		return
	}
	m.wait = wait{}
	s.touch(m)
	s.answer(ev.to, answer{join: s.joined(m)})
}

// joined is the answer of a completed join.
func (s *state) joined(m *member) JoinAnswer {
	a := JoinAnswer{
		Generation: s.generation, ProtocolType: s.protocolType, Protocol: s.protocol, Leader: s.leader, MemberID: m.id,
	}
	if m.id == s.leader {
		a.Members = s.roster()
	}
	return a
}

func (s *state) roster() []Candidate {
	out := make([]Candidate, 0, len(s.members))
	for _, m := range s.members {
		out = append(out, Candidate{ID: m.id, InstanceID: m.instance, Metadata: m.metadata(s.protocol)})
	}
	return out
}

// Weight is about the memory that a join keeps in its group.
func Weight(req *JoinRequest) int {
	const fixed, each = 512, 64
	n := fixed + len(req.MemberID) + len(req.InstanceID) + len(req.ClientID) + len(req.Host)
	for _, p := range req.Protocols {
		n += each + len(p.Name) + len(p.Metadata)
	}
	return n
}
