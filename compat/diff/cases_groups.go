package main

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys of the APIs that groups are made of.
const (
	commitKey   = 8
	joinKey     = 11
	beatKey     = 12
	leaveKey    = 13
	syncKey     = 14
	describeKey = 15
	listKey     = 16
	deleteKey   = 42
	dropKey     = 47
)

// groupFlow is a flow about one group.
type groupFlow struct {
	story
	group string
}

func (s *suite) groupFlow(step int16, name string) *groupFlow {
	group := fmt.Sprintf("flow %d %s", step, name)
	return &groupFlow{story: s.story(step, "groups", name, map[string]string{"the group": group}), group: group}
}

// subscription is what a consumer of a topic says of itself.
func subscription(topics ...string) []byte {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = topics
	return meta.AppendTo(nil)
}

// protocols are those of consumers of readTopic.
func protocols(names ...string) []kmsg.JoinGroupRequestProtocol {
	var out []kmsg.JoinGroupRequestProtocol
	for _, name := range names {
		out = append(out, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscription(readTopic)})
	}
	return out
}

// joinOf is a join of a consumer.
func joinOf(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 60_000
	req.Protocols = protocols("range", "roundrobin")
	return req
}

// join is a member's join, with what is special about it. The member has the id
// that it was told.
func (g *groupFlow) join(on int, member, label string, edit ...func(*kmsg.JoinGroupRequest)) *act {
	a := g.ask(on, member+" joins"+label, func(m *memory) kmsg.Request {
		req := joinOf(g.group, m.members[member])
		for _, e := range edit {
			e(req)
		}
		return req
	})
	a.learn = func(m *memory, resp kmsg.Response) {
		if id := resp.(*kmsg.JoinGroupResponse).MemberID; id != "" {
			m.members[member] = id
		}
	}
	return a
}

// enter is a newcomer's join: it is told its id first, where there is that.
func (g *groupFlow) enter(on int, member string, edit ...func(*kmsg.JoinGroupRequest)) *act {
	const tellsID = 4
	if g.version(joinKey) >= tellsID {
		g.join(on, member, " and is told its id", edit...)
	}
	return g.join(on, member, "", edit...)
}

// instance makes a member static.
func instance(id string) func(*kmsg.JoinGroupRequest) {
	return func(req *kmsg.JoinGroupRequest) { req.InstanceID = &id }
}

// take takes the answer that was left on a connection.
func (g *groupFlow) take(on int, label string, learn func(*memory, kmsg.Response)) {
	g.add(act{label: label, on: on, takes: true, learn: learn})
}

// parked leaves an act's answer for later, and waits until the group is in a
// state.
func (g *groupFlow) parked(a *act, state string) {
	a.parks = true
	if state == "" {
		return
	}
	g.add(act{label: "until " + state, until: func(_ *memory, c *conn) (bool, error) {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{g.group}
		r := c.exchange(step{req: req})
		if r.outcome != answered {
			return false, errGiveUp{fmt.Errorf("describe: %s", r.outcome)}
		}
		return r.resp.(*kmsg.DescribeGroupsResponse).Groups[0].State == state, nil
	}})
}

// sync is a member's sync; a leader names those it assigns to.
func (g *groupFlow) sync(on int, member string, generation int32, assigned ...string) *act {
	return g.ask(on, member+" syncs", func(m *memory) kmsg.Request {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Group, req.Generation, req.MemberID = g.group, generation, m.members[member]
		kind, protocol := "consumer", "range"
		req.ProtocolType, req.Protocol = &kind, &protocol
		for _, name := range assigned {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
				MemberID: m.members[name], MemberAssignment: []byte("for " + name),
			})
		}
		return req
	})
}

func (g *groupFlow) beat(label, member string, generation int32) *act {
	return g.ask(0, "heartbeat "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.Generation, req.MemberID = g.group, generation, idOf(m, member)
		return req
	})
}

// idOf is a member's id; one that nobody has for a name that no member has.
func idOf(m *memory, member string) string {
	if id, ok := m.members[member]; ok {
		return id
	}
	return member
}

func (g *groupFlow) leave(label, member string) *act {
	return g.ask(0, "leave "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = g.group, idOf(m, member)
		req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: req.MemberID}}
		return req
	})
}

// commit commits as a member; no member is a consumer without a group.
func (g *groupFlow) commit(label, member string, generation int32) {
	g.ask(0, "commit "+label, func(m *memory) kmsg.Request {
		req := commitOf(g.group, place{readTopic, 0, 7, nil})
		req.Generation, req.MemberID = generation, idOf(m, member)
		return req
	})
}

// describe describes the group. Who joined and has not been answered is new.
func (g *groupFlow) describe(label string) {
	a := g.ask(0, "describe "+label, func(*memory) kmsg.Request {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{g.group}
		return req
	})
	a.trim = func(m *memory, resp kmsg.Response) {
		members := resp.(*kmsg.DescribeGroupsResponse).Groups[0].Members
		for i := range members {
			if id := &members[i].MemberID; m.nameOf(*id) == *id {
				*id = "new"
			}
		}
	}
}

// list lists groups; of others than the flow's nothing is compared.
func (g *groupFlow) list(label string, edit ...func(*kmsg.ListGroupsRequest)) {
	a := g.ask(0, "list "+label, func(*memory) kmsg.Request {
		req := kmsg.NewPtrListGroupsRequest()
		for _, e := range edit {
			e(req)
		}
		return req
	})
	a.trim = func(_ *memory, resp kmsg.Response) {
		l := resp.(*kmsg.ListGroupsResponse)
		l.Groups = slices.DeleteFunc(l.Groups, func(x kmsg.ListGroupsResponseGroup) bool { return x.Group != g.group })
		if len(l.Groups) == 0 {
			l.Groups = nil
		}
	}
}

func (g *groupFlow) remove(label string) {
	g.ask(0, "delete "+label, func(*memory) kmsg.Request {
		return &kmsg.DeleteGroupsRequest{Groups: []string{g.group}}
	})
}

// drop deletes the offset of a topic's partition 0.
func (g *groupFlow) drop(label, topic string) {
	g.ask(0, "delete offsets "+label, func(*memory) kmsg.Request {
		return &kmsg.OffsetDeleteRequest{Group: g.group, Topics: []kmsg.OffsetDeleteRequestTopic{
			{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}},
		}}
	})
}
