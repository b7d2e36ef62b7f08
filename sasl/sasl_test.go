package sasl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

func plain() *sasl.Exchange { return sasl.New([]sasl.Mechanism{sasl.Plain}) }

func handshake(t *testing.T, x *sasl.Exchange, version int16, mechanism string, want int16) {
	t.Helper()
	code, mechanisms := x.Handshake(version, mechanism)
	if code != want {
		t.Errorf("handshake v%d %q: code %d, want %d", version, mechanism, code, want)
	}
	if x.Enabled() && !reflect.DeepEqual(mechanisms, []string{"PLAIN"}) {
		t.Errorf("handshake v%d %q lists %q; old librdkafka needs the true list with every code", version, mechanism, mechanisms)
	}
}

func state(x *sasl.Exchange) string {
	var s []string
	if x.ExpectsRaw() {
		s = append(s, "raw")
	}
	if x.MayAuthenticate() {
		s = append(s, "framed")
	}
	if x.Authenticated() {
		s = append(s, "authenticated")
	}
	return strings.Join(s, "+")
}

func expect(t *testing.T, x *sasl.Exchange, want string) {
	t.Helper()
	if got := state(x); got != want {
		t.Errorf("state %q, want %q", got, want)
	}
}

func TestFramedDialogue(t *testing.T) {
	x := plain()
	expect(t, x, "")
	handshake(t, x, 1, "PLAIN", 0)
	expect(t, x, "framed")
	c, refusal := x.Parse([]byte("\x00user\x00token"))
	if refusal != nil || c.User != "user" || !c.Token.Equal(tenancy.NewSecret("token")) {
		t.Fatalf("Parse: %+v, %v", c, refusal)
	}
	expect(t, x, "framed")
	x.Succeeded()
	expect(t, x, "authenticated")
	handshake(t, x, 1, "PLAIN", 34)
	handshake(t, x, 0, "PLAIN", 34)
	expect(t, x, "authenticated")
}

func TestRawDialogue(t *testing.T) {
	x := plain()
	handshake(t, x, 0, "PLAIN", 0)
	expect(t, x, "raw")
	if _, refusal := x.Parse([]byte("\x00user\x00token")); refusal != nil {
		t.Fatal(refusal.Message)
	}
	x.Succeeded()
	expect(t, x, "authenticated")
}

// A wrong mechanism changes nothing: the client may ask again.
func TestUnsupportedMechanismKeepsState(t *testing.T) {
	x := plain()
	for _, name := range []string{"SCRAM-SHA-256", "GSSAPI", "OAUTHBEARER", "plain", "", "PLAIN\x00", strings.Repeat("P", 32<<10)} {
		handshake(t, x, 1, name, 33)
		expect(t, x, "")
	}
	handshake(t, x, 1, "PLAIN", 0)
	handshake(t, x, 1, "GSSAPI", 33)
	expect(t, x, "framed")
}

func TestOff(t *testing.T) {
	x := sasl.New(nil)
	code, mechanisms := x.Handshake(1, "PLAIN")
	if code != 34 || mechanisms == nil || len(mechanisms) != 0 || x.Enabled() {
		t.Errorf("code %d, mechanisms %#v, enabled %v", code, mechanisms, x.Enabled())
	}
	expect(t, x, "")
}

// A finished exchange is not an authenticated one (tansu-io/tansu#696).
func TestFailedIsFinal(t *testing.T) {
	for _, version := range []int16{0, 1} {
		x := plain()
		handshake(t, x, version, "PLAIN", 0)
		x.Failed()
		expect(t, x, "")
		handshake(t, x, version, "PLAIN", 34)
		expect(t, x, "")
		if _, refusal := x.Parse([]byte("\x00u\x00p")); refusal == nil {
			t.Error("a failed exchange still reads tokens")
		}
	}
}

func TestParseNeedsAHandshake(t *testing.T) {
	if _, refusal := plain().Parse([]byte("\x00u\x00p")); refusal == nil {
		t.Error("a token without a handshake was read")
	}
}

func TestOfferedListIsCopied(t *testing.T) {
	mechs := []sasl.Mechanism{sasl.Plain}
	x := sasl.New(mechs)
	mechs[0] = "NONE"
	handshake(t, x, 1, "PLAIN", 0)
}
