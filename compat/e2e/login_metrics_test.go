package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/sasl"
)

// Every login is counted once, by how it ended and by its mechanism, the later
// ones of a connection too.
func TestLoginOutcomes(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) {
			c.SASL = []sasl.Mechanism{sasl.Plain, sasl.OAuthBearer}
			c.SessionLife, c.Limits.RefusalHold, c.Limits.LimitHold = time.Minute, time.Millisecond, time.Millisecond
			c.MaxConnections, c.TenantReserve = 3, 0.9
		}
	})
	s := startSide(t, r, "")
	first := r.Login(t, rig.Acme)                              // ok
	wireSay(r.Dial(t), "no token")                             // malformed
	wireSay(r.Dial(t), wirePlain("", "me", "qk_live_x"))       // unknown
	wireSay(r.Dial(t), wirePlain("", "me", r.Key(rig.NoRead))) // no_scope
	relogin := func(password string) *kmsg.SASLAuthenticateResponse {
		rig.Eventually(t, "a second", func() bool {
			return first.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse).ErrorCode == 0
		})
		return first.Ask(wireToken(2, wirePlain("", "me", password))).(*kmsg.SASLAuthenticateResponse)
	}
	if resp := relogin(r.Key(rig.Acme2)); resp.ErrorCode != 0 { // ok
		t.Fatalf("code %d", resp.ErrorCode)
	}
	noRoom := r.Dial(t) // acme may hold one connection of three
	noRoom.Ask(wireHandshake(1, "PLAIN"))
	noRoom.Send(wireToken(2, wirePlain("", "me", r.Key(rig.Consume))))
	noRoom.WantClosed()
	if resp := relogin(r.Key(rig.Globex)); resp.ErrorCode != 58 { // other_tenant
		t.Fatalf("code %d", resp.ErrorCode)
	}
	first.WantClosed()
	if err := r.Cell.Control().SetStatus("acme", control.Suspended); err != nil {
		t.Fatal(err)
	}
	wireSay(r.Dial(t), wirePlain("", "me", r.Key(rig.Produce))) // suspended
	bearer := r.Dial(t)                                         // unknown
	bearer.Ask(wireHandshake(1, "OAUTHBEARER"))
	bearer.Ask(wireToken(2, wireBearer("not-a-token")))
	bearer.Ask(wireToken(2, "\x01"))
	relay.cut.Store(true)
	unsure := r.Dial(t)
	unsure.Ask(wireHandshake(1, "PLAIN"))
	unsure.Send(wireToken(2, wirePlain("", "me", r.Key(rig.Txn))))
	unsure.WantClosed()

	want := map[string]int{
		"ok plain": 2, "malformed plain": 1, "unknown plain": 1, "unknown oauthbearer": 1, "no_scope plain": 1, "suspended plain": 1,
		"no_room plain": 1, "other_tenant plain": 1, "unsure plain": 1,
	}
	_, body := s.get(t, "/metrics")
	for _, outcome := range []string{"ok", "malformed", "unknown", "no_scope", "suspended", "expired", "other_tenant", "unsure", "no_room"} {
		for _, mechanism := range []string{"none", "plain", "oauthbearer"} {
			line := fmt.Sprintf("queen_edge_logins_total{mechanism=%q,outcome=%q} %d", mechanism, outcome, want[outcome+" "+mechanism])
			if !strings.Contains(body, "\n"+line+"\n") {
				t.Errorf("no line %s", line)
			}
		}
	}
}
