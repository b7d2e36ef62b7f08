package e2e

import (
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// A node dies without a word: its groups are at the others once its row has run
// out, and at itself again when it is back.
func TestFailover(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay)
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	makeTopic(t, r, rig.Acme, "t")
	group := groupOf(t, 2, r, two.Rig())
	load := startMoving(t, r, two)
	load.advance(30)
	two.Crash(t)
	if m := metadataOf(t, r); len(m.Brokers) != 2 {
		t.Errorf("%d nodes are shown right after a death, want 2: its row is there", len(m.Brokers))
	}
	rig.Eventually(t, "the group's new coordinator", func() bool { return heartbeatCode(t, r, group) == 25 })
	load.advance(30)
	two.Start(t) // its row has run out, or is adopted
	together(t, 2, r, two.Rig())
	if owner := settled(t, group, r, two.Rig()); owner != 2 {
		t.Errorf("node %d coordinates the group after the return, want 2", owner)
	}
	load.advance(30)
	load.finish(r, two)
}

// A node that was killed and starts at once finds its own row, which is not
// renewed: it does not take it for a twin's, serves data meanwhile, and adopts it.
func TestRestartAfterAKill(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay)
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	group := groupOf(t, 2, r, two.Rig())
	two.Crash(t)
	two.Start(t)
	// 25 where this took so long that the row has run out.
	if code := heartbeatCode(t, two.Rig(), group); code != 15 && code != 25 {
		t.Errorf("before it has its id again a heartbeat is code %d, want 15", code)
	}
	makeTopic(t, two.Rig(), rig.Acme, "t")
	ask(t, two.Rig().Login(t, rig.Acme), put(produceReq(-1), "t", 0, recordBatch(noProducer(), "v")))
	if owner := settled(t, group, r, two.Rig()); owner != 2 {
		t.Errorf("node %d coordinates the group, want 2", owner)
	}
}
