package tenancy_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// The end of a credential is what the cell says; else what a JWT says of itself.
func TestExpires(t *testing.T) {
	jwt := func(body string) string { return "eyJ9." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".sig" }
	for _, c := range []struct {
		name, bearer string
		cell, want   time.Time
	}{
		{"neither", "acme.1", time.Time{}, time.Time{}},
		{"the cell's", "acme.1", time.Unix(7, 0), time.Unix(7, 0)},
		{"both", jwt(`{"exp":9}`), time.Unix(7, 0), time.Unix(7, 0)},
		{"a JWT's", jwt(`{"sub":"x","exp":1790000000}`), time.Time{}, time.Unix(1790000000, 0)},
		{"with a fraction", jwt(`{"exp":1790000000.5}`), time.Time{}, time.Unix(1790000000, 5e8)},
		{"padded", "eyJ9." + base64.URLEncoding.EncodeToString([]byte(`{"exp":99}`)) + ".sig", time.Time{}, time.Unix(99, 0)},
		{"long ago", jwt(`{"exp":0}`), time.Time{}, time.Unix(1, 0)},
		{"before that", jwt(`{"exp":-5}`), time.Time{}, time.Unix(1, 0)},
		{"for ever", jwt(`{"exp":1e300}`), time.Time{}, time.Unix(253402300799, 0)},
		{"no exp", jwt(`{}`), time.Time{}, time.Time{}},
		{"null", jwt(`{"exp":null}`), time.Time{}, time.Time{}},
		{"a text", jwt(`{"exp":"soon"}`), time.Time{}, time.Time{}},
		{"no JSON", jwt(`exp`), time.Time{}, time.Time{}},
		{"no base64", "eyJ9.%%%.sig", time.Time{}, time.Time{}},
		{"two parts", "eyJ9.e30", time.Time{}, time.Time{}},
	} {
		cell := newFakeCell()
		cell.set(func(f *fakeCell) {
			f.who = func(string, string) (tenancy.Identity, error) {
				return tenancy.Identity{ClusterID: "acme", ExpiresAt: c.cell}, nil
			}
		})
		if got := verify(t, newVerifier(cell, newClock(), 0), c.bearer, "").Scope.Expires(); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
