package sasl_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

func oauth() *sasl.Exchange {
	x := sasl.New([]sasl.Mechanism{sasl.OAuthBearer, sasl.Plain})
	x.Handshake(1, "OAUTHBEARER")
	return x
}

func TestOAuthAccepted(t *testing.T) {
	long := strings.Repeat("t", sasl.MaxToken)
	for _, c := range []struct{ name, message, user, token string }{
		{"usual", "n,,\x01auth=Bearer qk_1\x01\x01", "", "qk_1"},
		{"lower case", "n,,\x01auth=bearer qk_1\x01\x01", "", "qk_1"},
		{"who it is for", "n,a=app-7,\x01auth=Bearer t\x01\x01", "app-7", "t"},
		{"nobody named", "n,a=,\x01auth=Bearer t\x01\x01", "", "t"},
		{"the token as label", "n,a=same,\x01auth=Bearer same\x01\x01", tenancy.Redacted, "same"},
		{"no channel binding here", "y,,\x01auth=Bearer t\x01\x01", "", "t"},
		{"extensions", "n,,\x01a=b\x01auth=Bearer t\x01host=\x01c=d=e\x01\x01", "", "t"},
		{"16 KiB", "n,,\x01auth=Bearer " + long + "\x01\x01", "", long},
	} {
		creds, refusal := oauth().Parse([]byte(c.message))
		if refusal != nil {
			t.Errorf("%s: %s", c.name, refusal.Message)
			continue
		}
		if creds.User != c.user || !creds.Token.Equal(tenancy.NewSecret(c.token)) {
			t.Errorf("%s: user %q, or another token", c.name, creds.User)
		}
	}
}

func TestOAuthRefused(t *testing.T) {
	for _, c := range []struct{ name, message, want string }{
		{"empty", "", "malformed"},
		{"a lone separator", "\x01", "malformed"},
		{"a PLAIN token", "\x00u\x00SENTINEL", "malformed"},
		{"a bare token", "SENTINEL", "malformed"},
		{"no end", "n,,\x01auth=Bearer SENTINEL\x01", "malformed"},
		{"bytes behind the end", "n,,\x01auth=Bearer SENTINEL\x01\x01x", "malformed"},
		{"no header", "\x01auth=Bearer SENTINEL\x01\x01", "malformed"},
		{"channel binding", "p=tls-unique,,\x01auth=Bearer SENTINEL\x01\x01", "malformed"},
		{"a header of one comma", "n,\x01auth=Bearer SENTINEL\x01\x01", "malformed"},
		{"three commas", "n,a=b,c,\x01auth=Bearer SENTINEL\x01\x01", "malformed"},
		{"a name without a=", "n,b,\x01auth=Bearer SENTINEL\x01\x01", "malformed"},
		{"a pair without =", "n,,\x01SENTINEL\x01auth=Bearer t\x01\x01", "malformed"},
		{"two tokens", "n,,\x01auth=Bearer SENTINEL\x01auth=Bearer t\x01\x01", "malformed"},
		{"another scheme", "n,,\x01auth=Basic SENTINEL\x01\x01", "malformed"},
		{"no scheme", "n,,\x01auth=SENTINEL\x01\x01", "malformed"},
		{"no pair", "n,,\x01\x01", "malformed"},
		{"no token", "n,,\x01auth=Bearer \x01\x01", "no token"},
		{"only extensions", "n,,\x01a=SENTINEL\x01\x01", "no token"},
		{"a space in it", "n,,\x01auth=Bearer  SENTINEL\x01\x01", "space"},
		{"too long", "n,,\x01auth=Bearer " + strings.Repeat("t", sasl.MaxToken+1) + "\x01\x01", "16 KiB"},
	} {
		creds, refusal := oauth().Parse([]byte(c.message))
		switch {
		case refusal == nil:
			t.Errorf("%s: accepted", c.name)
		case !strings.Contains(refusal.Message, c.want) || strings.Contains(refusal.Message, "SENTINEL"):
			t.Errorf("%s: %q", c.name, refusal.Message)
		case creds.User != "" || !creds.Token.IsZero():
			t.Errorf("%s: a refusal carries credentials", c.name)
		}
	}
}

// The challenge is answered before the login fails, and nothing revives it.
func TestOAuthChallenge(t *testing.T) {
	x := oauth()
	if got := string(x.Challenge("invalid_token", "why")); got != `{"status":"invalid_token"}` {
		t.Errorf("challenge %q", got)
	}
	expect(t, x, "framed")
	if code, _ := x.Handshake(1, "PLAIN"); code != 34 {
		t.Errorf("another handshake: code %d", code)
	}
	if x.Challenge("invalid_token", "again") != nil {
		t.Error("a second challenge")
	}
	if _, refusal := x.Parse([]byte("n,,\x01auth=Bearer t\x01\x01")); refusal == nil {
		t.Error("a token is read after the refusal")
	}
	if sentence, ok := x.Told(); sentence != "why" || !ok {
		t.Errorf("told %q, %v", sentence, ok)
	}
	x.Failed()
	expect(t, x, "")

	for _, c := range []struct {
		version   int16
		mechanism string
	}{{0, "OAUTHBEARER"}, {1, "PLAIN"}} {
		x := sasl.New([]sasl.Mechanism{sasl.OAuthBearer, sasl.Plain})
		x.Handshake(c.version, c.mechanism)
		if x.Challenge("invalid_token", "why") != nil {
			t.Errorf("%+v has a challenge", c)
		}
	}
}

// Whatever arrives, a token is read or refused, and stands in it verbatim.
func FuzzOAuth(f *testing.F) {
	for _, seed := range []string{
		"n,,\x01auth=Bearer t\x01\x01", "n,a=u,\x01auth=Bearer eyJ.e30.x\x01traceId=1\x01\x01", "\x01", "", "n,,", "p=x,,\x01\x01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		before := bytes.Clone(message)
		c, refusal := oauth().Parse(message)
		if !bytes.Equal(before, message) {
			t.Fatal("the input was changed")
		}
		if refusal != nil {
			if c.User != "" || !c.Token.IsZero() || refusal.Message == "" {
				t.Fatalf("refusal %q with credentials %v", refusal.Message, c)
			}
			return
		}
		_, rest, _ := bytes.Cut(message, []byte("auth="))
		_, rest, _ = bytes.Cut(rest, []byte{' '})
		if token, _, _ := bytes.Cut(rest, []byte{1}); !c.Token.Equal(tenancy.NewSecret(string(token))) && bytes.Count(message, []byte("auth=")) == 1 {
			t.Fatal("the token is not what stands behind auth=Bearer")
		}
	})
}
