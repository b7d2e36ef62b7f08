package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/sasl"
)

func sessionsLast(d time.Duration) func(*rig.Options) {
	return func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.SessionLife, c.Group.JoinDelay = d, 0
			c.SASL = []sasl.Mechanism{sasl.Plain, sasl.OAuthBearer}
		}
	}
}

// relogin logs a connection in, again if it was in, and returns the answer.
func relogin(w *rig.Wire, password string) *kmsg.SASLAuthenticateResponse {
	w.Ask(wireHandshake(1, "PLAIN"))
	return w.Ask(wireToken(2, wirePlain("", "me", password))).(*kmsg.SASLAuthenticateResponse)
}

// KIP-368: a login is told its lifetime, and may be repeated on its connection,
// with another token of the tenant too; requests go on meanwhile.
func TestWireRelogin(t *testing.T) {
	r := rig.Start(t, sessionsLast(time.Minute))
	w := r.Dial(t)
	first := relogin(w, r.Key(rig.Acme))
	if first.ErrorCode != 0 || first.SessionLifetimeMillis <= 0 || first.SessionLifetimeMillis > 60_000 {
		t.Fatalf("code %d, lifetime %d ms", first.ErrorCode, first.SessionLifetimeMillis)
	}
	w.Ask(wireMetadata("t"))
	if resp := w.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 34 {
		t.Errorf("a login within a second: code %d, want 34", resp.ErrorCode)
	}
	rig.Eventually(t, "a second", func() bool {
		return w.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse).ErrorCode == 0
	})
	wireMustStore(t, w, "t", 0, wireBatch{values: []string{"between handshake and token"}})
	resp := w.Ask(wireToken(2, wirePlain("", "me", r.Key(rig.Consume)))).(*kmsg.SASLAuthenticateResponse)
	if resp.ErrorCode != 0 || resp.SessionLifetimeMillis < first.SessionLifetimeMillis-1000 {
		t.Fatalf("again: code %d, lifetime %d ms", resp.ErrorCode, resp.SessionLifetimeMillis)
	}
	// The new token's rights hold, and it is the one that is watched.
	if p := wireStore(w, "t", 0, wireBatch{values: []string{"v"}}); p.ErrorCode != 29 {
		t.Errorf("a produce under a token without that scope: code %d", p.ErrorCode)
	}
	if p := wireRead(w, "t", 0, 0); len(wireValues(t, p.RecordBatches)) != 1 {
		t.Error("the record is not read")
	}
}

// Another tenant's token, a bad one, another mechanism, the dialogue without
// frames: a connection that is logged in does not become what they say.
func TestWireReloginRefused(t *testing.T) {
	for _, what := range []string{"another tenant's", "a bad one"} {
		r := rig.Start(t, sessionsLast(time.Minute))
		token := map[bool]string{true: r.Key(rig.Globex), false: "not-a-token"}[what == "another tenant's"]
		w := r.Dial(t)
		relogin(w, r.Key(rig.Acme))
		for _, h := range []*kmsg.SASLHandshakeRequest{wireHandshake(0, "PLAIN"), wireHandshake(1, "OAUTHBEARER")} {
			if resp := w.Ask(h).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 34 {
				t.Errorf("handshake %d %s: code %d, want 34", h.Version, h.Mechanism, resp.ErrorCode)
			}
		}
		rig.Eventually(t, "a second", func() bool {
			return w.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse).ErrorCode == 0
		})
		resp := w.Ask(wireToken(2, wirePlain("", "me", token))).(*kmsg.SASLAuthenticateResponse)
		if resp.ErrorCode != 58 {
			t.Errorf("%s: code %d, want 58", what, resp.ErrorCode)
		}
		w.WantClosed()
		wireCounted(t, r, wire.LoginRefused, 1)
	}
	// Without a lifetime a login is for good.
	w := rig.Start(t).Login(t, rig.Acme)
	if resp := w.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 34 {
		t.Errorf("a login that has no end: code %d, want 34", resp.ErrorCode)
	}
}

// What comes after the end is not answered, and who says nothing is let go, out of
// a long poll too.
func TestWireSessionEnds(t *testing.T) {
	r := rig.Start(t, sessionsLast(1500*time.Millisecond))
	talking, idle, polling := r.Login(t, rig.Acme), r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	talking.Ask(wireMetadata("t"))
	poll := wireFetch("t", 0, 0)
	poll.MinBytes, poll.MaxWaitMillis = 1, 50_000
	id := polling.Send(poll)
	for alive := true; alive; {
		if _, err := talking.Write(rig.Frame(wireMetadata("t"), 9, "rig")); err != nil {
			break
		}
		_, err := talking.ReadFrame()
		alive = err == nil
	}
	_ = talking.Close()
	idle.WantClosed()
	if resp := polling.Receive(poll, id).(*kmsg.FetchResponse); resp.ErrorCode != 0 {
		t.Errorf("the long poll: code %d", resp.ErrorCode)
	}
	polling.WantClosed()
	wireCounted(t, r, wire.SessionExpired, 3)
}

// A token that says when it ends is held to it: a key of the cell that expires,
// and one that has expired is no token at all.
func TestWireKeyExpires(t *testing.T) {
	r := rig.Start(t, sessionsLast(time.Hour))
	end := time.Now().Add(30 * time.Second)
	scopes, err := control.ParseScopes("read")
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := r.Cell.Control().CreateKey(control.NewKey{Cluster: "acme", Scopes: scopes, ExpiresAt: end})
	if err != nil {
		t.Fatal(err)
	}
	resp := relogin(r.Dial(t), key)
	if ms := resp.SessionLifetimeMillis; resp.ErrorCode != 0 || ms <= 0 || ms > time.Until(end).Milliseconds()+1000 {
		t.Errorf("code %d, lifetime %d ms of a key that ends in %v", resp.ErrorCode, ms, time.Until(end))
	}
}

// A real client produces and reads through one lifetime after the other, and sees
// no error. (Its idle connections end with their logins.)
func TestReloginClient(t *testing.T) {
	r := rig.Start(t, sessionsLast(3*time.Second))
	c := r.Kafka(t, rig.Acme, kgo.DefaultProduceTopic("t"), kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"))
	ctx := rig.Context(t)
	began, sent, got := time.Now(), 0, 0
	for time.Since(began) < 8*time.Second {
		if err := c.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(sent))).FirstErr(); err != nil {
			t.Fatalf("record %d: %v", sent, err)
		}
		sent++
		f := c.PollRecords(ctx, 1)
		if err := f.Err(); err != nil {
			t.Fatalf("poll: %v", err)
		}
		got += f.NumRecords()
	}
	got += len(pollUntil(t, c, sent-got))
	if got != sent {
		t.Errorf("%d of %d records", got, sent)
	}
}
