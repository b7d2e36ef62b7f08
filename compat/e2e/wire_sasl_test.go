package e2e

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

func wireHandshake(version int16, mechanism string) *kmsg.SASLHandshakeRequest {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Version, req.Mechanism = version, mechanism
	return req
}

func wireToken(version int16, token string) *kmsg.SASLAuthenticateRequest {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.Version, req.SASLAuthBytes = version, []byte(token)
	return req
}

// wirePlain is a PLAIN token.
func wirePlain(authzid, user, password string) string {
	return authzid + "\x00" + user + "\x00" + password
}

// wireRaw is the bare token of the version 0 dialogue.
func wireRaw(token string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)
}

// wireSay is the sentence and the code of a login over SaslAuthenticate 2.
func wireSay(w *rig.Wire, token string) (string, int16) {
	w.Ask(wireHandshake(1, "PLAIN"))
	resp := w.Ask(wireToken(2, token)).(*kmsg.SASLAuthenticateResponse)
	if resp.ErrorMessage == nil {
		return "", resp.ErrorCode
	}
	return *resp.ErrorMessage, resp.ErrorCode
}

// Case C1: the version 0 dialogue. The token has no Kafka header; success is
// four zero bytes and then the connection is logged in; failure is a close
// without a byte.
func TestWireSASLVersion0(t *testing.T) {
	r := rig.Start(t)
	w := r.Dial(t)
	w.Ask(wireHandshake(0, "PLAIN"))
	w.SendRaw(wireRaw(wirePlain("", "me", r.Key(rig.Acme))))
	if b, err := w.ReadFrame(); err != nil || len(b) != 0 {
		t.Fatalf("success is answered with % x, %v; want an empty frame", b, err)
	}
	w.Ask(wireMetadata())

	n := int64(0)
	for name, token := range map[string]string{
		"bad token": wirePlain("", "me", "qk_live_no"), "empty": "", "no NUL": "me", "not a token": "\x00\x00\x00",
	} {
		w := r.Dial(t)
		w.Ask(wireHandshake(0, "PLAIN"))
		w.SendRaw(wireRaw(token))
		w.WantClosed()
		if n++; t.Failed() {
			t.Fatal(name)
		}
		wireCounted(t, r, wire.LoginRefused, n)
	}
}

// Case C1: the version 1 dialogue, at every version of SaslAuthenticate.
// Case C4: success carries empty bytes, not null, and no lifetime.
func TestWireSASLVersion1(t *testing.T) {
	r := rig.Start(t)
	for version := range int16(3) {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "PLAIN"))
		resp := w.Ask(wireToken(version, wirePlain("", "me", r.Key(rig.Acme)))).(*kmsg.SASLAuthenticateResponse)
		if resp.ErrorCode != 0 || resp.ErrorMessage != nil || resp.SASLAuthBytes == nil || len(resp.SASLAuthBytes) != 0 || resp.SessionLifetimeMillis != 0 {
			t.Errorf("v%d: %+v", version, resp)
		}
		w.Ask(wireMetadata())

		// Case C9: a second login changes nothing, and the connection lives.
		if hs := w.Ask(wireHandshake(1, "PLAIN")).(*kmsg.SASLHandshakeResponse); hs.ErrorCode != 34 {
			t.Errorf("a second handshake is answered with code %d, want 34", hs.ErrorCode)
		}
		again := w.Ask(wireToken(version, wirePlain("", "me", r.Key(rig.Globex)))).(*kmsg.SASLAuthenticateResponse)
		if again.ErrorCode != 34 {
			t.Errorf("a second login is answered with code %d, want 34", again.ErrorCode)
		}
		w.Ask(wireMetadata())
	}
}

// Case C2: a mechanism that is not offered is 33 with the true list, at both
// versions, and the connection stays usable.
func TestWireSASLMechanisms(t *testing.T) {
	w := func() *rig.Wire {
		r := rig.Start(t)
		w := r.Dial(t)
		t.Cleanup(func() { wireLogin(t, r, w) })
		return w
	}()
	for i, mechanism := range []string{"SCRAM-SHA-256", "", "plain", "OAUTHBEARER", strings.Repeat("P", 30_000)} {
		resp := w.Ask(wireHandshake(int16(i%2), mechanism)).(*kmsg.SASLHandshakeResponse)
		if resp.ErrorCode != 33 || !slices.Equal(resp.SupportedMechanisms, []string{"PLAIN"}) {
			t.Errorf("%.20q: code %d, mechanisms %v", mechanism, resp.ErrorCode, resp.SupportedMechanisms)
		}
	}
}

func wireLogin(t *testing.T, r *rig.Rig, w *rig.Wire) {
	t.Helper()
	if text, code := wireSay(w, wirePlain("", "me", r.Key(rig.Acme))); code != 0 {
		t.Errorf("the login is refused: %d %s", code, text)
	}
}

