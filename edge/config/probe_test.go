package config

import (
	"strings"
	"testing"
)

// The token of the commands that look for faults is held to what every token is
// held to, and a bad one is named and not shown.
func TestProbeToken(t *testing.T) {
	for value, want := range map[string]struct {
		zero bool
		err  string
	}{
		"":                            {zero: true},
		" \t":                         {zero: true},
		" qk_live_x\n":                {},
		"two words":                   {err: probeVariable},
		strings.Repeat("x", 16<<10+1): {err: probeVariable},
	} {
		token, err := probeToken(func(name string) (string, bool) { return value, name == probeVariable })
		if (err != nil) != (want.err != "") || err == nil && token.IsZero() != want.zero {
			t.Errorf("%.20q: %v", value, err)
		}
		if err != nil && (!strings.Contains(err.Error(), want.err) || strings.Contains(err.Error(), strings.TrimSpace(value))) {
			t.Errorf("%.20q: %v", value, err)
		}
	}
}
