package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// One request names several groups: each is answered by itself and in its turn,
// and a group id of another tenant's is one that nobody here committed to (case F
// of the field cases).
func TestCommittedOfSeveralGroups(t *testing.T) {
	r := rig.Start(t)
	w, theirs := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	makeTopic(t, r, rig.Acme, "orders")
	makeTopic(t, r, rig.Globex, "orders")
	mustCommit(t, w, "one", at{topic: "orders", offset: 11})
	mustCommit(t, w, "two", at{topic: "orders", partition: 1, offset: 22})
	mustCommit(t, theirs, "foreign", at{topic: "orders", offset: 99})
	for version := int16(8); version <= 10; version++ {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = version
		for _, g := range []struct {
			name  string
			named bool
		}{{"one", true}, {"foreign", true}, {"", true}, {"two", false}, {"foreign", false}, {"one", true}} {
			more := offsetRequest(version, g.name, "orders").Groups[0]
			if !g.named {
				more.Topics = nil
			}
			if version >= 9 { // of a protocol that is not announced
				more.MemberID, more.MemberEpoch = kmsg.StringPtr("nobody"), 7
			}
			req.Groups = append(req.Groups, more)
		}
		wireIdentify(w, req)
		resp := w.Ask(req).(*kmsg.OffsetFetchResponse)
		var got []string
		for i := range resp.Groups {
			got = append(got, fmt.Sprint(resp.Groups[i].Group, groupCommitted(t, w, &resp.Groups[i])))
		}
		want := []string{
			"one[orders/0=11 orders/1=-1 orders/2=-1]", "foreign[orders/0=-1 orders/1=-1 orders/2=-1]", "[code 24]",
			"two[orders/1=22]", "foreign[]", "one[orders/0=11 orders/1=-1 orders/2=-1]",
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
	}
	empty := kmsg.NewPtrOffsetFetchRequest()
	empty.Version = 8
	if got := w.Ask(empty).(*kmsg.OffsetFetchResponse).Groups; len(got) != 0 {
		t.Errorf("no group asked for: %+v", got)
	}
}

// No request may have the cell asked for ever more groups: those past the first
// thousand are to be asked for again.
func TestCommittedOfTooManyGroups(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	for i := range 1001 {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.Topics = fmt.Sprint("g", i), []kmsg.OffsetFetchRequestGroupTopic{}
		req.Groups = append(req.Groups, g)
	}
	resp := w.Ask(req).(*kmsg.OffsetFetchResponse)
	if len(resp.Groups) != 1001 || resp.Groups[999].ErrorCode != 0 || resp.Groups[1000].ErrorCode != 14 {
		t.Errorf("%d groups are answered, the last with %d", len(resp.Groups), resp.Groups[len(resp.Groups)-1].ErrorCode)
	}
}

// Offsets are committed and read by topic id: by the tenant's own only, and an
// earlier topic's is nobody's (KIP-848).
func TestCommitByTopicID(t *testing.T) {
	r := rig.Start(t)
	w, theirs := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	makeTopic(t, r, rig.Acme, "orders")
	makeTopic(t, r, rig.Globex, "orders")
	mustCommit(t, w, "g", at{topic: "orders", offset: 5}, at{topic: "nowhere", offset: 1})
	own, foreign := wireTopicID(w, "orders"), wireTopicID(theirs, "orders")
	commit := func(w *rig.Wire, id [16]byte, offset int64) int16 {
		req := commitRequest(10, "g", at{topic: "", offset: offset})
		req.Topics[0].TopicID = id
		rt := w.Ask(req).(*kmsg.OffsetCommitResponse).Topics[0]
		if rt.TopicID != id {
			t.Errorf("id %x is answered for %x", rt.TopicID, id)
		}
		return rt.Partitions[0].ErrorCode
	}
	read := func(w *rig.Wire, id [16]byte) (code int16, offset int64) {
		req := offsetRequest(10, "g", "")
		req.Groups[0].Topics[0].TopicID = id
		g := w.Ask(req).(*kmsg.OffsetFetchResponse).Groups[0]
		if len(g.Topics) != 1 || g.Topics[0].TopicID != id {
			t.Fatalf("%+v is answered for %x", g, id)
		}
		return g.Topics[0].Partitions[0].ErrorCode, g.Topics[0].Partitions[0].Offset
	}
	for what, id := range map[string][16]byte{"another tenant's": foreign, "nobody's": {7}, "none": {}, "the metadata log's": {15: 1}} {
		if code := commit(w, id, 9); code != 100 {
			t.Errorf("%s, commit: code %d, want 100", what, code)
		}
		if code, offset := read(w, id); code != 100 || offset != -1 {
			t.Errorf("%s, read: code %d offset %d, want 100 and -1", what, code, offset)
		}
	}
	if code, offset := read(w, own); code != 0 || offset != 5 {
		t.Errorf("committed by name, read by id: code %d offset %d", code, offset)
	}
	if code := commit(w, own, 6); code != 0 {
		t.Errorf("commit by id: code %d", code)
	}
	if got := committed(t, w, offsetRequest(9, "g", "orders")); got[0] != "orders/0=6" {
		t.Errorf("committed by id, read by name: %v", got)
	}
	// What has no id is not named in an answer by ids.
	if got := committed(t, w, offsetRequest(10, "g")); !slices.Equal(got, []string{"orders/0=6"}) {
		t.Errorf("all by id: %v", got)
	}
	if got := committed(t, w, offsetRequest(9, "g")); !slices.Equal(got, []string{"nowhere/0=1", "orders/0=6"}) {
		t.Errorf("all by name: %v", got)
	}

	deleteQueue(t, r, rig.Acme, "orders")
	w = restarted(t, r)
	makeTopic(t, r, rig.Acme, "orders")
	if code := commit(w, own, 7); code != 100 {
		t.Errorf("commit by an earlier topic's id: code %d, want 100", code)
	}
	if code, _ := read(w, own); code != 100 {
		t.Errorf("read by an earlier topic's id: code %d, want 100", code)
	}
	if code, offset := read(w, wireTopicID(w, "orders")); code != 0 || offset != -1 {
		t.Errorf("an earlier topic's offset: code %d offset %d, want none", code, offset)
	}
}

// While the listing cannot be read nobody knows what an id stands for: 15, which
// clients come back after.
func TestCommitByTopicIDUnread(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) { c.Limits.CatalogEntries = 1 }
	})
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	commit, read := commitRequest(10, "g", at{topic: "orders", offset: 1}), offsetRequest(10, "g", "orders")
	wireIdentify(w, commit)
	wireIdentify(w, read)
	r.Login(t, rig.Globex).Ask(wireMetadata("other")) // the one listing kept is theirs now
	relay.cut.Store(true)
	if got := w.Ask(commit).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; got != 15 {
		t.Errorf("commit: code %d, want 15", got)
	}
	if got := w.Ask(read).(*kmsg.OffsetFetchResponse).Groups[0]; got.ErrorCode != 14 || len(got.Topics) != 0 {
		t.Errorf("read: %+v, want code 14", got)
	}
	relay.cut.Store(false)
	rig.Eventually(t, "the listing is read again", func() bool {
		return w.Ask(commit).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode == 0
	})
	if got := w.Ask(read).(*kmsg.OffsetFetchResponse).Groups[0]; got.ErrorCode != 0 || got.Topics[0].Partitions[0].Offset != 1 {
		t.Errorf("read afterwards: %+v", got)
	}
}
