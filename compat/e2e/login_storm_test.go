package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

const (
	listingPath  = "/api/v1/resources/queues"
	identityPath = "/auth/me"
)

// B4: 2,000 connections that log in at once with 20 tokens cost the cell at most
// 20 checks and 20 identity calls.
func TestLoginStorm(t *testing.T) {
	const conns, tokens = 2000, 20
	cell := &cellFaults{}
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt, o.Plain = cell.at(t), true
		o.Config = func(c *config.Config) {
			c.AuthCache, c.MaxConnections, c.LoginTimeout = time.Minute, 4*conns, 2*rig.Patience
		}
	})
	scopes, err := control.ParseScopes("produce", "consume", "read")
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, tokens)
	for i := range keys {
		key, _, err := r.Cell.Control().CreateKey(control.NewKey{Cluster: []string{"acme", "globex"}[i%2], Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	// All connections are there before the first of them says its token.
	ws := make([]*rig.Wire, conns)
	for i := range ws {
		ws[i] = r.Dial(t)
	}
	cell.took("")
	var in atomic.Int64
	var wg sync.WaitGroup
	for i, w := range ws {
		wg.Go(func() {
			if w.Authenticate("me", keys[i%tokens]).ErrorCode == 0 {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	if n := in.Load(); n != conns {
		t.Errorf("%d of %d are logged in", n, conns)
	}
	cell.set(func(f *cellFaults) {
		listings, identities := count(f.calls, listingPath), count(f.calls, identityPath)
		if listings > tokens || identities > tokens {
			t.Errorf("%d listings and %d identity calls for %d tokens", listings, identities, tokens)
		}
	})
}

// B4: 200 bad logins a second from one address, each with another token: the
// cell is asked about few of them, other tenants and known tokens of the same
// address log in meanwhile, and what is turned away is counted.
func TestBadLoginsAreSlowed(t *testing.T) {
	const perSecond = 200
	d := 4 * time.Second
	if os.Getenv("QE_FULL") != "" {
		d = 30 * time.Second
	}
	cell := &cellFaults{}
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = cell.at(t)
		o.Config = func(c *config.Config) {
			c.AuthCache = 0 // a success is remembered for the brakes alone
			c.LoginTimeout, c.Limits.LimitHold, c.Limits.RefusalHold = 10*time.Second, time.Millisecond, time.Millisecond
		}
	})
	s := startSide(t, r, "")
	login := func(from, key string) error { return loginFrom(r, from, key) }
	if err := login("127.0.0.2", r.Key(rig.Acme)); err != nil {
		t.Fatal(err)
	}
	cell.took("")
	begin := time.Now()
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := 0; time.Since(begin) < d; i++ {
		<-tick.C
		wg.Go(func() { _ = login("127.0.0.2", fmt.Sprint("qk_live_bad", i)) })
		if i%perSecond != perSecond/2 {
			continue
		}
		for from, key := range map[string]string{"127.0.0.2": rig.Acme, "127.0.0.3": rig.Globex} {
			if err := login(from, r.Key(key)); err != nil {
				t.Errorf("%s logs in from %s: %v", key, from, err)
			}
		}
	}
	took := time.Since(begin)
	good := 2 * int(took/time.Second+1)
	listings := cell.took(listingPath)
	if most := 16 + 2*int(took/time.Second+1) + good; listings > most {
		t.Errorf("the cell was asked about %d tokens in %v, want %d at most", listings, took, most)
	}
	if bad := float64(listings-good) / took.Seconds(); d >= 30*time.Second && bad >= 5 {
		t.Errorf("%.1f bad tokens a second reach the cell", bad)
	}
	t.Logf("%v of %d bad logins/s: %d checks at the cell, %.1f/s, %d of good tokens among them", took.Round(time.Millisecond), perSecond,
		listings, float64(listings)/took.Seconds(), good)
	wg.Wait()
	if n := r.Gateway.Closed(wire.LoginBraked); n == 0 {
		t.Error("nobody was turned away")
	}
	_, body := s.get(t, "/metrics")
	for _, some := range []string{
		`queen_edge_logins_total{mechanism="plain",outcome="braked"} `,
		`queen_edge_logins_braked_total{brake="address",how="delayed"} `,
		`queen_edge_logins_braked_total{brake="address",how="turned_away"} `,
		`queen_edge_login_checks_total{call="listing",why="login"} `,
	} {
		if !strings.Contains(body, "\n"+some) || strings.Contains(body, "\n"+some+"0\n") {
			t.Errorf("nothing is counted at %s", some)
		}
	}
}

// loginFrom logs in from one of this machine's addresses, and leaves.
func loginFrom(r *rig.Rig, from, key string) error {
	dialer := &net.Dialer{Timeout: rig.Patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := tls.DialWithDialer(dialer, "tcp", r.Addr, r.TLS())
	if err != nil {
		return err
	}
	defer nc.Close() //nolint:errcheck // it is over
	if err := nc.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		return err
	}
	if _, err := nc.Write(append(rig.Frame(wireHandshake(1, "PLAIN"), 1, "rig"), rig.Frame(wireToken(2, wirePlain("", "me", key)), 2, "rig")...)); err != nil {
		return err
	}
	if _, err := rig.ReadFrame(nc); err != nil {
		return err
	}
	b, err := rig.ReadFrame(nc)
	if err != nil {
		return err
	}
	resp, err := rig.Decode(wireToken(2, ""), 2, b)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.SASLAuthenticateResponse).ErrorCode; code != 0 {
		return fmt.Errorf("code %d", code)
	}
	return nil
}

func count(calls []string, path string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, path) {
			n++
		}
	}
	return n
}
