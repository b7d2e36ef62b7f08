package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// groupsListed is what ListGroups says, as id, protocol type and state.
func groupsListed(t *testing.T, w *rig.Wire) []string {
	t.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 4
	resp := w.Ask(req).(*kmsg.ListGroupsResponse)
	if resp.ErrorCode != 0 {
		return []string{fmt.Sprintf("code %d", resp.ErrorCode)}
	}
	out := []string{}
	for _, g := range resp.Groups {
		out = append(out, fmt.Sprintf("%s %q %s", g.Group, g.ProtocolType, g.GroupState))
	}
	return out
}

// Members commit with their generation, others do not; while there are members a
// group keeps its offsets, and when they have gone it is still there.
func TestCommitOfMembers(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	makeTopic(t, r, rig.Acme, "orders") // the newest versions name topics by id
	makeTopic(t, r, rig.Acme, "other")
	bothEnds(t, func(t *testing.T, newest bool) {
		w := r.Login(t, rig.Acme)
		group := fmt.Sprintf("g-%v", newest)
		m := newMember(t, r.Login(t, rig.Acme2), group, newest)
		m.join("orders")
		m.sendSync(m.id, "all")()
		version := wireRow(t, 8).Min
		if newest {
			version = wireRow(t, 8).Max
		}
		commit := func(generation int32, member string) int16 {
			req := commitRequest(version, group, at{topic: "orders", offset: 5}, at{topic: "other", offset: 6})
			req.Generation, req.MemberID = generation, member
			return commitCodes(t, w, req)[0]
		}
		for _, x := range []struct {
			generation int32
			member     string
			code       int16
		}{{m.generation, m.id, 0}, {m.generation + 1, m.id, 22}, {m.generation, "stranger", 25}, {-1, "", 25}} {
			if got := commit(x.generation, x.member); got != x.code {
				t.Errorf("commit of %q in generation %d: code %d, want %d", x.member, x.generation, got, x.code)
			}
		}
		if got := deleteGroups(t, w, 2, group); !slices.Equal(got, []int16{68}) {
			t.Errorf("a group with a member is deleted with %v, want 68", got)
		}
		code, codes := offsetDelete(t, w, group, at{topic: "orders"}, at{topic: "other"})
		if code != 0 || !slices.Equal(codes, []int16{86, 0}) {
			t.Errorf("offsets of a topic that a member reads: code %d, codes %v, want 86 and 0", code, codes)
		}
		if got := committed(t, w, offsetRequest(7, group)); !slices.Equal(got, []string{"orders/0=5"}) {
			t.Errorf("left are %v", got)
		}
		if code := m.leave(); code != 0 {
			t.Fatalf("leave: code %d", code)
		}
		if got := commit(m.generation, m.id); got != 22 && got != 25 {
			t.Errorf("commit after leaving: code %d", got)
		}
		if code, codes := offsetDelete(t, w, group, at{topic: "orders"}); code != 0 || !slices.Equal(codes, []int16{0}) {
			t.Errorf("offsets of a group without members: code %d, codes %v", code, codes)
		}
		if got := deleteGroups(t, w, 2, group, group); !slices.Equal(got, []int16{0, 69}) {
			t.Errorf("deleted with %v, want 0, then 69", got)
		}
		if g := describeGroup(w, group, 5); g.State != "Dead" || g.ErrorCode != 0 {
			t.Errorf("a group that was deleted is %s, code %d", g.State, g.ErrorCode)
		}
	})
}

