package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// A node whose group has moved, and which cannot know it yet, commits nothing over
// its new coordinator's offsets (kafka-surface §13.4, 42: 50 went back to 16). Once
// it can look it says where the group is.
func TestCommitAtTheCoordinatorOfBefore(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay, steady)
	two := r.StartNode(t, 2, func(cfg *config.Config) { cfg.Cluster.TTL = 2 * time.Minute }) // it believes in itself for so long
	together(t, 2, r, two.Rig())
	makeTopic(t, r, rig.Acme, "t")
	group := groupOf(t, 2, r, two.Rig())
	old, fresh := two.Rig().Login(t, rig.Acme), r.Login(t, rig.Acme)
	mustCommit(t, old, group, at{topic: "t", offset: 10})

	// From here on the old node's looks at the registry wait, and its row goes.
	const kv = "/api/v1/kv"
	on, goOn := make(chan struct{}), sync.Once{}
	look := func() { goOn.Do(func() { close(on) }) }
	t.Cleanup(look)
	for _, rule := range []inject.Rule{
		{Kind: inject.Delay, Route: kv, Holds: "qk:node:", Meanwhile: func() { <-on }},
		{Kind: inject.Watch, Route: kv, Holds: "qk:fence:"},
	} {
		if err := two.Calls.Add(rule); err != nil {
			t.Fatal(err)
		}
	}
	rig.Eventually(t, "a row that stays away", func() bool {
		// A look that had gone before the rule came may bring it back once.
		cellAsk(t, r, http.MethodPost, kv, fmt.Sprintf(`{"operations":[{"op":"delete","ns":"queen-kafka","key":"qk:node:%s:2"}]}`, config.Cluster{}.ID()))
		return heartbeatCode(t, r, group) == 25
	})
	mustCommit(t, fresh, group, at{topic: "t", offset: 50})
	if code := heartbeatCode(t, two.Rig(), group); code != 25 {
		t.Fatalf("the old node answers a heartbeat with code %d, want 25: it believes in itself", code)
	}

	req := commitRequest(8, group, at{topic: "t", offset: 16})
	id := old.Send(req)
	rig.Eventually(t, "a commit that has lost", func() bool { return two.Calls.Fired(inject.Watch) == 1 })
	if o := fetchedOffset(t, r, group, "t"); o != 50 {
		t.Errorf("the offset is %d, want 50", o)
	}
	look()
	if codes := rig.ErrorCodes(old.Receive(req, id)); !slices.Equal(codes, []int16{16}) {
		t.Errorf("a commit at the old node: codes %v, want 16", codes)
	}
	for _, n := range []*rig.Rig{r, two.Rig()} {
		if o := fetchedOffset(t, n, group, "t"); o != 50 {
			t.Errorf("the offset is %d, want 50", o)
		}
	}
	// The group comes back to it, and so does its right to commit.
	if owner := settled(t, group, r, two.Rig()); owner != 2 {
		t.Fatalf("node %d coordinates the group, want 2", owner)
	}
	mustCommit(t, old, group, at{topic: "t", offset: 60})
	if codes := rig.ErrorCodes(fresh.Ask(commitRequest(8, group, at{topic: "t", offset: 51}))); !slices.Equal(codes, []int16{16}) {
		t.Errorf("a commit at the node of before: codes %v, want 16", codes)
	}
	if o := fetchedOffset(t, r, group, "t"); o != 60 {
		t.Errorf("the offset is %d, want 60", o)
	}
}
