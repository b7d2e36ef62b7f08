package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

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

// A login that waits at a brake gives its place up with its connection, whether
// that is closed or reset.
func TestWaitingLoginLeaves(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.Limits.AddressBrake = config.Brake{Burst: 2, PerSecond: 0.001} // a line of one
			c.Limits.LimitHold, c.Limits.RefusalHold = time.Millisecond, time.Millisecond
			c.LoginTimeout = 2 * rig.Patience
		}
	})
	login := func(i int) *rig.Wire {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "PLAIN"))
		w.Send(wireToken(1, wirePlain("", "me", fmt.Sprint("qk_live_bad", i))))
		return w
	}
	for i := range 2 {
		if _, err := login(i).ReadFrame(); err != nil { // refused
			t.Fatal(err)
		}
	}
	s := startSide(t, r, "")
	for i := range 4 {
		waits := login(10 + i)
		rig.Eventually(t, "it waits", func() bool {
			_, body := s.get(t, "/metrics")
			return strings.Contains(body, fmt.Sprintf("\nqueen_edge_logins_braked_total{brake=\"address\",how=\"delayed\"} %d\n", i+1))
		})
		login(20 + i).WantClosed() // the line is full
		wireCounted(t, r, wire.LoginBraked, int64(i+1))
		if i%2 == 0 {
			if err := waits.Conn.(*tls.Conn).NetConn().(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
			_ = waits.Conn.(*tls.Conn).NetConn().Close()
		} else {
			_ = waits.Close()
		}
		rig.Eventually(t, "it is gone", func() bool { return r.Gateway.Connections() == 0 })
	}
	waits := login(30)
	rig.Eventually(t, "it waits", func() bool { return r.Gateway.Connections() == 1 })
	r.StopGateway(t) // a drain does not wait for it
	waits.WantClosed()
	if closed := r.Gateway.Closed(wire.ClientClosed) + r.Gateway.Closed(wire.ClientError); closed != 4 {
		t.Errorf("%d have left by themselves, want 4", closed)
	}
}

// A client that goes on sending while its login is being checked is heard, a byte
// at a time or all at once.
func TestRequestBehindASlowLogin(t *testing.T) {
	for _, pieces := range []bool{true, false} {
		var relay wireRelay
		r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
		w := r.Dial(t)
		shake, token := wireHandshake(1, "PLAIN"), wireToken(1, wirePlain("", "me", r.Key(rig.Acme)))
		w.Ask(shake)
		hold := relay.holding(listingPath)
		id := w.Send(token)
		<-hold.reached
		behind := rig.Frame(wireMetadata(), 77, "rig")
		tick := time.NewTicker(500 * time.Millisecond / time.Duration(len(behind)))
		for i := range behind { // some before the gateway looks, some after
			<-tick.C
			if pieces {
				w.SendRaw(behind[i : i+1])
			}
		}
		tick.Stop()
		if !pieces {
			w.SendRaw(behind)
		}
		relay.hold.Store(nil)
		close(hold.release)
		if resp := w.Receive(token, id).(*kmsg.SASLAuthenticateResponse); resp.ErrorCode != 0 {
			t.Errorf("code %d", resp.ErrorCode)
		}
		w.Receive(wireMetadata(), 77)
		wireAlive(t, w)
	}
}

// A connection's places are given back once, however its login or its life ends:
// one too many that dies while it is held, a cell that cannot be asked, a login
// again that is refused, a reset.
func TestPlacesComeBack(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.Plain, o.CellAt = true, relay.at(t)
		o.Config = func(c *config.Config) {
			c.MaxConnections, c.Tenant.MaxConnections, c.SessionLife, c.AuthCache = 16, 2, time.Minute, 0
			c.Limits.LimitHold = rig.Patience
		}
	})
	s := startSide(t, r, "")
	full := func(what string, in, out int) {
		t.Helper()
		rig.Eventually(t, what, func() bool {
			_, body := s.get(t, "/metrics")
			return r.Gateway.Connections() == in+out &&
				strings.Contains(body, fmt.Sprintf("\nqueen_edge_connections{state=\"logged_in\"} %d\n", in)) &&
				strings.Contains(body, fmt.Sprintf("\nqueen_edge_connections{state=\"not_logged_in\"} %d\n", out))
		})
	}
	reset := func(w *rig.Wire) {
		_ = w.Conn.(*net.TCPConn).SetLinger(0)
		_ = w.Close()
	}
	held := func(key string) *rig.Wire { // one too many
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "PLAIN"))
		w.Send(wireToken(1, wirePlain("", "me", r.Key(key))))
		return w
	}
	for round := range 3 {
		first, second := r.Login(t, rig.Acme), r.Login(t, rig.Acme)
		var dying []*rig.Wire
		for range 4 {
			dying = append(dying, held(rig.Acme))
		}
		full("two are in and four are held", 2, 4)
		for i, w := range dying {
			if i%2 == 0 {
				reset(w)
			} else {
				_ = w.Close()
			}
		}
		full("the four are gone", 2, 0)
		wireCounted(t, r, wire.TenantConnections, int64(4*(round+1)))
		relay.cut.Store(true)
		held(rig.Txn).WantClosed() // a key of its own: that it could not be checked is remembered for a second
		relay.cut.Store(false)
		full("one whose token could not be checked is gone", 2, 0)
		if round == 0 {
			rig.Eventually(t, "a second", func() bool {
				return second.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse).ErrorCode == 0
			})
			if resp := second.Ask(wireToken(2, wirePlain("", "me", r.Key(rig.Globex)))).(*kmsg.SASLAuthenticateResponse); resp.ErrorCode != 58 {
				t.Errorf("another tenant's token: code %d", resp.ErrorCode)
			}
			second.WantClosed()
		} else {
			reset(second)
		}
		full("one has left", 1, 0)
		second = r.Login(t, rig.Acme2)
		full("another has come", 2, 0)
		reset(first)
		_ = second.Close()
		full("nobody is left", 0, 0)
	}
}
