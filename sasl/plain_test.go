package sasl_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

func parse(token string) (sasl.Credentials, *sasl.Refusal) {
	x := plain()
	x.Handshake(1, "PLAIN")
	return x.Parse([]byte(token))
}

func TestPlainAccepted(t *testing.T) {
	long := strings.Repeat("t", sasl.MaxToken)
	tests := []struct{ name, token, user, password string }{
		{"usual", "\x00user\x00token", "user", "token"},
		{"user in both places", "user\x00user\x00token", "user", "token"},
		{"16 KiB token", "\x00user\x00" + long, "user", long},
		{"UTF-8 user", "\x00użytkownik\x00token", "użytkownik", "token"},
		{"bad UTF-8 user", "\x00a\xffb\x00token", "a?b", "token"},
		{"line break in user", "\x00a\nFATAL: b\x1b[2J\x00token", "a?FATAL: b?[2J", "token"},
		{"long user", "\x00" + strings.Repeat("u", 40<<10) + "\x00token", strings.Repeat("u", 64) + "…", "token"},
		{"long UTF-8 user", "\x00a" + strings.Repeat("é", 1000) + "\x00token", "a" + strings.Repeat("é", 31) + "…", "token"},
		{"key as user", "\x00qk_live_1234\x00token", tenancy.Redacted, "token"},
		{"JWT as user", "\x00eyJhbGciOiJIUzI1NiJ9.e30.x\x00token", tenancy.Redacted, "token"},
		{"token as user", "\x00same\x00same", tenancy.Redacted, "same"},
		{"token as all three", "same\x00same\x00same", tenancy.Redacted, "same"},
		{"JWT as token", "\x00u\x00eyJhbGciOiJIUzI1NiJ9.e30.-_x=", "u", "eyJhbGciOiJIUzI1NiJ9.e30.-_x="},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, refusal := parse(test.token)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			if c.User != test.user {
				t.Errorf("user %q, want %q", c.User, test.user)
			}
			if !c.Token.Equal(tenancy.NewSecret(test.password)) {
				t.Error("the token is not the password, verbatim")
			}
		})
	}
}

func TestPlainRefused(t *testing.T) {
	tests := []struct{ name, token, want string }{
		{"empty", "", "malformed"},
		{"no NUL", "SENTINEL-user", "malformed"},
		{"one NUL", "SENTINEL-user\x00SENTINEL-token", "malformed"},
		{"NUL in the password", "\x00SENTINEL-user\x00SENTINEL\x00token", "malformed"},
		{"NUL at the end", "\x00SENTINEL-user\x00SENTINEL-token\x00", "malformed"},
		{"only NULs", "\x00\x00", "no username"},
		{"no username", "\x00\x00SENTINEL-token", "no username"},
		{"no username, authzid", "SENTINEL-id\x00\x00SENTINEL-token", "no username"},
		{"no password", "\x00SENTINEL-user\x00", "no password"},
		{"other authzid", "SENTINEL-id\x00SENTINEL-user\x00SENTINEL-token", "an authorization identity was requested that differs from the username"},
		{"authzid in another case", "SENTINEL\x00sentinel\x00SENTINEL-token", "differs from the username"},
		{"token too long", "\x00SENTINEL-user\x00" + strings.Repeat("t", sasl.MaxToken+1), "longer than 16 KiB"},
		{"line break after the token", "\x00SENTINEL-user\x00SENTINEL-token\n", "line break"},
		{"space before the token", "\x00SENTINEL-user\x00 SENTINEL-token", "space"},
		{"quotes around the token", "\x00SENTINEL-user\x00\"SENTINEL-token\"", "quotes"},
		{"not ASCII", "\x00SENTINEL-user\x00SENTINEL-töken", "no token has"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, refusal := parse(test.token)
			if refusal == nil {
				t.Fatalf("accepted as %+v", c)
			}
			if !strings.Contains(refusal.Message, test.want) {
				t.Errorf("message %q does not say %q", refusal.Message, test.want)
			}
			if strings.Contains(strings.ToLower(refusal.Message), "sentinel") {
				t.Errorf("message %q repeats what the client sent", refusal.Message)
			}
			if c.User != "" || !c.Token.IsZero() {
				t.Error("a refusal carries credentials")
			}
		})
	}
}

func TestSafeLabel(t *testing.T) {
	token := tenancy.NewSecret("hunter2-hunter2")
	tests := []struct{ in, want string }{
		{"", ""},
		{"my-app", "my-app"},
		{"consumer-group-1_2.3", "consumer-group-1_2.3"},
		{"hunter2-hunter2", tenancy.Redacted},
		{" hunter2-hunter2 ", tenancy.Redacted},
		{"qk_abc", tenancy.Redacted},
		{"QK_ABC", tenancy.Redacted},
		{"Bearer qk_abc", tenancy.Redacted},
		{"user:qk_abc", tenancy.Redacted},
		{strings.Repeat("x", 100) + " qk_abc", tenancy.Redacted},
		{"my_qk_app", "my_qk_app"},
		{"qk", "qk"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", tenancy.Redacted},
		{"Bearer eyJhbGciOiJIUzI1NiJ9", tenancy.Redacted},
		{"eyJ", "eyJ"},
		{"a\x00b\r\nc", "a?b??c"},
		{"\u202etxet", "?txet"},
		{"\xc3", "?"},
		{strings.Repeat("é", 40), strings.Repeat("é", 32) + "…"},
	}
	for _, test := range tests {
		if got := sasl.SafeLabel(test.in, token); got != test.want {
			t.Errorf("SafeLabel(%q) = %q, want %q", test.in, got, test.want)
		}
	}
	if got := sasl.SafeLabel("", tenancy.Secret{}); got != "" {
		t.Errorf("no token and no text: %q", got)
	}
}

// Whatever arrives, a token is read or refused, and nothing of it is repeated.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{
		"\x00user\x00token", "user\x00user\x00token", "a\x00b\x00c", "", "\x00", "\x00\x00", "\x00\x00\x00",
		"\x00qk_x\x00qk_x", "\x00u\x00eyJhbGciOiJIUzI1NiJ9.e30.x", "\x00\xff\xfe\x00t\r\n", "no nul at all",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, token []byte) {
		before := bytes.Clone(token)
		c, refusal := parse(string(token))
		if !bytes.Equal(before, token) {
			t.Fatal("the input was changed")
		}
		if refusal != nil {
			if c.User != "" || !c.Token.IsZero() || refusal.Message == "" {
				t.Fatalf("refusal %q with credentials %v", refusal.Message, c)
			}
			return
		}
		parts := bytes.Split(token, []byte{0})
		if len(parts) != 3 || !c.Token.Equal(tenancy.NewSecret(string(parts[2]))) {
			t.Fatal("the token is not the third part, verbatim")
		}
		if c.User == "" || len(c.User) > 3*64+len("…") || !utf8.ValidString(c.User) || strings.ContainsAny(c.User, "\x00\r\n\x1b") {
			t.Fatalf("unsafe label %q", c.User)
		}
		if c.User == string(parts[2]) {
			t.Fatalf("the label is the token: %q", c.User)
		}
	})
}
