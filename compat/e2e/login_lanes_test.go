package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// B4: whoever makes up a name for each bad token meets the brake of a lane all
// the same: without a list all names are one lane, and of a list those of one
// pattern. A name that is listed by itself is not slowed.
func TestBadLoginsUnderMadeUpNames(t *testing.T) {
	for _, lanes := range [][]string{nil, {"*.eu.example", rig.Host}} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			r := rig.Start(t, func(o *rig.Options) {
				o.Config = func(c *config.Config) {
					c.Lanes, c.ForwardSNIHost = lanes, true
					c.Limits.LaneBrake = config.Brake{Burst: 2, PerSecond: 0.001} // a line of one
					c.Limits.LimitHold, c.Limits.RefusalHold = time.Millisecond, time.Millisecond
				}
			})
			bad := func(i int) *rig.Wire {
				w := r.DialAs(t, fmt.Sprintf("c%d.eu.example", i))
				w.Ask(wireHandshake(1, "PLAIN"))
				w.Send(wireToken(1, wirePlain("", "me", fmt.Sprint("qk_live_bad", i))))
				return w
			}
			for i := range 2 {
				if _, err := bad(i).ReadFrame(); err != nil { // refused
					t.Fatal(err)
				}
			}
			bad(2) // waits, or has the line turn the next one away
			bad(3)
			wireCounted(t, r, wire.LoginBraked, 1)
			if lanes != nil {
				wireAlive(t, r.Login(t, rig.Acme))
			}
		})
	}
}