// Case C3: before login only 17, 18 and 36 are answered; everything else closes,
// also between handshake and token, and a token without a handshake does.
func TestWireSASLGate(t *testing.T) {
	r := rig.Start(t)
	for key := int16(-1); key < 100; key++ {
		if key == 17 || key == 18 {
			continue
		}
		w := r.Dial(t)
		version := int16(0)
		for _, row := range api.Table() {
			if row.Key == key {
				version = row.Max
			}
		}
		if key == 3 || key == 0 {
			w.Ask(wireHandshake(1, "PLAIN"))
		}
		var body []byte
		if req := kmsg.RequestForKey(key); req != nil {
			req.SetVersion(version)
			body = req.AppendTo(nil)
		}
		w.SendRaw(wireFrame(key, version, 1, nil, []byte{0}, body))
		w.WantClosed()
	}
	wireCounted(t, r, wire.OutOfOrderLogin, 1)
	after := int64(0)
	for _, row := range api.Table() {
		if row.Phase == api.AfterLogin {
			after++
		}
	}
	wireCounted(t, r, wire.BeforeLogin, after)
}

// Case C5: every shape of a PLAIN token.
func TestWireSASLPlainTokens(t *testing.T) {
	r := rig.Start(t)
	key := r.Key(rig.Acme)
	for _, test := range []struct {
		name, token string
		code        int16
		says        string
	}{
		{"authzid empty", wirePlain("", "me", key), 0, ""},
		{"authzid equal", wirePlain("me", "me", key), 0, ""},
		{"authzid different", wirePlain("you", "me", key), 58, "authorization identity"},
		{"user in UTF-8", wirePlain("", "Zoë 🐝", key), 0, ""},
		{"user not UTF-8", wirePlain("", "\xff\xfe", key), 0, ""},
		{"user is the key", wirePlain("", key, key), 0, ""},
		{"no user", wirePlain("", "", key), 58, "no username"},
		{"no password", wirePlain("", "me", ""), 58, "no password"},
		{"nothing", wirePlain("", "", ""), 58, "no username"},
		{"no bytes", "", 58, "malformed"},
		{"no NUL", "me" + key, 58, "malformed"},
		{"one NUL", "me\x00" + key, 58, "malformed"},
		{"NUL inside", wirePlain("", "me", key[:8]+"\x00"+key[8:]), 58, "malformed"},
		{"line break", wirePlain("", "me", key+"\n"), 58, "character"},
		{"16 KiB", wirePlain("", "me", strings.Repeat("k", 16<<10)), 58, "not a valid token"},
		{"16 KiB and a byte", wirePlain("", "me", strings.Repeat("k", 16<<10+1)), 58, "16 KiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text, code := wireSay(r.Dial(t), test.token)
			if code != test.code || !strings.Contains(text, test.says) {
				t.Errorf("code %d %q, want %d %q", code, text, test.code, test.says)
			}
			if strings.Contains(text, key) || strings.Contains(text, "Zoë") {
				t.Errorf("the sentence repeats the client: %q", text)
			}
		})
	}
}

// Case C7, C8: a bad token's sentence is read in full before the end of the
// stream, also with a request pipelined behind it; the socket is held for
// 150 ms; what comes after is never answered.
func TestWireSASLRefusalIsRead(t *testing.T) {
	r := rig.Start(t)
	const hold = 150 * time.Millisecond
	if d := config.Defaults().Limits.RefusalHold; d < hold {
		t.Errorf("a refusal is held %v", d)
	}
	for _, late := range []bool{false, true} {
		w := r.Dial(t)
		hs, auth := wireHandshake(1, "PLAIN"), wireToken(0, wirePlain("", "me", "qk_live_wrong"))
		sent := append(rig.Frame(hs, 1, "rig"), rig.Frame(auth, 2, "rig")...)
		if !late {
			sent = append(sent, rig.Frame(wireMetadata("secret"), 3, "rig")...)
		}
		begin := time.Now() // not after the answer left
		w.SendRaw(sent)
		w.Receive(hs, 1)
		resp := w.Receive(auth, 2).(*kmsg.SASLAuthenticateResponse)
		if resp.ErrorCode != 58 || resp.ErrorMessage == nil || !strings.Contains(*resp.ErrorMessage, "not a valid token") {
			t.Fatalf("%+v", resp)
		}
		if late {
			w.SendRaw(rig.Frame(wireMetadata("secret"), 3, "rig"))
		}
		w.WantClosed()
		if d := time.Since(begin); d < hold {
			t.Errorf("held %v, want %v", d, hold)
		}
	}
	wireCounted(t, r, wire.LoginRefused, 2)
}

// Case C10: SASL off. Nothing is to be authenticated, and everything works.
func TestWireSASLOff(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) { o.OwnKey = rig.Acme })
	w := r.Dial(t)
	for version := range int16(2) {
		if resp := w.Ask(wireHandshake(version, "PLAIN")).(*kmsg.SASLHandshakeResponse); resp.ErrorCode != 34 {
			t.Errorf("handshake v%d: code %d, want 34", version, resp.ErrorCode)
		}
	}
	for version := range int16(3) {
		resp := w.Ask(wireToken(version, wirePlain("", "me", "x"))).(*kmsg.SASLAuthenticateResponse)
		if resp.ErrorCode != 34 || resp.ErrorMessage == nil || !strings.Contains(*resp.ErrorMessage, "no SASL") {
			t.Errorf("v%d: %+v", version, resp)
		}
	}
	w.Ask(wireMetadata("open"))
}

