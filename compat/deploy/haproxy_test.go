package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/edge/config"
)

const haproxyExample = dir + "haproxy/queen-edge.cfg"

// HAProxy takes the example without a warning, as it is and behind a global
// section that logs. (compat/e2e runs it.)
func TestHAProxyByHAProxy(t *testing.T) {
	haproxy := tool(t, "haproxy")
	global := filepath.Join(t.TempDir(), "global.cfg")
	if err := os.WriteFile(global, []byte("global\n\tlog stdout format raw daemon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, ".", haproxy, "-c", "-dW", "-f", global, "-f", haproxyExample)
}

// What the example says of gateways is a configuration they start with, and what
// it does suits them.
func TestHAProxyExample(t *testing.T) {
	text := read(t, haproxyExample)
	settings, names := map[string]string{}, []string{}
	for _, m := range regexp.MustCompile(`(?m)^#\s+(QUEEN_\w+)=(\S+)`).FindAllStringSubmatch(text, -1) {
		settings[m[1]], names = m[2], append(names, m[1])
	}
	wantSettings(t, haproxyExample, names, false)
	settings["QUEEN_TOKEN"], settings["QUEEN_KAFKA_SASL"] = "any", "plain"
	legal(t, haproxyExample, settings)

	var rules strings.Builder // without comments
	for line := range strings.Lines(text) {
		rule, _, _ := strings.Cut(line, "#")
		rules.WriteString(rule)
		rules.WriteByte('\n')
	}
	for _, timeout := range []string{"client", "server"} {
		m := regexp.MustCompile(`timeout ` + timeout + `\s+(\S+)`).FindStringSubmatch(rules.String())
		if m == nil {
			t.Fatalf("no timeout %s", timeout)
		}
		if d, err := time.ParseDuration(m[1]); err != nil || d <= config.Defaults().Limits.Idle {
			t.Errorf("timeout %s is %s: a gateway ends idle connections itself after %v", timeout, m[1], config.Defaults().Limits.Idle)
		}
	}
	for _, never := range []string{"shutdown-sessions", "backup", "mode http"} {
		if strings.Contains(rules.String(), never) {
			t.Errorf("it has %q", never)
		}
	}
}
