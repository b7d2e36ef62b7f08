package e2e

import (
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// Three nodes are restarted one after another under load (kafka-surface §13.4,
// 43): groups move, no application sees an error, nothing is lost, no committed
// offset goes back, and no node trips over the row it had.
func TestRollingRestart(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay, steady)
	two, three := r.StartNode(t, 2, nil), r.StartNode(t, 3, nil)
	together(t, 3, r, two.Rig(), three.Rig())
	makeTopic(t, r, rig.Acme, "t")
	load := startMoving(t, r, two, three)
	load.advance(10)
	for _, restart := range []func(){
		func() { r.StopGateway(t); load.advance(10); r.StartGateway(t) },
		func() { two.Stop(t); load.advance(10); two.Start(t) },
		func() { three.Stop(t); load.advance(10); three.Start(t) },
	} {
		restart()
		together(t, 3, r, two.Rig(), three.Rig())
		load.advance(10)
	}
	load.finish(r, two, three)
}
