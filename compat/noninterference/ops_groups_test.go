package noninterference

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// group is the client's membership in one of its groups, and what else it did
// there.
type group struct {
	member     string // "": it is none
	instance   *string
	generation int32
	committed  bool
}

func groupName(x int) string { return fmt.Sprint("g", x%2) }

func groupOps() []op {
	return []op{
		{"join", (*client).join},
		{"sync", (*client).sync},
		{"heartbeat", (*client).heartbeat},
		{"leave", (*client).leaveGroup},
		{"describe-groups", (*client).describeGroups},
		{"list-groups", (*client).listGroups},
		{"delete-groups", (*client).deleteGroups},
		{"find-coordinator", (*client).findCoordinator},
	}
}

// member is the client's membership, begun where there is none.
func (c *client) member(x int) *group {
	if c.groups[x%2].member == "" {
		c.join(x, x)
	}
	return &c.groups[x%2]
}

// join joins a group that has no other member, or joins it again.
func (c *client) join(x, v int) {
	g := &c.groups[x%2]
	req := kmsg.NewPtrJoinGroupRequest()
	c.version(req, v)
	req.Group, req.MemberID, req.ProtocolType = groupName(x), g.member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60_000, 60_000
	req.InstanceID = g.instance
	if g.member == "" && x/2%2 == 1 && req.Version >= 5 {
		req.InstanceID = kmsg.StringPtr("instance")
	}
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, []string{"any"}
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: m.AppendTo(nil)}}
	resp, ok := c.ask(req).(*kmsg.JoinGroupResponse)
	if ok && resp.ErrorCode == 79 { // a newcomer is told its id first
		req.MemberID = resp.MemberID
		resp, ok = c.ask(req).(*kmsg.JoinGroupResponse)
	}
	if !ok || resp.ErrorCode != 0 {
		g.member, g.instance = "", nil
		return
	}
	g.member, g.instance, g.generation = resp.MemberID, req.InstanceID, resp.Generation
	c.sync(x, v)
}

func (c *client) sync(x, v int) {
	g := c.member(x)
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = groupName(x), g.member, g.instance, g.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: g.member, MemberAssignment: []byte("all")}}
	if resp, ok := askAt[*kmsg.SyncGroupResponse](c, req, v); ok && resp.ErrorCode != 0 {
		*g = group{committed: g.committed}
	}
}

func (c *client) heartbeat(x, v int) {
	g := c.member(x)
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = groupName(x), g.member, g.instance, g.generation
	if resp, ok := askAt[*kmsg.HeartbeatResponse](c, req, v); ok && resp.ErrorCode != 0 {
		*g = group{committed: g.committed}
	}
}

func (c *client) leaveGroup(x, v int) {
	g := c.member(x)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = groupName(x), g.member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID = g.member, g.instance
	req.Members = append(req.Members, m)
	c.send(req, v)
	g.member, g.instance = "", nil
}

func (c *client) describeGroups(x, v int) {
	c.member(x)
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{groupName(x)}
	c.send(req, v)
}

func (c *client) listGroups(_, v int) {
	req := kmsg.NewPtrListGroupsRequest()
	c.send(req, v)
}

func (c *client) deleteGroups(x, v int) {
	g := c.emptyGroup(x)
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{groupName(x)}
	c.send(req, v)
	g.committed = false
}

// emptyGroup is a group without members that has committed.
func (c *client) emptyGroup(x int) *group {
	g := &c.groups[x%2]
	if g.member != "" {
		c.leaveGroup(x, x)
	}
	if !g.committed {
		c.commit(x, x)
	}
	return g
}

func (c *client) findCoordinator(x, v int) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	name := groupName(x)
	if x/2%2 == 1 {
		name = txnName(x)
	}
	req.CoordinatorType = int8(x / 2 % 2)
	req.CoordinatorKey, req.CoordinatorKeys = name, []string{name}
	c.send(req, v)
}
