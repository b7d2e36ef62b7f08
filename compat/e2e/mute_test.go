package e2e

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// mutes has the tenant of key owe so much that each further answer of it mutes
// its connection for the longest time there is, 5 s.
func mutes(t *testing.T, r *rig.Rig, key string) {
	t.Helper()
	for range 7 { // one connection waits before its second
		w := r.Login(t, key)
		throttleOf(w, wireMetadata())
		_ = w.Close()
	}
}

// acksZero is count frames of one record each, which want no answer.
func acksZero(topic string, count int) []byte {
	var sent []byte
	for i := range count {
		req := wireProduce(0, topic, 0, wireBatch{values: []string{fmt.Sprint(i)}}.bytes())
		sent = append(sent, rig.Frame(req, int32(i), "rig")...)
	}
	return sent
}

// refusesTokens is a cell that knows no token any more and still stores what
// comes under one, as caches do.
func refusesTokens(path, _ string) (status int, answer string) {
	if path == "GET "+identityPath || path == "GET "+listingPath {
		return 401, ""
	}
	return 0, ""
}

// B4: when a token is found to be revoked, nothing of its connections is stored
// any more: not what a mute held, nor what waits behind a request at the cell.
func TestRevokedWhileRequestsWait(t *testing.T) {
	for _, muted := range []bool{true, false} {
		t.Run(fmt.Sprintf("muted=%v", muted), func(t *testing.T) {
			t.Parallel()
			cell, relay := &faultyCell{}, &wireRelay{}
			r := rig.Start(t, func(o *rig.Options) {
				o.CellAt = func(url string) string { return relay.at(t)(cell.at(t)(url)) }
				o.Config = func(c *config.Config) {
					c.Reverify = 200 * time.Millisecond
					if muted {
						c.Tenant.MaxRequestRate = 1
					}
				}
			})
			w := r.Login(t, rig.Acme)
			w.Ask(wireMetadata("t"))
			hold := relay.holding("/nothing")
			if muted {
				mutes(t, r, rig.Acme)
				throttleOf(w, wireMetadata())
			} else {
				hold = relay.holding("/api/v1/fetch")
				w.Send(wireFetch("t", 0, 0))
				<-hold.reached
			}
			w.SendRaw(acksZero("t", 30))
			cell.set(refusesTokens)
			_, _ = io.ReadAll(w)
			_ = w.Close()
			close(hold.release)
			rig.Eventually(t, "the connection is gone", func() bool { return r.Gateway.Connections() == 0 })
			if r.Gateway.Closed(wire.Revoked) != 1 {
				t.Errorf("%d connections ended as revoked, want 1", r.Gateway.Closed(wire.Revoked))
			}
			cell.set(nil)
			relay.hold.Store(nil)
			if end := wireEnd(t, r.Login(t, rig.Acme2), "t", 0); end != 0 {
				t.Errorf("%d records are stored of a revoked token", end)
			}
		})
	}
}

// A token that is found to be revoked while its connection drains: what is on its
// way is stored no more either.
func TestRevokedWhileDraining(t *testing.T) {
	cell := &faultyCell{}
	r := rig.Start(t, patientLinger, func(o *rig.Options) {
		o.CellAt = cell.at(t)
		patient := o.Config
		o.Config = func(c *config.Config) {
			patient(c)
			c.Reverify = 200 * time.Millisecond
		}
	})
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("t"))
	stopped := wireStop(t, r)
	wantEnd(t, w)
	cell.set(refusesTokens)
	rig.Eventually(t, "it is told from the others", func() bool { return r.Gateway.Closed(wire.Revoked) == 1 })
	_, _ = w.Write(acksZero("t", 3))
	_ = w.Close()
	<-stopped
	cell.set(nil)
	r.StartGateway(t)
	if end := wireEnd(t, r.Login(t, rig.Acme2), "t", 0); end != 0 {
		t.Errorf("%d records are stored of a revoked token", end)
	}
}

// KIP-368: a frame that is not whole when the login's lifetime has passed is not
// served, and one that comes while its connection is half-closed is not either.
func TestSessionEndsInAFrame(t *testing.T) {
	for _, acks := range []int16{0, -1} {
		r := rig.Start(t, sessionsLast(1500*time.Millisecond))
		w := r.Login(t, rig.Acme)
		w.Ask(wireMetadata("t"))
		frame := rig.Frame(wireProduce(acks, "t", 0, wireBatch{values: []string{"v"}}.bytes()), 1, "rig")
		w.SendRaw(frame[:len(frame)-1])
		r.Login(t, rig.Acme).WantClosed() // one that is younger has ended
		w.SendRaw(frame[len(frame)-1:])
		w.WantClosed()
		wireCounted(t, r, wire.SessionExpired, 2)
		if end := wireEnd(t, r.Login(t, rig.Acme), "t", 0); end != 0 {
			t.Errorf("acks=%d: %d records are stored after the end of the login", acks, end)
		}
	}
}

