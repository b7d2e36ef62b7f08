package e2e

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// standing starts a system whose clock stands until it is moved, so that a rate
// is kept to the millisecond.
func standing(t *testing.T, configure func(*config.Config)) (r *rig.Rig, move func(time.Duration)) {
	t.Helper()
	var moved atomic.Int64
	began := time.Now()
	r = rig.Start(t, func(o *rig.Options) {
		o.Clock = func() time.Time { return began.Add(time.Duration(moved.Load())) }
		o.Config = configure
	})
	return r, func(d time.Duration) { moved.Add(int64(d)) }
}

// throttleOf asks and returns what the answer says of throttling, in ms.
func throttleOf(w *rig.Wire, req kmsg.Request) int32 {
	resp := w.Ask(req)
	ms, _ := resp.(kmsg.ThrottleResponse).Throttle()
	return ms
}

// A tenant over its request rate is told so first and muted then, on all its
// connections together; another tenant is not.
func TestTenantRequestRate(t *testing.T) {
	t.Parallel()
	r, _ := standing(t, func(c *config.Config) { c.Tenant.MaxRequestRate = 2 })
	w, sibling, other := r.Login(t, rig.Acme), r.Login(t, rig.Acme2), r.Login(t, rig.Globex)
	for range 2 { // a second's worth
		if ms := throttleOf(w, wireMetadata()); ms != 0 {
			t.Errorf("within the rate: throttled for %d ms", ms)
		}
	}
	if ms := throttleOf(sibling, wireMetadata()); ms != 500 {
		t.Errorf("over it on another connection of the tenant: %d ms, want 500", ms)
	}
	began := time.Now()
	if ms := throttleOf(w, wireMetadata()); ms != 1000 {
		t.Errorf("over it by two: %d ms, want 1000", ms)
	}
	if ms := throttleOf(w, wireMetadata()); ms != 1500 {
		t.Errorf("over it by three: %d ms, want 1500", ms)
	}
	if waited := time.Since(began); waited < time.Second { // from before the mute, so never less
		t.Errorf("a client that does not wait was answered after %v", waited)
	}
	for range 2 {
		if ms := throttleOf(other, wireMetadata()); ms != 0 {
			t.Errorf("the other tenant is throttled for %d ms", ms)
		}
	}
}

// The answer comes before the mute, whatever the version; and the mute ends with
// the credential.
func TestTenantMuteComesAfter(t *testing.T) {
	t.Parallel()
	r, move := standing(t, func(c *config.Config) { c.Tenant.MaxRequestRate, c.Reverify = 1, time.Minute })
	throttleOf(r.Login(t, rig.Acme2), wireMetadata())
	for i := range 7 {
		old := kmsg.NewPtrListOffsetsRequest() // of a time before KIP-219: its client will not wait by itself
		old.Version = 2
		w, began := r.Login(t, rig.Acme2), time.Now()
		if ms := throttleOf(w, old); ms != min(int32(i+1), 5)*1000 {
			t.Errorf("over the rate by %d: %d ms", i+1, ms)
		}
		if waited := time.Since(began); waited >= 5*time.Second {
			t.Errorf("the answer came after %v", waited)
		}
	}
	w := r.Login(t, rig.Acme2)
	throttleOf(w, wireMetadata())
	began := time.Now()
	w.Send(wireMetadata())
	r.Revoke(t, rig.Acme2)
	move(time.Minute)
	w.WantClosed()
	if waited := time.Since(began); waited >= 5*time.Second {
		t.Errorf("a muted connection was closed after %v", waited)
	}
	wireCounted(t, r, wire.Revoked, 9)
}

// What keeps a member alive is counted, never told to wait, and passes a mute
// with what came before it on its connection.
func TestTenantMuteKeepsMembers(t *testing.T) {
	t.Parallel()
	r, _ := standing(t, func(c *config.Config) { c.Tenant.MaxRequestRate, c.Group.JoinDelay = 1, 0 })
	m := newMember(t, r.Login(t, rig.Acme), "kept", true)
	m.join("t")
	if got := m.sendSync(m.id, "all")(); got.ErrorCode != 0 || got.ThrottleMillis != 0 {
		t.Fatalf("SyncGroup over the rate: %+v", got)
	}
	if ms := throttleOf(m.Wire, wireMetadata()); ms != 1000 {
		t.Errorf("a connection of a member is told to wait for %d ms, want 1000", ms)
	}
	beat := m.at(kmsg.NewPtrHeartbeatRequest()).(*kmsg.HeartbeatRequest)
	beat.Group, beat.MemberID, beat.Generation = m.group, m.id, m.generation
	for range 3 {
		between := wireMetadata()
		first := m.Send(between)
		second := m.Send(beat)
		m.Receive(between, first)
		if got := m.Receive(beat, second).(*kmsg.HeartbeatResponse); got.ErrorCode != 0 || got.ThrottleMillis != 0 {
			t.Errorf("a heartbeat over the rate: %+v", got)
		}
	}
}

