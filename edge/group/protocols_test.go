package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// manyProtocols is a group whose members name as many assignors as they may, and
// have the last one in common.
func manyProtocols(members int) (s *state, all []Protocol) {
	for i := range maxProtocols {
		all = append(all, Protocol{Name: fmt.Sprintf("assignor-%03d", i)})
	}
	now := time.Unix(1_800_000_000, 0)
	rules := worldRules()
	rules.maxMembers = members
	s = newState(rules, now)
	s.phase, s.protocolType, s.generation = Stable, consumerType, 1
	for i := range members {
		s.members = append(s.members, &member{id: fmt.Sprint("m", i), protocols: all, session: time.Hour, deadline: now.Add(time.Hour), synced: true})
	}
	s.members[members-1].protocols = all[maxProtocols-1:]
	return s, all
}

func joinWith(s *state, protocols []Protocol) *kerr.Error {
	req := JoinRequest{Session: worldSession, ProtocolType: consumerType, Protocols: protocols}
	return s.step(s.now, joinEvent{1, req, "new"})[0].(reply).with.join.Code
}

// What all members speak is found, whoever names how much.
func TestManyProtocolsOfMany(t *testing.T) {
	s, all := manyProtocols(100)
	join := func(protocols []Protocol) *kerr.Error { return joinWith(s, protocols) }
	if code := join(all); code != kerr.GroupMaxSizeReached {
		t.Errorf("with one in common: %v", code)
	}
	if code := join(all[:maxProtocols-1]); code != kerr.InconsistentGroupProtocol {
		t.Errorf("with none in common: %v", code)
	}
	if code := join(slices.Repeat(all[:1], maxProtocols)); code != kerr.InconsistentGroupProtocol {
		t.Errorf("with one that is not, again and again: %v", code)
	}
	if got := s.elect(); got != "assignor-127" {
		t.Errorf("elected %q", got)
	}
}

// A joiner costs no more than looking through each member's assignors once.
func BenchmarkJoinManyProtocols(b *testing.B) {
	s, all := manyProtocols(3700)
	for b.Loop() {
		joinWith(s, all)
	}
}
