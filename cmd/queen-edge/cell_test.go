package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ask sends a GET with a key.
func ask(t *testing.T, url, key string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestCellCommand: a first start makes a cluster and shows its key; a second
// one shows nothing, and the key works as before.
func TestCellCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	start := func() (p *process, url string) {
		p = launch(t, nil, "cell", "--data", dir, "--addr", "127.0.0.1:0", "--bootstrap", "acme", "--verbose")
		return p, p.line(t, "cell: listening on ")
	}
	p, url := start()
	key := p.line(t, "cell: its key, shown this once: ")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[1-9]\d*$`).MatchString(url) {
		t.Errorf("listening on %q", url)
	}
	status, me := ask(t, url+"/auth/me", key)
	if status != http.StatusOK || !strings.Contains(me, `"slug":"acme"`) {
		t.Errorf("/auth/me: %d %s", status, me)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM: %s", code, p.stderr)
	}
	if log := p.stderr.String(); !strings.Contains(log, "auth_me") || strings.Contains(log, key) {
		t.Error("the log has no requests, or the key's text")
	}

	p, url = start()
	if status, again := ask(t, url+"/auth/me", key); status != http.StatusOK || again != me {
		t.Errorf("after a restart: %d %s", status, again)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM: %s", code, p.stderr)
	}
	if out := p.stdout.String(); strings.Contains(out, "key") || strings.Contains(out, "qk_") {
		t.Errorf("a second start shows %s", out)
	}
}

func TestCellCommandRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no folder":   {[]string{"cell"}, "data"},
		"address":     {[]string{"cell", "--data", filepath.Join(t.TempDir(), "d"), "--addr", "nope"}, "nope"},
		"a file":      {[]string{"cell", "--data", file, "--addr", "127.0.0.1:0"}, "file"},
		"a slug":      {[]string{"cell", "--data", filepath.Join(t.TempDir(), "d"), "--addr", "127.0.0.1:0", "--bootstrap", "No"}, "slug"},
		"an argument": {[]string{"cell", "--data", filepath.Join(t.TempDir(), "d"), "more"}, "more"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, nil, tc.args...)
			if code := p.wait(t); code == 0 || !strings.Contains(p.stderr.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, p.stderr)
			}
		})
	}
}
