package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// The life of a group of two, frame by frame, at both ends of every window.
func TestWireGroupLife(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	bothEnds(t, func(t *testing.T, newest bool) {
		group := fmt.Sprint("life-", newest)
		a := newMember(t, r.Login(t, rig.Acme), group, newest)
		b := newMember(t, r.Login(t, rig.Acme), group, newest)

		alone := a.join("t")
		if alone.LeaderID != a.id || a.generation != 1 || len(alone.Members) != 1 || *alone.Protocol != "range" {
			t.Errorf("a lone member is answered %+v", alone)
		}
		if !strings.HasPrefix(a.id, "rig-") || len(a.id) != len("rig-")+36 {
			t.Errorf("member id %q", a.id)
		}
		if got := a.sendSync(a.id, "all")(); got.ErrorCode != 0 || string(got.MemberAssignment) != "all" {
			t.Errorf("a lone member is assigned %q, code %d", got.MemberAssignment, got.ErrorCode)
		}
		if code := a.heartbeat(); code != 0 {
			t.Errorf("heartbeat: code %d", code)
		}

		joined := b.sendJoin("t", "u")
		rig.Eventually(t, "the rebalance", func() bool { return a.heartbeat() == 27 })
		lead := a.join("t")
		follow := joined()
		if follow.Generation != 2 || lead.Generation != 2 || follow.LeaderID != a.id || lead.LeaderID != a.id || len(follow.Members) != 0 {
			t.Errorf("leader: %+v\nfollower: %+v", lead, follow)
		}
		if len(lead.Members) != 2 || !bytes.Equal(lead.Members[1].ProtocolMetadata, subscribed("t", "u")) || lead.Members[1].MemberID != b.id {
			t.Errorf("the leader sees %+v", lead.Members)
		}
		if code := a.heartbeat(); code != 0 {
			t.Errorf("heartbeat while the leader assigns: code %d, want 0", code)
		}
		synced := b.sendSync()
		mine := a.sendSync(a.id, "one", b.id, "other")()
		if got := synced(); string(got.MemberAssignment) != "other" || got.ErrorCode != 0 || string(mine.MemberAssignment) != "one" {
			t.Errorf("assigned are %q and %q, code %d", mine.MemberAssignment, got.MemberAssignment, got.ErrorCode)
		}
		if newest && (*mine.ProtocolType != "consumer" || *mine.Protocol != "range") {
			t.Errorf("SyncGroup names %q, %q", *mine.ProtocolType, *mine.Protocol)
		}

		wantDescribed(t, a, b)
		if code := b.leave(); code != 0 {
			t.Errorf("leave: code %d", code)
		}
		if code := b.leave(); code != 25 {
			t.Errorf("leave again: code %d, want 25", code)
		}
		if code := b.heartbeat(); code != 25 {
			t.Errorf("heartbeat of one that left: code %d, want 25", code)
		}
		if code := a.heartbeat(); code != 27 {
			t.Errorf("heartbeat of one that stayed: code %d, want 27", code)
		}
		if code := a.leave(); code != 0 {
			t.Errorf("leave: code %d", code)
		}
		if got := describeGroup(a.Wire, group, 0); got.State != "Empty" || got.ErrorCode != 0 || got.ProtocolType != "consumer" || len(got.Members) != 0 {
			t.Errorf("an empty group is described as %+v", got)
		}
	})
}

func wantDescribed(t *testing.T, a, b *groupMember) {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{a.group}
	g := a.Ask(a.at(req)).(*kmsg.DescribeGroupsResponse).Groups[0]
	if g.State != "Stable" || g.ProtocolType != "consumer" || g.Protocol != "range" || len(g.Members) != 2 || g.AuthorizedOperations != -2147483648 {
		t.Fatalf("described as %+v", g)
	}
	m := g.Members[1]
	if m.MemberID != b.id || m.ClientID != "rig" || m.ClientHost != "/127.0.0.1" || string(m.MemberAssignment) != "other" ||
		!bytes.Equal(m.ProtocolMetadata, subscribed("t", "u")) || m.InstanceID != nil {
		t.Errorf("a member is described as %+v", m)
	}
}

// groupRequests is a request of every group API for a group id.
func groupRequests(group string) []kmsg.Request {
	heartbeat, leave, describe := kmsg.NewPtrHeartbeatRequest(), kmsg.NewPtrLeaveGroupRequest(), kmsg.NewPtrDescribeGroupsRequest()
	heartbeat.Group, leave.Group, describe.Groups = group, group, []string{group}
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "m"}}
	return []kmsg.Request{joinReq(group, "m", ""), syncReq(group, "m", 1), heartbeat, leave, describe}
}

// A group id has 1 to 255 characters, on every API and at both ends.
func TestWireGroupIDs(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	w := r.Login(t, rig.Acme)
	bothEnds(t, func(t *testing.T, newest bool) {
		m := newMember(t, w, "", newest)
		for id, legal := range map[string]bool{
			"": false, "a": true, strings.Repeat("é", 255): true, strings.Repeat("x", 256): false, strings.Repeat("é", 256): false,
		} {
			for _, req := range groupRequests(id) {
				codes := rig.ErrorCodes(w.Ask(m.at(req)))
				if refused := codes[0] == 24; refused == legal {
					t.Errorf("%s of a group id of %d bytes: codes %v", kmsg.NameForKey(req.Key()), len(id), codes)
				}
			}
		}
	})
}