// A tenant's own limit of connections closes a login that is one too many, after
// it was held; others of the process get in.
func TestTenantConnections(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Plain = true
		o.Config = func(c *config.Config) { c.Tenant.MaxConnections, c.Limits.LimitHold = 2, time.Millisecond }
	})
	first, second := r.Login(t, rig.Acme), r.Login(t, rig.Acme2)
	wireTurnedAway(t, r, rig.Acme)
	wireCounted(t, r, wire.TenantConnections, 1)
	wireAlive(t, r.Login(t, rig.Globex))
	wireAlive(t, second)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "a place is free", func() bool { return r.Gateway.Connections() == 2 })
	wireAlive(t, r.Login(t, rig.Acme))
}

// A tenant that logs in too often is turned away, and another one is not; the
// rate is the tenant's, whatever it closes.
func TestTenantConnectRate(t *testing.T) {
	r, move := standing(t, func(c *config.Config) { c.Tenant.ConnectRate, c.Limits.LimitHold = 1, time.Millisecond })
	for range 10 { // what ten seconds allow
		if err := r.Login(t, rig.Acme).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		wireTurnedAway(t, r, rig.Acme)
	}
	wireCounted(t, r, wire.TenantConnectRate, 3)
	wireAlive(t, r.Login(t, rig.Globex))
	move(time.Second)
	wireAlive(t, r.Login(t, rig.Acme))
	wireTurnedAway(t, r, rig.Acme)
	if n := r.Gateway.Closed(wire.CapacityTenant); n != 0 {
		t.Errorf("%d connections are counted as over the process's limit", n)
	}
}

// wireTurnedAway logs in where the gateway closes instead of answering.
func wireTurnedAway(t *testing.T, r *rig.Rig, key string) {
	t.Helper()
	w := r.Dial(t)
	w.Ask(wireHandshake(1, "PLAIN"))
	w.Send(wireToken(1, wirePlain("", "me", r.Key(key))))
	w.WantClosed()
}

// A tenant whose requests take what it may is read no more until they are
// answered; another one is.
func TestTenantInFlightBytes(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Plain = true
		o.Config = func(c *config.Config) { c.Tenant.MaxInFlightBytes = 1 << 20 }
	})
	big := r.Login(t, rig.Acme)
	frame := rig.Frame(wireProduce(-1, "big", 0, wireBatch{values: []string{strings.Repeat("x", 500<<10)}}.bytes()), 7, "rig")
	big.SendRaw(frame[:len(frame)/2])
	waits := r.Login(t, rig.Acme2)
	id := waits.Send(wireMetadata())
	wireAlive(t, r.Login(t, rig.Globex))
	if err := waits.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if b, err := waits.ReadFrame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over the limit: %d bytes, %v", len(b), err)
	}
	if err := waits.SetReadDeadline(time.Now().Add(rig.Patience)); err != nil {
		t.Fatal(err)
	}
	big.SendRaw(frame[len(frame)/2:])
	waits.Receive(wireMetadata(), id)
}

// Clients that a tenant's rate slows down lose nothing: acks=0 has no answer to
// say so in, and is slowed down all the same.
func TestTenantRateWithoutAnswers(t *testing.T) {
	t.Parallel()
	r, _ := standing(t, func(c *config.Config) { c.Tenant.MaxRequestRate = 4 })
	w := r.Login(t, rig.Acme)
	wireMustStore(t, w, "quiet", 0, wireBatch{values: []string{"0"}})
	began := time.Now()
	for _, v := range []string{"1", "2", "3", "4", "5"} {
		w.Send(wireProduce(0, "quiet", 0, wireBatch{values: []string{v}}.bytes()))
	}
	if end := wireEnd(t, w, "quiet", 0); end != 6 {
		t.Errorf("the log ends at %d, want 6", end)
	}
	if waited := time.Since(began); waited < 250*time.Millisecond {
		t.Errorf("two requests over a rate of 4/s took %v", waited)
	}
}
