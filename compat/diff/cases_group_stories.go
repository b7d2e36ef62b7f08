package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupFlows are groups with members, at every version of JoinGroup.
func (s *suite) groupFlows() {
	row := s.row(joinKey)
	for step := range row.Max - row.Min + 1 {
		s.oneMember(step)
		s.twoMembers(step)
		s.wrongJoins(step)
		s.wrongSyncs(step)
		s.leaves(step)
		if step >= 5 {
			s.staticMember(step)
		}
	}
	s.follower(row.Max - row.Min)
}

// oneMember is the life of a group with one member.
func (s *suite) oneMember(step int16) {
	g := s.groupFlow(step, "one member")
	g.enter(0, "a")
	g.describe("while it is assigned")
	g.list("while it is assigned")
	g.beat("while it is assigned", "a", 1)
	g.commit("while it is assigned", "a", 1)
	g.sync(0, "a", 1, "a")
	g.sync(0, "a", 1).label = "a syncs again"
	g.beat("", "a", 1)
	g.beat("of generation 0", "a", 0)
	g.beat("of generation 2", "a", 2)
	g.beat("of generation -1", "a", -1)
	g.beat("of a stranger", "stranger", 1)
	g.beat("without an id", "", 1)
	g.describe("while it is stable")
	g.listEverything()
	g.commit("", "a", 1)
	g.commit("of generation 2", "a", 2)
	g.commit("of generation 0", "a", 0)
	g.commit("of a stranger", "stranger", 1)
	g.commit("beside the group", "", -1)
	g.commit("of a member without a generation", "a", -1)
	g.drop("of a topic it reads", readTopic)
	g.drop("of a topic it does not read", targetTopic(0))
	g.remove("while it has a member")
	g.leave("of a stranger", "stranger")
	g.leave("", "a")
	g.leave("again", "a")
	g.beat("after the leave", "a", 1)
	g.sync(0, "a", 1).label = "a syncs after the leave"
	g.commit("after the leave", "a", 1)
	g.describe("while it is empty")
	g.list("while it is empty")
	g.join(0, "a", " after the leave")
	g.drop("of a topic it read", readTopic)
	g.commit("beside the empty group", "", -1)
	g.remove("while it is empty")
	g.remove("again")
	g.describe("when it is gone")
	g.list("when it is gone")
	g.done()
}

// listEverything lists by every filter, as far as the version has it.
func (g *groupFlow) listEverything() {
	g.list("")
	for _, states := range []string{"Stable", "stable", "Empty", "Empty,Stable", "Dead", "nonsense"} {
		g.list("of state "+states, func(req *kmsg.ListGroupsRequest) { req.StatesFilter = strings.Split(states, ",") })
	}
	for _, types := range []string{"classic", "Classic", "consumer", "share,classic", "nonsense"} {
		g.list("of type "+types, func(req *kmsg.ListGroupsRequest) { req.TypesFilter = strings.Split(types, ",") })
	}
	g.list("of state and type", func(req *kmsg.ListGroupsRequest) {
		req.StatesFilter, req.TypesFilter = []string{"Stable"}, []string{"classic"}
	})
}

