package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client that hangs is ended together with what it started, and what it said
// until then counts.
func TestDeadlineEndsTheGroup(t *testing.T) {
	p := places{clients: t.TempDir(), cache: t.TempDir()}
	if err := os.Mkdir(filepath.Join(p.clients, "hangs"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = "#!/bin/sh\nsleep 600 & echo \"client n 1\"; echo \"$COMPAT_CACHE\" >&2; wait\n"
	if err := os.WriteFile(filepath.Join(p.clients, "hangs", "run"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	start := time.Now()
	err := p.execute(context.Background(), "hangs", script{file: "run", deadline: time.Second, stdout: &out, stderr: &errs})
	if err == nil || err.Error() != "killed after 1s" {
		t.Errorf("%v", err)
	}
	if strings.TrimSpace(errs.String()) != p.cache {
		t.Errorf("COMPAT_CACHE is %q", errs.String())
	}
	if got := parseReport("hangs", out.String())[0].name; got != "n" {
		t.Errorf("the client is %q", got)
	}
	// The pipe ends when the last process that holds it does.
	if took := time.Since(start); took > time.Second+afterKill {
		t.Errorf("what the client started went on: %s", took)
	}
}