// A credential without consume is refused on every group API (30), whether or
// not the cell can be asked.
func TestWireGroupWithoutConsume(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Produce)
	r.StopCell(t)
	bothEnds(t, func(t *testing.T, newest bool) {
		m := newMember(t, w, "", newest)
		for _, req := range append(groupRequests("g"), kmsg.NewPtrListGroupsRequest(), findGroup("g")) {
			if codes := rig.ErrorCodes(w.Ask(m.at(req))); slices.Max(codes) != 30 {
				t.Errorf("%s v%d: codes %v, want 30", kmsg.NameForKey(req.Key()), req.GetVersion(), codes)
			}
		}
	})
	r.StartCell(t)
}

// findGroup asks for a group's coordinator, in the form of each version.
func findGroup(group string) *kmsg.FindCoordinatorRequest {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = group, []string{group}
	return req
}

// A member that names more assignors than any client has is refused before they
// are compared with everybody else's.
func TestWireGroupManyProtocols(t *testing.T) {
	w := rig.Start(t, noJoinDelay).Login(t, rig.Acme)
	for _, c := range []struct {
		names int
		code  int16
	}{{129, 23}, {128, 0}} {
		req := joinReq("many", "", "instance", "t")
		for i := len(req.Protocols); i < c.names; i++ {
			req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: fmt.Sprint(i)})
		}
		if resp := w.Ask(req).(*kmsg.JoinGroupResponse); resp.ErrorCode != c.code {
			t.Errorf("%d protocols: code %d, want %d", c.names, resp.ErrorCode, c.code)
		}
	}
}

// What nobody knows is Dead without an error, and from version 6 on an error with
// a message; of another tenant's group nothing else is said.
func TestWireGroupUnknown(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	a := newMember(t, r.Login(t, rig.Acme), "known", true)
	a.join("t")
	w := r.Login(t, rig.Globex)
	for version := int16(0); version <= wireRow(t, 15).Max; version++ {
		for _, group := range []string{"unknown", "known"} {
			g := describeGroup(w, group, version)
			if g.State != "Dead" || g.ProtocolType != "" || len(g.Members) != 0 {
				t.Errorf("v%d: %+v", version, g)
			}
			if newer := version >= 6; (g.ErrorCode == 69) != newer || (g.ErrorMessage != nil) != newer || !newer && g.ErrorCode != 0 {
				t.Errorf("v%d: code %d, message %v", version, g.ErrorCode, g.ErrorMessage)
			}
		}
	}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, make([]string, 1002)
	for i := range req.Groups {
		req.Groups[i] = fmt.Sprint("g", i)
	}
	resp := w.Ask(req).(*kmsg.DescribeGroupsResponse)
	for i, g := range resp.Groups {
		if want := map[bool]int16{true: 15}[i >= 1000]; g.ErrorCode != want || g.Group != req.Groups[i] {
			t.Fatalf("group %d of %d: code %d, want %d", i, len(resp.Groups), g.ErrorCode, want)
		}
	}
}

func listGroups(w *rig.Wire, version int16, states, types []string) string {
	req := kmsg.NewPtrListGroupsRequest()
	req.Version, req.StatesFilter, req.TypesFilter = version, states, types
	var out []string
	for _, g := range w.Ask(req).(*kmsg.ListGroupsResponse).Groups {
		out = append(out, fmt.Sprintf("%s(%s,%s,%s)", g.Group, g.ProtocolType, g.GroupState, g.GroupType))
	}
	return strings.Join(out, " ")
}

// ListGroups shows the groups of the tenant, sorted, through its filters.
func TestWireListGroups(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	foreign := newMember(t, r.Login(t, rig.Globex), "b", true)
	foreign.join("t")
	w := r.Login(t, rig.Acme)
	if got := listGroups(w, 5, nil, nil); got != "" {
		t.Errorf("a tenant without groups sees %q", got)
	}
	c, a := newMember(t, r.Login(t, rig.Acme), "c", true), newMember(t, r.Login(t, rig.Acme2), "a", true)
	c.join("t")
	c.sendSync()()
	a.join("t")
	const both = "a(consumer,CompletingRebalance,classic) c(consumer,Stable,classic)"
	for _, test := range []struct {
		version       int16
		states, types []string
		want          string
	}{
		{0, nil, nil, "a(consumer,,) c(consumer,,)"},
		{4, nil, nil, "a(consumer,CompletingRebalance,) c(consumer,Stable,)"},
		{5, nil, nil, both},
		{4, []string{"Stable"}, nil, "c(consumer,Stable,)"},
		{4, []string{"stable"}, nil, "c(consumer,Stable,)"},
		{4, []string{"Stable", "CompletingRebalance"}, nil, "a(consumer,CompletingRebalance,) c(consumer,Stable,)"},
		{5, nil, []string{"Classic"}, both},
		{5, nil, []string{"consumer"}, ""},
		{5, []string{"Empty"}, []string{"classic"}, ""},
	} {
		if got := listGroups(w, test.version, test.states, test.types); got != test.want {
			t.Errorf("v%d %v %v: %q, want %q", test.version, test.states, test.types, got, test.want)
		}
	}
}