// Case C11: one sentence for a bad token, a key of another cluster and a name
// that no cluster has; a suspension is told to a proven key alone.
func TestWireSASLSentences(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.ForwardSNIHost = true
			c.AuthCache, c.Limits.RefusalHold = 0, time.Millisecond
		}
	})
	ask := func(name, key string) string {
		t.Helper()
		text, code := wireSay(r.DialAs(t, name), wirePlain("", "me", key))
		if code != 0 && code != 58 {
			t.Errorf("%s: code %d", name, code)
		}
		return text
	}
	if text := ask("acme.localhost", r.Key(rig.Acme)); text != "" {
		t.Fatalf("a good key is refused: %s", text)
	}
	if text := ask(rig.Host, r.Key(rig.Globex)); text != "" {
		t.Fatalf("a good key is refused: %s", text)
	}
	one := ask("acme.localhost", "qk_live_unknown")
	if !strings.Contains(one, "not a valid token") {
		t.Errorf("a bad token is told %q", one)
	}
	scope := ask("acme.localhost", r.Key(rig.NoRead))
	for _, want := range []string{"HTTP 403", "SCOPE", "not a bad password", "read", "Metadata"} {
		if !strings.Contains(scope, want) {
			t.Errorf("a missing scope is told %q, without %q", scope, want)
		}
	}
	strangers := map[string]func() string{
		"bad token, shared name":     func() string { return ask(rig.Host, "qk_live_unknown") },
		"bad token, no key at all":   func() string { return ask(rig.Host, "secret") },
		"bad token, unknown name":    func() string { return ask("nobody.localhost", "qk_live_unknown2") },
		"key of another cluster":     func() string { return ask("acme.localhost", r.Key(rig.Globex)) },
		"key of another, no scope":   func() string { return ask("globex.localhost", r.Key(rig.NoRead)) },
		"good key, unknown name":     func() string { return ask("nobody.localhost", r.Key(rig.Acme)) },
		"key without scope, unknown": func() string { return ask("nobody.localhost", r.Key(rig.NoRead)) },
	}
	for name, ask := range strangers {
		if got := ask(); got != one {
			t.Errorf("%s: %q\nwant the one sentence: %q", name, got, one)
		}
	}
	if err := r.Cell.Control().SetStatus("acme", control.Suspended); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acme.localhost", rig.Host} {
		if text := ask(name, r.Key(rig.Acme2)); !strings.Contains(text, "suspended") {
			t.Errorf("%s: a key of a suspended cluster is told %q", name, text)
		}
	}
	for name, ask := range map[string]func() string{
		"bad token":              func() string { return ask("acme.localhost", "qk_live_unknown3") },
		"key of another cluster": func() string { return ask("acme.localhost", r.Key(rig.Produce)+"x") },
		"other cluster's key":    func() string { return ask("acme.localhost", r.Key(rig.Globex)) },
	} {
		if got := ask(); got != one {
			t.Errorf("suspended, %s: %q\nwant the one sentence: %q", name, got, one)
		}
	}
}

// Case C17: a refusal's text reaches the credential it is about and no other
// one, however close they come.
func TestWireSASLRefusalIsOwn(t *testing.T) {
	r := rig.Start(t)
	for range 3 { // the later rounds meet what the gateway remembers
		for key, says := range map[string]string{rig.NoRead: "SCOPE", rig.Acme: "", rig.Globex: "", rig.Consume: ""} {
			text, code := wireSay(r.Dial(t), wirePlain("", "me", r.Key(key)))
			if !strings.Contains(text, says) || (code == 0) != (says == "") {
				t.Errorf("%s: code %d %q", key, code, text)
			}
		}
		if text, code := wireSay(r.Dial(t), wirePlain("", "me", "qk_live_wrong")); code != 58 || strings.Contains(text, "SCOPE") {
			t.Errorf("bad token: code %d %q", code, text)
		}
	}
}

// Case C12: a cell that is down at login closes the connection without an
// answer: 58 would make a fleet give up.
func TestWireSASLCellDown(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	relay.cut.Store(true)
	for _, version := range []int16{0, 1} {
		w := r.Dial(t)
		w.Ask(wireHandshake(version, "PLAIN"))
		if token := wirePlain("", "me", r.Key(rig.Acme)); version == 0 {
			w.SendRaw(wireRaw(token))
		} else {
			w.Send(wireToken(1, token))
		}
		w.WantClosed()
	}
	wireCounted(t, r, wire.LoginUnsure, 2)
	relay.cut.Store(false)
	// "Could not be checked" is remembered for a second; then the key works.
	rig.Eventually(t, "the login succeeds again", func() bool {
		w := r.Dial(t)
		w.Ask(wireHandshake(1, "PLAIN"))
		w.Send(wireToken(1, wirePlain("", "me", r.Key(rig.Acme))))
		b, err := w.ReadFrame()
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		return err == nil && len(b) > 0
	})
}