// twoMembers is a second member that comes and goes.
func (s *suite) twoMembers(step int16) {
	g := s.groupFlow(step, "two members")
	learn := func(name string) func(*memory, kmsg.Response) {
		return func(m *memory, resp kmsg.Response) { m.members[name] = resp.(*kmsg.JoinGroupResponse).MemberID }
	}
	g.enter(0, "a")
	g.sync(0, "a", 1, "a")
	g.parked(g.enter(1, "b"), "PreparingRebalance")
	g.beat("while b waits", "a", 1)
	g.sync(0, "a", 1).label = "a syncs while b waits"
	g.commit("while b waits", "a", 1)
	g.describe("while b waits")
	g.list("while b waits")
	g.parked(g.join(0, "a", " again"), "")
	g.take(1, "b has joined", learn("b"))
	g.take(0, "a has joined", learn("a"))
	g.parked(g.sync(1, "b", 2), "")
	g.beat("of the leader while it assigns", "a", 2)
	g.commit("of the generation before", "a", 1)
	g.describe("while it is assigned")
	g.sync(0, "a", 2, "a", "b")
	g.take(1, "b is assigned", nil)
	g.describe("while it is stable")
	g.beat("of b", "b", 2)
	g.beat("of the generation before", "a", 1)
	g.leave("of b", "b")
	g.beat("after b has left", "a", 2)
	g.join(0, "a", " after b has left")
	g.sync(0, "a", 3, "a", "stranger").label = "a syncs, and assigns to a stranger"
	g.describe("with a alone")
	g.leave("of a", "a")
	g.done()
}

// follower is a member, not the leader, that joins once more as it is.
func (s *suite) follower(step int16) {
	g := s.groupFlow(step, "a follower")
	g.enter(0, "a")
	g.sync(0, "a", 1, "a")
	g.parked(g.enter(1, "b"), "PreparingRebalance")
	g.parked(g.join(0, "a", " again"), "")
	g.take(1, "b has joined", func(m *memory, resp kmsg.Response) { m.members["b"] = resp.(*kmsg.JoinGroupResponse).MemberID })
	g.take(0, "a has joined", nil)
	g.sync(0, "a", 2, "a", "b")
	g.sync(1, "b", 2)
	g.join(1, "b", " once more").slow = true
	g.done()
}

// wrongJoins are joins that are refused.
func (s *suite) wrongJoins(step int16) {
	g := s.groupFlow(step, "wrong joins")
	wrong := func(when string) {
		// The same refusal of a member that is new, whose id nobody has.
		g.join(0, "x", ", session of 1 ms, "+when, func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1 })
		g.join(0, "x", ", session of an hour, "+when, func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 3_600_000 })
		g.join(0, "x", ", session of -1, "+when, func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = -1 })
		g.join(0, "x", " without a type, "+when, func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "" })
		g.join(0, "x", " without protocols, "+when, func(r *kmsg.JoinGroupRequest) { r.Protocols = nil })
		g.join(0, "x", " with an unknown id, "+when, func(r *kmsg.JoinGroupRequest) { r.MemberID = "stranger" })
		g.join(0, "x", " a group without a name, "+when, func(r *kmsg.JoinGroupRequest) { r.Group = "" })
	}
	wrong("nobody there")
	g.enter(0, "a")
	g.sync(0, "a", 1, "a")
	wrong("a there")
	g.join(0, "x", " with another type", func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "connect" })
	g.join(0, "x", " with other protocols", func(r *kmsg.JoinGroupRequest) { r.Protocols = protocols("sticky") })
	g.join(0, "a", " with another type", func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "connect" })
	g.describe("after all that")
	g.leave("of a", "a")
	g.done()
}