// Two tenants use one group id and have two groups; two keys of one tenant have
// one.
func TestWireGroupTenants(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	acme, globex := newMember(t, r.Login(t, rig.Acme), "g", true), newMember(t, r.Login(t, rig.Globex), "g", true)
	for _, m := range []*groupMember{acme, globex} {
		if resp := m.join("t"); resp.Generation != 1 || len(resp.Members) != 1 {
			t.Errorf("a tenant joins generation %d of %d members, want 1 and 1", resp.Generation, len(resp.Members))
		}
		m.sendSync()()
	}
	// One tenant's member id is nobody's at the other.
	stranger := newMember(t, globex.Wire, "g", true)
	stranger.id, stranger.generation = acme.id, 1
	if code := stranger.heartbeat(); code != 25 {
		t.Errorf("another tenant's member: code %d, want 25", code)
	}

	second := newMember(t, r.Login(t, rig.Acme2), "g", true)
	joined := second.sendJoin("t")
	rig.Eventually(t, "the rebalance", func() bool { return acme.heartbeat() == 27 })
	lead, follow := acme.join("t"), joined()
	if lead.Generation != 2 || follow.Generation != 2 || len(lead.Members) != 2 || follow.LeaderID != acme.id {
		t.Errorf("two keys of a tenant: %+v and %+v", lead, follow)
	}
	if code := globex.heartbeat(); code != 0 {
		t.Errorf("the other tenant notices: code %d", code)
	}
}

// A static member restarts: no 79, no rebalance, the same assignment under a new
// id, and whoever held the instance before is fenced.
func TestWireGroupStatic(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	static := func() *groupMember {
		m := newMember(t, r.Login(t, rig.Acme), "g", true)
		m.instance = "i"
		return m
	}
	first := static()
	first.join("t")
	first.sendSync(first.id, "all")()
	second := static()
	again := second.join("t")
	if again.Generation != 1 || !again.SkipAssignment || again.LeaderID != second.id || len(again.Members) != 1 || *again.Members[0].InstanceID != "i" {
		t.Errorf("a restart is answered %+v", again)
	}
	if second.id == first.id {
		t.Error("the former holder's id is still good")
	}
	if got := second.sendSync()(); got.ErrorCode != 0 || string(got.MemberAssignment) != "all" {
		t.Errorf("assigned is %q, code %d", got.MemberAssignment, got.ErrorCode)
	}
	if code := first.heartbeat(); code != 82 {
		t.Errorf("heartbeat of the former holder: code %d, want 82", code)
	}
	if code := second.heartbeat(); code != 0 {
		t.Errorf("heartbeat of the present holder: code %d", code)
	}
	instance := "i"
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group = 5, "g"
	leave.Members = []kmsg.LeaveGroupRequestMember{{InstanceID: &instance}, {MemberID: first.id, InstanceID: &instance}}
	resp := second.Ask(leave).(*kmsg.LeaveGroupResponse)
	if resp.Members[0].ErrorCode != 0 || resp.Members[1].ErrorCode != 25 || *resp.Members[0].InstanceID != "i" {
		t.Errorf("leave by instance: %+v", resp.Members)
	}
}

// A client that closes its connection waits no more: its session runs out, and
// the rebalance goes on without it.
func TestWireGroupClientLeaves(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	a := newMember(t, r.Login(t, rig.Acme), "g", true)
	a.join("t")
	a.sendSync()()
	b := newMember(t, r.Login(t, rig.Acme), "g", true)
	req := joinReq("g", "", "i", "t") // a static member is not told its id first
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 50, 600_000
	b.Send(req)
	rig.Eventually(t, "the rebalance", func() bool { return a.heartbeat() == 27 })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "the end of its session", func() bool { return r.Gateway.Groups().Members == 1 })
	if again := a.join("t"); again.ErrorCode != 0 || len(again.Members) != 1 {
		t.Errorf("the others: code %d, %d members", again.ErrorCode, len(again.Members))
	}
}

// A gateway that drains frees those who wait, with a code that sends them to
// look for the coordinator again.
func TestWireGroupDrain(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Group.JoinDelay, c.DrainGrace = time.Hour, time.Hour }
	})
	m := newMember(t, r.Login(t, rig.Acme), "g", true)
	joined := m.sendJoin("t")
	rig.Eventually(t, "the wait", func() bool { return r.Gateway.Groups().Members == 1 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.StopGateway(t)
	}()
	if resp := joined(); resp.ErrorCode != 15 {
		t.Errorf("a parked JoinGroup is answered code %d, want 15", resp.ErrorCode)
	}
	m.WantClosed()
	<-stopped
}