// A commit that is held up before it is written, here by the first listing of
// the tenant's topics, must not land on those of the next generation: its member
// is looked at last.
func TestCommitHeldUp(t *testing.T) {
	f := &cellFaults{}
	r := rig.Start(t, noJoinDelay, func(o *rig.Options) { o.CellAt = f.at(t) })
	m := newMember(t, r.Login(t, rig.Acme), "g", true)
	m.join("orders")
	m.sendSync(m.id, "all")()
	reached, letGo := make(chan struct{}, 8), make(chan struct{})
	f.set(func(f *cellFaults) {
		f.refuse = func(_, body string) int {
			if strings.Contains(body, "topiccfg") {
				reached <- struct{}{}
				<-letGo
			}
			return 0
		}
	})
	req := commitRequest(8, "g", at{topic: "orders", offset: 5})
	req.Generation, req.MemberID = m.generation, m.id
	id := m.Send(req)
	<-reached
	other := newMember(t, r.Login(t, rig.Acme), "g", true)
	other.id = m.id
	if code := other.leave(); code != 0 {
		t.Fatalf("leave: code %d", code)
	}
	close(letGo)
	resp := m.Receive(req, id).(*kmsg.OffsetCommitResponse)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 22 {
		t.Errorf("a commit of a generation that is over: code %d, want 22", code)
	}
	if got := committed(t, other.Wire, offsetRequest(7, "g")); len(got) != 0 {
		t.Errorf("stored is %v", got)
	}
}

// A group is there once it has committed, whichever gateway is asked: listed
// with its protocol type, described as Empty. Another tenant sees nothing of it.
func TestCommittedGroupsAreListed(t *testing.T) {
	f := &cellFaults{}
	r := rig.Start(t, noJoinDelay, func(o *rig.Options) { o.CellAt = f.at(t) })
	w := r.Login(t, rig.Acme)
	m := newMember(t, r.Login(t, rig.Acme), "with", true)
	m.join("orders")
	m.sendSync(m.id, "all")()
	req := commitRequest(8, "with", at{topic: "orders", offset: 5})
	req.Generation, req.MemberID = m.generation, m.id
	if got := commitCodes(t, w, req); !slices.Equal(got, []int16{0}) {
		t.Fatalf("codes %v", got)
	}
	mustCommit(t, w, "alone:", at{topic: "orders", offset: 6})
	mustCommit(t, r.Login(t, rig.Globex), "theirs", at{topic: "orders", offset: 6})
	if got := groupsListed(t, w); !slices.Equal(got, []string{`alone: "" Empty`, `with "consumer" Stable`}) {
		t.Errorf("listed are %v", got)
	}
	r.StopGateway(t)
	r.StartGateway(t)
	w = r.Login(t, rig.Acme)
	if got := groupsListed(t, w); !slices.Equal(got, []string{`alone: "" Empty`, `with "consumer" Empty`}) {
		t.Errorf("another gateway lists %v", got)
	}
	for group, want := range map[string]string{"with": `"consumer" Empty`, "alone:": `"" Empty`, "theirs": `"" Dead`, "alone": `"" Dead`} {
		if g := describeGroup(w, group, 5); fmt.Sprintf("%q %s", g.ProtocolType, g.State) != want || g.ErrorCode != 0 {
			t.Errorf("%s is %q %s, code %d, want %s", group, g.ProtocolType, g.State, g.ErrorCode, want)
		}
	}
	if g := describeGroup(w, "theirs", 6); g.ErrorCode != 69 {
		t.Errorf("v6: a group that nobody knows is answered %d", g.ErrorCode)
	}
	// An index that cannot be read: nobody guesses.
	for status, want := range map[int]struct {
		list     []string
		describe int16
	}{503: {[]string{}, 15}, 500: {[]string{}, -1}, 403: {[]string{"code 30"}, 30}} {
		f.set(func(f *cellFaults) { f.refuse = refusing("/api/v1/kv", "", status) })
		if got := groupsListed(t, w); !slices.Equal(got, want.list) {
			t.Errorf("%d: listed are %v, want %v", status, got, want.list)
		}
		if g := describeGroup(w, "with", 5); g.ErrorCode != want.describe {
			t.Errorf("%d: described with code %d, want %d", status, g.ErrorCode, want.describe)
		}
	}
}