// wrongSyncs are syncs that are refused.
func (s *suite) wrongSyncs(step int16) {
	g := s.groupFlow(step, "wrong syncs")
	change := func(label string, edit func(*kmsg.SyncGroupRequest)) {
		a := g.sync(0, "a", 1, "a")
		made := a.ask
		a.label = "a syncs " + label
		a.ask = func(m *memory) kmsg.Request {
			req := made(m).(*kmsg.SyncGroupRequest)
			edit(req)
			return req
		}
	}
	wrong := func(when string) {
		change("as a stranger"+when, func(r *kmsg.SyncGroupRequest) { r.MemberID = "stranger" })
		change("without an id"+when, func(r *kmsg.SyncGroupRequest) { r.MemberID = "" })
		change("of generation 0"+when, func(r *kmsg.SyncGroupRequest) { r.Generation = 0 })
		change("of generation 2"+when, func(r *kmsg.SyncGroupRequest) { r.Generation = 2 })
		change("of generation -1"+when, func(r *kmsg.SyncGroupRequest) { r.Generation = -1 })
		change("in a group without a name"+when, func(r *kmsg.SyncGroupRequest) { r.Group = "" })
		change("in another group"+when, func(r *kmsg.SyncGroupRequest) { r.Group = "nobody" })
		if g.version(syncKey) >= 5 {
			other := "other"
			change("with another type"+when, func(r *kmsg.SyncGroupRequest) { r.ProtocolType = &other })
			change("with another protocol"+when, func(r *kmsg.SyncGroupRequest) { r.Protocol = &other })
			change("without a type"+when, func(r *kmsg.SyncGroupRequest) { r.ProtocolType = nil })
			change("without a protocol"+when, func(r *kmsg.SyncGroupRequest) { r.Protocol = nil })
		}
	}
	g.enter(0, "a")
	wrong("")
	change("and assigns nothing", func(r *kmsg.SyncGroupRequest) { r.GroupAssignment = nil })
	g.describe("when nothing is assigned")
	wrong(" when it is stable")
	g.leave("of a", "a")
	g.done()
}

// leaves are leaves of several at once, and of nobody.
func (s *suite) leaves(step int16) {
	g := s.groupFlow(step, "leaves")
	g.leave("of a group that is not there", "stranger")
	g.ask(0, "leave of a group without a name", func(*memory) kmsg.Request {
		return &kmsg.LeaveGroupRequest{MemberID: "x", Members: []kmsg.LeaveGroupRequestMember{{MemberID: "x"}}}
	})
	g.enter(0, "a")
	g.leave("without an id", "")
	if g.version(leaveKey) >= 3 {
		g.ask(0, "leave of nobody", func(*memory) kmsg.Request { return &kmsg.LeaveGroupRequest{Group: g.group} })
		g.ask(0, "leave of a, a stranger, a again", func(m *memory) kmsg.Request {
			return &kmsg.LeaveGroupRequest{Group: g.group, Members: []kmsg.LeaveGroupRequestMember{
				{MemberID: m.members["a"]}, {MemberID: "stranger"}, {MemberID: m.members["a"]},
			}}
		})
	} else {
		g.leave("of a", "a")
	}
	g.describe("after that")
	g.done()
}

// staticMember is one with an instance id (KIP-345).
func (s *suite) staticMember(step int16) {
	g := s.groupFlow(step, "static member")
	one := "one"
	named := func(a *act, id string) {
		made := a.ask
		a.label += " as " + id
		a.ask = func(m *memory) kmsg.Request {
			req := made(m)
			switch r := req.(type) {
			case *kmsg.SyncGroupRequest:
				r.InstanceID = &id
			case *kmsg.HeartbeatRequest:
				r.InstanceID = &id
			case *kmsg.LeaveGroupRequest:
				r.Members[0].InstanceID = &id
			case *kmsg.OffsetCommitRequest:
				r.InstanceID = &id
			}
			return req
		}
	}
	g.join(0, "a", "", instance(one))
	named(g.sync(0, "a", 1, "a"), one)
	named(g.beat("", "a", 1), one)
	named(g.beat("", "a", 1), "nobody")
	named(g.beat("of a stranger", "stranger", 1), one)
	g.describe("with a")
	g.join(0, "b", " in a's place", instance(one))
	named(g.beat("of a, who was replaced", "a", 1), one)
	named(g.sync(0, "a", 1), one)
	g.beat("of a, who was replaced, without its instance", "a", 1)
	g.join(0, "a", ", who was replaced", instance(one))
	named(g.beat("of b", "b", 1), one)
	named(g.sync(0, "b", 1), one)
	g.describe("with b")
	named(g.leave("of a", "a"), one)
	named(g.leave("by its instance alone", ""), "nobody")
	named(g.leave("by its instance alone", ""), one)
	named(g.leave("by its instance alone, again", ""), one)
	g.describe("when it is empty")
	g.done()
}
