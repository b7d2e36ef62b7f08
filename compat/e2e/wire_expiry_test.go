package e2e

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// Case C6: a token that ends just now, has ended, or ends at once is refused, or
// its connection closes: what is not positive is never taken for "no end".
func TestWireTokenHasEnded(t *testing.T) {
	for name, left := range map[string]time.Duration{
		"0 s": 0, "-1 s": -time.Second, "1 ms": time.Millisecond, "an hour ago": -time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cell := &cellFaults{}
			r := rig.Start(t, func(o *rig.Options) {
				o.CellAt, o.Plain = cell.at(t), true
				o.Config = func(c *config.Config) { c.SessionLife = time.Hour } // not what counts
			})
			cell.set(func(f *cellFaults) {
				f.change = func(path, _ string, answer map[string]any) {
					if path == identityPath {
						answer["expires_at"] = time.Now().Add(left).UnixMilli()
					}
				}
			})
			w := r.Dial(t)
			w.Ask(wireHandshake(1, "PLAIN"))
			resp := w.Ask(wireToken(2, wirePlain("", "me", r.Key(rig.Acme)))).(*kmsg.SASLAuthenticateResponse)
			switch {
			case resp.ErrorCode == 58:
				if resp.ErrorMessage == nil || !strings.Contains(*resp.ErrorMessage, "expired") {
					t.Errorf("%v", resp.ErrorMessage)
				}
			case left <= 0 || resp.ErrorCode != 0 || resp.SessionLifetimeMillis < 1 || resp.SessionLifetimeMillis > 1000:
				t.Errorf("code %d, lifetime %d ms", resp.ErrorCode, resp.SessionLifetimeMillis)
			}
			if b, err := io.ReadAll(w); err != nil || len(b) > 0 {
				t.Errorf("%d bytes, %v; want the end", len(b), err)
			}
		})
	}
}
