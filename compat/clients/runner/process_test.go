package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client that hangs is ended together with what it started, and what it said
// until then counts.
func TestDeadlineEndsTheGroup(t *testing.T) {
	t.Parallel()
	p := places{clients: t.TempDir(), cache: t.TempDir()}
	if err := os.Mkdir(filepath.Join(p.clients, "hangs"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = "#!/bin/sh\nsleep 600 & echo \"client n 1\"; echo \"$COMPAT_CACHE\" >&2; wait\n"
	if err := os.WriteFile(filepath.Join(p.clients, "hangs", "run"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var errs strings.Builder
	// Long enough for a shell to say two lines on a busy machine.
	err = p.execute(context.Background(), "hangs", script{file: "run", deadline: 5 * time.Second, stdout: in, stderr: &errs})
	if err == nil || err.Error() != "killed after 5s" {
		t.Errorf("%v", err)
	}
	if strings.TrimSpace(errs.String()) != p.cache {
		t.Errorf("COMPAT_CACHE is %q", errs.String())
	}
	// The pipe ends when the last process that holds it does.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(out)
	if err != nil {
		t.Errorf("what the client started goes on: %v", err)
	}
	if got := parseReport("hangs", string(said))[0].name; got != "n" {
		t.Errorf("the client is %q", got)
	}
}
