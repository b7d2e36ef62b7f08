package e2e

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// wireHeld is what a process holds: goroutines and descriptors.
type wireHeld struct{ goroutines, files int }

func wireHolds() wireHeld {
	files, _ := os.ReadDir("/proc/self/fd") // none where there is no such folder
	return wireHeld{runtime.NumGoroutine(), len(files)}
}

// wireBack waits until a process holds no more than it did, but for what the
// cell's client keeps to use again.
func wireBack(t *testing.T, r *rig.Rig, before wireHeld) {
	t.Helper()
	const kept = 12
	rig.Eventually(t, "goroutines and descriptors are given back", func() bool {
		now := wireHolds()
		return r.Gateway.Connections() == 0 && now.goroutines <= before.goroutines+kept && now.files <= before.files+kept
	})
}

// wireQuiet starts a rig whose refusals are not held, and warms it up.
func wireQuiet(t *testing.T, log *zap.Logger) *rig.Rig {
	t.Helper()
	r := rig.Start(t, func(o *rig.Options) {
		o.Log = log
		o.Config = func(c *config.Config) { c.Limits.RefusalHold = time.Millisecond }
	})
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("warm"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "the first connection has ended", func() bool { return r.Gateway.Connections() == 0 })
	return r
}

// Case H3 and leaks: 500 connections that come and go, at every stage, leave
// nothing behind.
func TestWireLeaksNothing(t *testing.T) {
	r := wireQuiet(t, nil)
	before := wireHolds()
	for i := range 500 {
		var w *rig.Wire
		switch i % 5 {
		case 0:
			w = r.DialPlain(t)
		case 1:
			w = r.DialPlain(t)
			w.SendRaw([]byte{22, 3, 1, 0}) // the beginning of a hello
		case 2:
			w = r.Dial(t)
		case 3:
			w = r.Dial(t)
			w.SendRaw([]byte{0, 0, 1}) // the beginning of a frame
		default:
			w = r.Login(t, rig.Acme)
			req := wireFetch("warm", 0, 0)
			req.MinBytes, req.MaxWaitMillis = 1, 30_000
			w.Send(req) // parked when the client leaves
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wireBack(t, r, before)
}

// Case H3 and leaks: 200 failed logins leave nothing behind.
func TestWireFailedLoginsLeakNothing(t *testing.T) {
	r := wireQuiet(t, nil)
	before := wireHolds()
	for i := range 200 {
		w := r.Dial(t)
		token := wirePlain("", "me", "qk_live_wrong")
		if i%2 == 0 {
			w.Ask(wireHandshake(0, "PLAIN"))
			w.SendRaw(wireRaw(token))
		} else if _, code := wireSay(w, token); code != 58 {
			t.Fatalf("code %d", code)
		}
		w.WantClosed()
	}
	wireCounted(t, r, wire.LoginRefused, 200)
	wireBack(t, r, before)
}

// Case H4: a balancer's probes, which connect and close, are counted and log
// nothing above debug.
func TestWireProbesAreQuiet(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	r := wireQuiet(t, zap.New(core))
	logs.TakeAll()
	for i := range 100 {
		conn, err := net.Dial("tcp", r.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // some balancers reset
			if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wireCounted(t, r, wire.ProbeClosed, 100)
	for _, e := range logs.All() {
		if e.Level > zapcore.DebugLevel {
			t.Errorf("logged: %s %s %v", e.Level, e.Message, e.ContextMap())
		}
	}
}

// Drain: a produce that was received is answered, and what was received behind
// it; then the connection closes and the gateway stops.
func TestWireDrainAnswersProduce(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	w, idle, stranger := r.Login(t, rig.Acme), r.Login(t, rig.Acme), r.Dial(t)
	wireAlive(t, stranger)
	w.Ask(wireMetadata("drain"))
	hold := relay.holding("/api/v1/push")
	req := wireProduce(-1, "drain", 0, wireBatch{values: []string{"v"}}.bytes())
	w.SendRaw(append(rig.Frame(req, 1, "rig"), rig.Frame(req, 2, "rig")...))
	<-hold.reached
	stopped := wireStop(t, r)
	idle.WantClosed()
	stranger.WantClosed()
	close(hold.release)
	for id := range int32(2) {
		p := w.Receive(req, id+1).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(id) {
			t.Errorf("produce %d: code %d, base offset %d", id, p.ErrorCode, p.BaseOffset)
		}
	}
	w.WantClosed()
	<-stopped
	wireCounted(t, r, wire.Draining, 3)
}

// Drain: a parked fetch is answered empty, and its connection closes.
func TestWireDrainAnswersParkedFetch(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("drain"))
	hold := relay.holding("/api/v1/fetch")
	close(hold.release) // only to know that it is there
	req := wireFetch("drain", 0, 0)
	req.MinBytes, req.MaxWaitMillis = 1, 30_000
	id := w.Send(req)
	<-hold.reached
	begin := time.Now()
	stopped := wireStop(t, r)
	p := w.Receive(req, id).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.RecordBatches == nil {
		t.Errorf("%+v", p)
	}
	w.WantClosed()
	<-stopped
	if d := time.Since(begin); d > 15*time.Second {
		t.Errorf("the drain took %v: the fetch was waited for", d)
	}
}

// Drain: who is logging in gets the answer and is then sent away between
// requests. An end before the first answer looks to some clients like a wrong
// address, and they give their records up.
func TestWireDrainFinishesLogins(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.LoginGrace = rig.Patience }
	})
	member, stranger := r.Login(t, rig.Acme), r.Dial(t)
	wireAlive(t, stranger)
	stopped := wireStop(t, r)
	member.WantClosed() // the drain has begun
	stranger.Authenticate(rig.Acme, r.Key(rig.Acme))
	stranger.WantClosed()
	<-stopped
	wireCounted(t, r, wire.Draining, 2)
}

// Drain: what does not end by itself is cut after the grace.
func TestWireDrainCutsAfterGrace(t *testing.T) {
	t.Parallel()
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) { c.DrainGrace = 100 * time.Millisecond }
	})
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("drain"))
	hold := relay.holding("/api/v1/push")
	defer close(hold.release)
	w.Send(wireProduce(-1, "drain", 0, wireBatch{values: []string{"v"}}.bytes()))
	<-hold.reached
	<-wireStop(t, r)
	w.WantClosed()
}

// wireStop drains the gateway while the test goes on.
func wireStop(t *testing.T, r *rig.Rig) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.StopGateway(t)
	}()
	return done
}
