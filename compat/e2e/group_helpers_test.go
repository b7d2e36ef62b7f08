package e2e

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// noJoinDelay lets groups form at once, and sessions be as short as a test
// wants.
func noJoinDelay(o *rig.Options) {
	o.Config = func(c *config.Config) { c.Group.JoinDelay, c.Group.MinSessionTimeout = 0, time.Millisecond }
}

// subscribed is what a consumer says of the topics it wants.
func subscribed(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, topics
	return m.AppendTo(nil)
}

// joinReq is a JoinGroup of a consumer, without an id where that is empty.
func joinReq(group, memberID, instanceID string, topics ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 9, group, memberID, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 60_000
	if instanceID != "" {
		req.InstanceID = &instanceID
	}
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscribed(topics...)}}
	return req
}

// syncReq is a SyncGroup; assigned are pairs of member id and assignment.
func syncReq(group, memberID string, generation int32, assigned ...string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 5, group, memberID, generation
	protocolType, protocol := "consumer", "range"
	req.ProtocolType, req.Protocol = &protocolType, &protocol
	for i := 0; i < len(assigned); i += 2 {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: assigned[i], MemberAssignment: []byte(assigned[i+1])})
	}
	return req
}

// groupMember is a member that speaks raw frames, at either end of the windows.
type groupMember struct {
	*rig.Wire
	t          *testing.T
	group      string
	newest     bool
	instance   string
	id         string
	generation int32
}

func newMember(t *testing.T, w *rig.Wire, group string, newest bool) *groupMember {
	return &groupMember{Wire: w, t: t, group: group, newest: newest}
}

// at sets a request to the end of its window.
func (m *groupMember) at(req kmsg.Request) kmsg.Request {
	row := wireRow(m.t, req.Key())
	if m.newest {
		req.SetVersion(row.Max)
	} else {
		req.SetVersion(row.Min)
	}
	return req
}

// sendJoin sends a JoinGroup of a member that may have to be told its id first.
func (m *groupMember) sendJoin(topics ...string) (received func() *kmsg.JoinGroupResponse) {
	m.t.Helper()
	req := m.at(joinReq(m.group, m.id, m.instance, topics...)).(*kmsg.JoinGroupRequest)
	if m.newest && m.id == "" && m.instance == "" {
		resp := m.Ask(req).(*kmsg.JoinGroupResponse)
		if resp.ErrorCode != 79 || resp.MemberID == "" {
			m.t.Fatalf("a newcomer is answered code %d and id %q, want 79 and an id", resp.ErrorCode, resp.MemberID)
		}
		req.MemberID = resp.MemberID
	}
	id := m.Send(req)
	return func() *kmsg.JoinGroupResponse {
		m.t.Helper()
		resp := m.Receive(req, id).(*kmsg.JoinGroupResponse)
		if resp.ErrorCode == 0 {
			m.id, m.generation = resp.MemberID, resp.Generation
		}
		return resp
	}
}

// join joins a group that waits for nobody.
func (m *groupMember) join(topics ...string) *kmsg.JoinGroupResponse {
	m.t.Helper()
	resp := m.sendJoin(topics...)()
	if resp.ErrorCode != 0 {
		m.t.Fatalf("JoinGroup: code %d", resp.ErrorCode)
	}
	return resp
}

// sendSync sends a SyncGroup.
func (m *groupMember) sendSync(assigned ...string) (received func() *kmsg.SyncGroupResponse) {
	m.t.Helper()
	req := m.at(syncReq(m.group, m.id, m.generation, assigned...))
	id := m.Send(req)
	return func() *kmsg.SyncGroupResponse {
		m.t.Helper()
		return m.Receive(req, id).(*kmsg.SyncGroupResponse)
	}
}

// heartbeat is the code of a Heartbeat.
func (m *groupMember) heartbeat() int16 {
	m.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	if m.instance != "" {
		req.InstanceID = &m.instance
	}
	return m.Ask(m.at(req)).(*kmsg.HeartbeatResponse).ErrorCode
}

// leave is the code of a LeaveGroup.
func (m *groupMember) leave() int16 {
	m.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.id
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m.id}}
	resp := m.Ask(m.at(req)).(*kmsg.LeaveGroupResponse)
	if m.newest {
		if resp.ErrorCode != 0 || len(resp.Members) != 1 {
			m.t.Fatalf("LeaveGroup: code %d, %d members", resp.ErrorCode, len(resp.Members))
		}
		return resp.Members[0].ErrorCode
	}
	return resp.ErrorCode
}

// describe is a group as one connection sees it.
func describeGroup(w *rig.Wire, group string, version int16) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = version, []string{group}
	return w.Ask(req).(*kmsg.DescribeGroupsResponse).Groups[0]
}

// bothEnds runs a test at the lowest and at the highest versions.
func bothEnds(t *testing.T, fn func(t *testing.T, newest bool)) {
	t.Helper()
	for name, newest := range map[string]bool{"lowest": false, "highest": true} {
		t.Run(name, func(t *testing.T) { fn(t, newest) })
	}
}
