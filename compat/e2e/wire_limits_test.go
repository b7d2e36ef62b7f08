package e2e

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// wireSmall starts a rig with few places for connections, without TLS, so that
// a connection is in its place once it is accepted.
func wireSmall(t *testing.T, places int, more ...func(*config.Config)) *rig.Rig {
	t.Helper()
	return rig.Start(t, func(o *rig.Options) {
		o.Plain = true
		o.Config = func(c *config.Config) {
			c.MaxConnections, c.Limits.LimitHold = places, time.Millisecond
			for _, f := range more {
				f(c)
			}
		}
	})
}

// Case C13: a frame before login may have 64 KiB; afterwards the limits of the
// APIs hold.
func TestWirePreloginFrameLimit(t *testing.T) {
	r := rig.Start(t)
	req := wireSample(18, 3)
	w := r.Dial(t)
	w.SendRaw(wirePadded(req, 1, 64<<10))
	w.Receive(req, 1)
	w.SendRaw(wirePadded(req, 2, 64<<10+1)[:100])
	w.WantClosed()
	wireCounted(t, r, wire.FrameOversize, 1)
	w = r.Dial(t)
	w.Ask(wireHandshake(0, "PLAIN"))
	w.SendRaw(binary.BigEndian.AppendUint32(nil, 64<<10+1))
	w.WantClosed()
	wireCounted(t, r, wire.FrameOversize, 2)
}

// Case C14: eight frames are answered before login, and then the connection
// closes; a login within them is one.
func TestWirePreloginFrames(t *testing.T) {
	r := rig.Start(t)
	w := r.Dial(t)
	for range 8 {
		wireAlive(t, w)
	}
	w.WantClosed()
	wireCounted(t, r, wire.LoginFrames, 1)

	w = r.Dial(t)
	for range 6 {
		wireAlive(t, w)
	}
	wireLogin(t, r, w)
	for range 10 {
		wireAlive(t, w)
	}
}

// Case C15: accept to authenticated has one deadline, whatever the client does
// meanwhile: nothing, TLS only, questions, a handshake, or half a frame.
func TestWireLoginTimeout(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.LoginTimeout = 8 * time.Second }
	})
	silent, tls, asked, shaken, half := r.DialPlain(t), r.Dial(t), r.Dial(t), r.Dial(t), r.Dial(t)
	half.SendRaw([]byte{0, 0, 0, 200, 0, 18})
	wireAlive(t, asked)
	shaken.Ask(wireHandshake(0, "PLAIN"))
	in := r.Login(t, rig.Acme)
	for _, w := range []*rig.Wire{silent, tls, asked, shaken, half} {
		w.WantClosed()
	}
	wireCounted(t, r, wire.LoginTimeout, 4)
	wireCounted(t, r, wire.TLSFailed, 1)
	wireAlive(t, in) // the deadline is gone with the login
}

// Case C16: connections that have not logged in hold at most a quarter of the
// places, and the oldest goes first.
func TestWireUnprovedQuarter(t *testing.T) {
	r := wireSmall(t, 16)
	var strangers []*rig.Wire
	for range 4 {
		w := r.Dial(t)
		wireAlive(t, w)
		strangers = append(strangers, w)
	}
	for _, oldest := range strangers {
		next := r.Dial(t)
		wireAlive(t, next)
		oldest.WantClosed()
	}
	wireCounted(t, r, wire.CapacityUnproved, 4)
	for range 12 { // as many as may log in: strangers make room, members do not
		wireAlive(t, r.Login(t, rig.Acme))
	}
}

// Case C18: one tenant cannot take the reserve; another one still gets in. Case
// C17: a process that is full accepts and closes.
func TestWireReserveAndFullProcess(t *testing.T) {
	r := wireSmall(t, 8)
	var members []*rig.Wire
	for range 6 {
		members = append(members, r.Login(t, rig.Acme))
	}
	for range 3 {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "PLAIN"))
		w.Send(wireToken(1, wirePlain("", "me", r.Key(rig.Acme2))))
		w.WantClosed()
	}
	wireCounted(t, r, wire.CapacityTenant, 3)
	rig.Eventually(t, "refused ones have left", func() bool { return r.Gateway.Connections() == 6 })
	for range 2 {
		members = append(members, r.Login(t, rig.Globex))
	}
	for i := range 3 {
		r.Dial(t).WantClosed()
		wireCounted(t, r, wire.CapacityProcess, int64(i+1))
	}
	for _, w := range members {
		wireAlive(t, w)
	}
	if err := members[7].Close(); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "a place is free", func() bool { return r.Gateway.Connections() == 7 })
	wireAlive(t, r.Login(t, rig.Globex))
}

// Case C18: strangers and one tenant together cannot shut the door either: a
// connection that has proved nothing makes room for the next one.
func TestWireStrangersDoNotShutTheDoor(t *testing.T) {
	r := wireSmall(t, 8)
	for range 6 {
		r.Login(t, rig.Acme)
	}
	strangers := []*rig.Wire{r.Dial(t), r.Dial(t)}
	for _, w := range strangers {
		wireAlive(t, w)
	}
	wireAlive(t, r.Login(t, rig.Globex))
	strangers[0].WantClosed()
	wireAlive(t, strangers[1])
	wireAlive(t, r.Login(t, rig.Globex))
	strangers[1].WantClosed()
	wireCounted(t, r, wire.CapacityUnproved, 2)
	if n := r.Gateway.Connections(); n != 8 {
		t.Errorf("%d connections, want 8", n)
	}
}

// Case C16: an idle connection ends after the idle limit; one whose request is
// being served is not idle.
func TestWireIdle(t *testing.T) {
	t.Parallel()
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) { c.Limits.Idle = 3 * time.Second }
	})
	waiting := r.Login(t, rig.Acme)
	waiting.Ask(wireMetadata("idle"))
	hold := relay.holding("/api/v1/fetch")
	req := wireFetch("idle", 0, 0)
	id := waiting.Send(req)
	<-hold.reached
	r.Login(t, rig.Acme).WantClosed()
	wireCounted(t, r, wire.ClientIdle, 1)
	close(hold.release)
	waiting.Receive(req, id)
	waiting.WantClosed()
	wireCounted(t, r, wire.ClientIdle, 2)
}

// Case B5: clients that ask for much and leave with a queue of requests behind
// them leave nothing.
func TestWireClientsLeaveMidAnswer(t *testing.T) {
	r := rig.Start(t)
	seed := r.Login(t, rig.Acme)
	wireMustStore(t, seed, "large", 0, wireBatch{values: []string{string(make([]byte, 1<<20))}})
	for range 10 {
		w := r.Login(t, rig.Acme)
		for range 20 {
			w.Send(wireFetch("large", 0, 0))
		}
		if _, err := io.CopyN(io.Discard, w, 1000); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rig.Eventually(t, "they have left", func() bool { return r.Gateway.Connections() == 1 })
	seed.Ask(kmsg.NewPtrMetadataRequest())
}
