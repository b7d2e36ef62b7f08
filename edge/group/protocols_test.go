package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A large group whose members all name as many assignors as they may, and have
// one in common, costs a joiner no more than looking through them once.
func TestManyProtocolsOfMany(t *testing.T) {
	const members, joins, patience = 3700, 50, 5 * time.Second
	var all []Protocol
	for i := range maxProtocols {
		all = append(all, Protocol{Name: fmt.Sprintf("assignor-%03d", i)})
	}
	now := time.Unix(1_800_000_000, 0)
	rules := worldRules()
	rules.maxMembers = members
	s := newState(rules, now)
	s.phase, s.protocolType, s.generation = Stable, consumerType, 1
	for i := range members {
		s.members = append(s.members, &member{id: fmt.Sprint("m", i), protocols: all, session: time.Hour, deadline: now.Add(time.Hour), synced: true})
	}
	s.members[members-1].protocols = all[maxProtocols-1:]
	join := func(protocols []Protocol) *kerr.Error {
		req := JoinRequest{Session: worldSession, ProtocolType: consumerType, Protocols: protocols}
		return s.step(now, joinEvent{1, req, "new"})[0].(reply).with.join.Code
	}
	began := time.Now()
	for range joins {
		if code := join(all); code != kerr.GroupMaxSizeReached {
			t.Fatalf("with one in common: %v", code)
		}
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
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
}
