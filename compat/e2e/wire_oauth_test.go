package e2e

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sasl"
)

// bothMechanisms offers PLAIN and OAUTHBEARER.
func bothMechanisms(o *rig.Options) {
	o.Config = func(c *config.Config) { c.SASL = []sasl.Mechanism{sasl.Plain, sasl.OAuthBearer} }
}

func wireBearer(token string) string { return "n,,\x01auth=Bearer " + token + "\x01\x01" }

// B4: OAUTHBEARER carries the same token as PLAIN, at every version.
func TestWireOAuth(t *testing.T) {
	r := rig.Start(t, bothMechanisms)
	for version := range int16(3) {
		w := r.Dial(t)
		if resp := w.Ask(wireHandshake(1, "OAUTHBEARER")).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 0 || len(resp.SupportedMechanisms) != 2 {
			t.Fatalf("handshake: code %d of %q", resp.ErrorCode, resp.SupportedMechanisms)
		}
		resp := w.Ask(wireToken(version, wireBearer(r.Key(rig.Acme)))).(*kmsg.SASLAuthenticateResponse)
		if resp.ErrorCode != 0 || len(resp.SASLAuthBytes) != 0 {
			t.Fatalf("v%d: code %d, auth bytes %q", version, resp.ErrorCode, resp.SASLAuthBytes)
		}
		w.Ask(wireMetadata("of-acme"))
	}
	w := r.Dial(t)
	w.Ask(wireHandshake(0, "OAUTHBEARER"))
	w.SendRaw(wireRaw(wireBearer(r.Key(rig.Acme))))
	if b, err := w.ReadFrame(); err != nil || len(b) != 0 {
		t.Fatalf("version 0 is answered with % x, %v", b, err)
	}
	w.Ask(wireMetadata())
}

// RFC 7628 §3.2: a refusal is told by a challenge first; whatever answers it, the
// login then fails with the sentence, and the connection ends.
func TestWireOAuthRefused(t *testing.T) {
	r := rig.Start(t, bothMechanisms)
	for i, c := range []struct{ name, message, status, sentence, answer string }{
		{"bad token", wireBearer("not-a-token"), "invalid_token", "not a valid token", "\x01"},
		{"missing scope", wireBearer(r.Key(rig.NoRead)), "insufficient_scope", "scope `read`", "\x01"},
		{"malformed", "n,,auth=Bearer", "invalid_request", "RFC 7628", "\x01"},
		{"a good token after a bad one", wireBearer("not-a-token"), "invalid_token", "not a valid token", wireBearer(r.Key(rig.Acme))},
	} {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "OAUTHBEARER"))
		first := w.Ask(wireToken(2, c.message)).(*kmsg.SASLAuthenticateResponse)
		if want := `{"status":"` + c.status + `"}`; first.ErrorCode != 0 || string(first.SASLAuthBytes) != want {
			t.Errorf("%s: code %d and %q, want %q", c.name, first.ErrorCode, first.SASLAuthBytes, want)
		}
		second := w.Ask(wireToken(2, c.answer)).(*kmsg.SASLAuthenticateResponse)
		if second.ErrorCode != 58 || second.ErrorMessage == nil || !strings.Contains(*second.ErrorMessage, c.sentence) {
			t.Errorf("%s: code %d, %v", c.name, second.ErrorCode, second.ErrorMessage)
		}
		w.WantClosed()
		wireCounted(t, r, wire.LoginRefused, int64(i+1))
	}
}

// Nothing but the answer may follow a challenge. A client that takes it for the
// answer itself, or comes with something else, was refused all the same.
func TestWireOAuthRefusalUnanswered(t *testing.T) {
	r := rig.Start(t, bothMechanisms)
	for i, then := range []func(*rig.Wire){
		func(w *rig.Wire) { _ = w.Close() },
		func(w *rig.Wire) { w.Send(wireMetadata()); w.WantClosed() },
	} {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "OAUTHBEARER"))
		w.Ask(wireToken(2, wireBearer("not-a-token")))
		then(w)
		wireCounted(t, r, wire.LoginRefused, int64(i+1))
	}
}

// Where only PLAIN is offered OAUTHBEARER is 33, with the true list.
func TestWireOAuthNotOffered(t *testing.T) {
	w := rig.Start(t).Dial(t)
	resp := w.Ask(wireHandshake(1, "OAUTHBEARER")).(*kmsg.SASLHandshakeResponse)
	if resp.ErrorCode != 33 || len(resp.SupportedMechanisms) != 1 || resp.SupportedMechanisms[0] != "PLAIN" {
		t.Errorf("code %d, %q", resp.ErrorCode, resp.SupportedMechanisms)
	}
}

// A real client produces with nothing but a token; a bad one is told so.
func TestOAuthClient(t *testing.T) {
	r := rig.Start(t, bothMechanisms)
	client := func(token string) *kgo.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(r.Addr), kgo.DialTLSConfig(r.TLS()), kgo.AllowAutoTopicCreation(),
			kgo.SASL(oauth.Auth{Token: token}.AsMechanism()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	ctx := rig.Context(t)
	if err := client(r.Key(rig.Acme)).ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Error(err)
	}
	if err := client("not-a-token").Ping(ctx); err == nil || !strings.Contains(err.Error(), "the bearer is not a valid token") {
		t.Errorf("a bad token: %v", err)
	}
}
