package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// form opens the window of a group that was empty. It never closes early: who
// comes first cannot know how many come with it.
func (s *state) form(protocolType string) {
	s.phase, s.protocolType = PreparingRebalance, protocolType
	s.forming, s.formedAt, s.newcomer = true, s.now, false
	s.window = s.now.Add(s.joinDelay)
	s.out = append(s.out, rebalanced{Joined})
}

// prepare opens the window of a rebalance: parked SyncGroups are told to join
// again, and the window closes as soon as everybody has.
func (s *state) prepare(why Reason) {
	for _, m := range s.members {
		if m.wait.kind == syncWait {
			s.release(m, kerr.RebalanceInProgress)
		}
	}
	s.phase, s.forming = PreparingRebalance, false
	s.window = s.now.Add(s.longestRebalance())
	s.out = append(s.out, rebalanced{why})
}

func (s *state) longestRebalance() time.Duration {
	var longest time.Duration
	for _, m := range s.members {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// completeEarly ends a rebalance for which everybody has come.
func (s *state) completeEarly() {
	if s.phase != PreparingRebalance || s.forming {
		return
	}
	if !slices.ContainsFunc(s.members, func(m *member) bool { return m.wait.kind != joinWait }) {
		s.complete()
	}
}

// closeWindow is called when the window has run out. A forming group in which
// newcomers arrived gets another delay, or a large fleet would be split into
// many generations.
func (s *state) closeWindow() {
	if s.forming && s.newcomer {
		next := s.window.Add(s.joinDelay)
		if limit := s.formedAt.Add(s.longestRebalance()); next.After(limit) {
			next = limit
		}
		if s.newcomer = false; next.After(s.window) {
			s.window = next
			return
		}
	}
	s.complete()
}

// complete begins the next generation with those who have come. Others are
// dropped, except static members: their place is theirs until their session ends.
func (s *state) complete() {
	s.removeAll(func(m *member) bool { return m.wait.kind != joinWait && m.instance == "" })
	first := slices.IndexFunc(s.members, func(m *member) bool { return m.wait.kind == joinWait })
	switch {
	case len(s.members) == 0:
		s.empty()
		return
	case first < 0: // static members that are away: wait on, for them or their session's end
		s.forming, s.window = false, s.now.Add(s.longestRebalance())
		return
	}
	s.generation++
	s.phase, s.forming = CompletingRebalance, false
	s.syncBy = s.now.Add(s.longestRebalance())
	s.protocol = s.elect()
	if leader := s.find(s.leader); leader == nil || leader.wait.kind != joinWait {
		s.leader = s.members[first].id
	}
	for _, m := range s.members {
		m.synced = m.wait.kind != joinWait
		if m.synced {
			continue
		}
		s.answer(m.wait.to, answer{join: s.joined(m)})
		m.wait = wait{}
		s.touch(m)
	}
}

// elect is the first protocol of the first member that all speak. There is one:
// nobody is let in without.
func (s *state) elect() string {
	name, _ := s.common(s.members[0].protocols, nil)
	return name
}

// removeAll evicts the members that which names and reports whether there was
// one. Their parked requests get 25.
func (s *state) removeAll(which func(*member) bool) bool {
	n := len(s.members)
	s.members = slices.DeleteFunc(s.members, func(m *member) bool {
		if !which(m) {
			return false
		}
		s.release(m, kerr.UnknownMemberID)
		return true
	})
	return len(s.members) < n
}

// settle is what follows an eviction.
func (s *state) settle(why Reason) {
	switch {
	case s.phase == Empty:
	case len(s.members) == 0:
		s.empty()
	case s.phase == PreparingRebalance:
		s.completeEarly()
	default:
		s.prepare(why)
	}
}

// empty ends the last generation: a late commit of a member that left is of
// another one. What the group was for is still shown; the next member may be of
// another protocol type.
func (s *state) empty() {
	s.phase, s.forming = Empty, false
	s.generation++
	s.protocol, s.leader = "", ""
	s.emptySince = s.now
}
