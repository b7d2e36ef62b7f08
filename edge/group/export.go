package group

import "time"

// State is a whole group as a value, to be moved to another coordinator. Times
// are what is left of them.
type State struct {
	Phase        Phase
	Generation   int32
	ProtocolType string
	Protocol     string
	Leader       string
	Members      []MemberState
	Pending      []PendingState

	Window    time.Duration // PreparingRebalance: until it closes
	Forming   bool
	FormedFor time.Duration // forming: since the first join
	Newcomer  bool
	SyncBy    time.Duration
	EmptyFor  time.Duration
}

// MemberState is one member of a State.
type MemberState struct {
	ID, InstanceID, ClientID, Host string
	Session, Rebalance             time.Duration
	Protocols                      []Protocol
	Assignment                     []byte
	Parked                         Parked
	Left                           time.Duration // of the session, while not parked
	Synced                         bool
}

// Parked says which request of a member waits for its answer.
type Parked uint8

// Requests that wait.
const (
	NotParked Parked = iota
	ParkedJoin
	ParkedSync
)

// PendingState is an id that was told and not used yet.
type PendingState struct {
	ID   string
	Left time.Duration
}

// export is the group as a value. It is none of this process's any more: a step
// on what it was made from would be a second holder's.
func (s *state) export(now time.Time) State {
	out := State{
		Phase: s.phase, Generation: s.generation, ProtocolType: s.protocolType, Protocol: s.protocol, Leader: s.leader,
		Forming: s.forming, Newcomer: s.newcomer,
	}
	switch s.phase {
	case Empty:
		out.EmptyFor = now.Sub(s.emptySince)
	case PreparingRebalance:
		out.Window = s.window.Sub(now)
	default:
		out.SyncBy = s.syncBy.Sub(now)
	}
	if s.forming {
		out.FormedFor = now.Sub(s.formedAt)
	}
	for _, m := range s.members {
		ms := MemberState{
			ID: m.id, InstanceID: m.instance, ClientID: m.clientID, Host: m.host,
			Session: m.session, Rebalance: m.rebalance, Protocols: m.protocols, Assignment: m.assignment,
			Parked: Parked(m.wait.kind), Synced: m.synced, Left: m.deadline.Sub(now),
		}
		if m.exempt() {
			ms.Left = m.session
		}
		out.Members = append(out.Members, ms)
	}
	for _, p := range s.pending {
		out.Pending = append(out.Pending, PendingState{ID: p.id, Left: p.expires.Sub(now)})
	}
	return out
}

// importState makes a group of a value. Waits are lost until their requests are
// sent again (JoinRequest.Reattach, or the same SyncGroup): until then a
// member's session timer runs.
func importState(r rules, now time.Time, in State) *state {
	s := &state{
		rules: r, phase: in.Phase, generation: in.Generation, protocolType: in.ProtocolType, protocol: in.Protocol, leader: in.Leader,
		window: now.Add(in.Window), forming: in.Forming, formedAt: now.Add(-in.FormedFor), newcomer: in.Newcomer,
		syncBy: now.Add(in.SyncBy), emptySince: now.Add(-in.EmptyFor),
	}
	for _, ms := range in.Members {
		m := &member{
			id: ms.ID, instance: ms.InstanceID, clientID: ms.ClientID, host: ms.Host,
			session: ms.Session, rebalance: ms.Rebalance, protocols: ms.Protocols, assignment: ms.Assignment,
			assignmentWeight: len(ms.Assignment), synced: ms.Synced, deadline: now.Add(ms.Left),
			wait: wait{kind: waitKind(ms.Parked), lost: ms.Parked != NotParked},
		}
		m.weight = Weight(&JoinRequest{
			MemberID: m.id, InstanceID: m.instance, ClientID: m.clientID, Host: m.host, Protocols: m.protocols,
		})
		s.members = append(s.members, m)
	}
	for _, p := range in.Pending {
		s.pending = append(s.pending, pending{id: p.ID, expires: now.Add(p.Left)})
	}
	return s
}