// A login that is on its way again behind what a mute holds is no login that is
// left unused: the mute is the gateway's.
func TestReloginBehindAMute(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Tenant.MaxRequestRate, c.SessionLife = 1, 2*time.Second }
	})
	mutes(t, r, rig.Acme)
	w := r.Login(t, rig.Acme)
	if ms := throttleOf(w, wireMetadata()); ms < 4000 {
		t.Fatalf("muted for %d ms only", ms)
	}
	held := w.Send(wireMetadata())
	for range 3 { // it has been read: the other one was served after it
		wireAlive(t, r.Login(t, rig.Globex))
	}
	shake, token := wireHandshake(1, "PLAIN"), wireToken(2, wirePlain("", "me", r.Key(rig.Acme2)))
	shaken, told := w.Send(shake), w.Send(token)
	w.Receive(wireMetadata(), held)
	if resp := w.Receive(shake, shaken).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 0 {
		t.Errorf("handshake: code %d", resp.ErrorCode)
	}
	if resp := w.Receive(token, told).(*kmsg.SASLAuthenticateResponse); resp.ErrorCode != 0 {
		t.Errorf("login: code %d", resp.ErrorCode)
	}
	wireAlive(t, w)
}

// SIGTERM during a mute: what was read is answered at once, what wants no answer
// is stored, and the connection ends; its mutes would have been 40 s.
func TestDrainDuringAMute(t *testing.T) {
	t.Parallel()
	const requests = 8
	r, _ := standing(t, func(c *config.Config) {
		c.Tenant.MaxRequestRate, c.DrainGrace, c.Coalesce = 1, 30*time.Second, 1
	})
	rests, w := r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	w.Ask(wireMetadata("t"))
	mutes(t, r, rig.Acme)
	throttleOf(rests, wireMetadata())
	throttleOf(w, wireMetadata())
	req := wireProduce(-1, "t", 1, wireBatch{values: []string{"v"}}.bytes())
	sent := acksZero("t", requests)
	for i := range requests {
		sent = append(sent, rig.Frame(req, int32(i), "rig")...)
	}
	w.SendRaw(sent) // less than a read buffer
	wireAlive(t, r.Login(t, rig.Globex))
	stopped := wireStop(t, r)
	rests.WantClosed()
	for i := range requests {
		p := w.Receive(req, int32(i)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Errorf("answer %d: code %d, offset %d", i, p.ErrorCode, p.BaseOffset)
		}
	}
	w.WantClosed()
	<-stopped
	wireCounted(t, r, wire.Draining, 3)
	r.StartGateway(t)
	if end := wireEnd(t, r.Login(t, rig.Acme), "t", 0); end != requests {
		t.Errorf("%d records that wanted no answer are stored, want %d", end, requests)
	}
}

// A connection that grows too old during a mute: what is held is answered, and
// then it ends, in the next mute.
func TestAgeDuringAMute(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.Tenant.MaxRequestRate, c.ConnectionMaxAge = 1, 3*time.Second
		}
	})
	mutes(t, r, rig.Acme)
	wireCounted(t, r, wire.ConnectionAge, 0)
	w := r.Login(t, rig.Acme)
	throttleOf(w, wireMetadata())
	id := w.Send(wireMetadata())
	w.Receive(wireMetadata(), id)
	w.WantClosed()
	wireCounted(t, r, wire.ConnectionAge, 1)
}

// A tenant whose limit of memory is below one request of its: that request is let
// in alone, and those behind it in their turn.
func TestRequestAboveTheTenantsLimit(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Tenant.MaxInFlightBytes = 1 }
	})
	first, second := r.Login(t, rig.Acme), r.Login(t, rig.Acme2)
	first.Ask(wireMetadata("t"))
	req := wireProduce(-1, "t", 0, wireBatch{values: []string{string(make([]byte, 900<<10))}}.bytes())
	for range 3 {
		a, b, c := first.Send(req), first.Send(wireMetadata()), second.Send(req)
		for _, p := range []kmsg.ProduceResponseTopicPartition{
			first.Receive(req, a).(*kmsg.ProduceResponse).Topics[0].Partitions[0],
			second.Receive(req, c).(*kmsg.ProduceResponse).Topics[0].Partitions[0],
		} {
			if p.ErrorCode != 0 {
				t.Errorf("code %d", p.ErrorCode)
			}
		}
		first.Receive(wireMetadata(), b)
	}
	if end := wireEnd(t, first, "t", 0); end != 6 {
		t.Errorf("%d records, want 6", end)
	}
}
