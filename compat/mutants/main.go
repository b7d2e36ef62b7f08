// Command mutants breaks the tree in one place after the other (takes the tenant out,
// splits a commit) and runs the
// test that must notice. A patch's first line names package and test; the rest
// is a diff. Every test must pass on the tree as it is, and fail on the patched
// one, after it has been built: a patch that does not apply or compile any more
// is a failure too.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// testTimeout bounds one test, its build aside.
const testTimeout = "3m"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// mutant is one patch.
type mutant struct {
	name, path string
	pkg, test  string
}

func run(ctx context.Context, only []string) error {
	mutants, err := load(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "queen-edge-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := copyTree(ctx, dir); err != nil {
		return err
	}
	sound := map[string]error{} // tests on the tree as it is
	failed := 0
	for _, m := range mutants {
		start := time.Now()
		key := m.pkg + " " + m.test
		if _, ok := sound[key]; !ok {
			sound[key] = passes(ctx, dir, m)
		}
		err := sound[key]
		if err == nil {
			err = caught(ctx, dir, m)
		}
		if err != nil {
			failed++
			fmt.Printf("%s: NOT CAUGHT: %v\n", m.name, err)
			continue
		}
		fmt.Printf("%s: caught by %s (%.0fs)\n", m.name, m.test, time.Since(start).Seconds())
	}
	fmt.Printf("mutants: %d passed, %d failed\n", len(mutants)-failed, failed)
	if failed > 0 {
		return errors.New("some patches went unnoticed")
	}
	return ctx.Err()
}

// load reads the first lines of the patches; only are names of some.
func load(only []string) ([]mutant, error) {
	pattern := filepath.Join("compat", "mutants", "*.patch")
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no patches at %s: run it in the root of the tree", pattern)
	}
	var out []mutant
	for _, path := range paths {
		m, err := read(path)
		if err != nil {
			return nil, err // of one that is not run now, too: it would be next time
		}
		if len(only) == 0 || slices.Contains(only, m.name) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no patch is called %s", strings.Join(only, " or "))
	}
	return out, nil
}

// read reads a patch's first line.
func read(path string) (m mutant, err error) {
	m.name = strings.TrimSuffix(filepath.Base(path), ".patch")
	if m.path, err = filepath.Abs(path); err != nil {
		return m, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var ok bool
	if m.pkg, m.test, ok = strings.Cut(line, " "); !ok || !strings.HasPrefix(m.pkg, "./") || strings.Contains(m.test, " ") {
		return m, fmt.Errorf("%s: the first line is %q, want a package and a test", path, line)
	}
	return m, nil
}

// copyTree copies what git knows or would add, as it is on disk.
func copyTree(ctx context.Context, dir string) error {
	list, err := command(ctx, ".", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return fmt.Errorf("git ls-files: %w\n%s", err, list)
	}
	for _, path := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		to := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, mode)); err != nil {
			return err
		}
	}
	return nil
}

// passes runs a test on the tree as it is.
func passes(ctx context.Context, dir string, m mutant) error {
	out, err := test(ctx, dir, m)
	if err != nil {
		return fmt.Errorf("the test is red without the patch:\n%s", tail(out))
	}
	if !bytes.Contains(out, []byte("--- PASS: "+m.test)) {
		return fmt.Errorf("there is no test %s in %s, or it is skipped", m.test, m.pkg)
	}
	return nil
}

// caught applies a patch, wants the test red, and takes the patch back.
func caught(ctx context.Context, dir string, m mutant) (err error) {
	if out, err := command(ctx, dir, "git", "apply", m.path); err != nil {
		return fmt.Errorf("the patch does not apply any more:\n%s", tail(out))
	}
	defer func() {
		if out, back := command(ctx, dir, "git", "apply", "-R", m.path); back != nil {
			err = errors.Join(err, fmt.Errorf("the patch cannot be taken back: %w\n%s", back, out))
		}
	}()
	out, err := test(ctx, dir, m)
	switch {
	case err == nil:
		return fmt.Errorf("%s is green", m.test)
	case ctx.Err() != nil:
		return ctx.Err()
	case !bytes.Contains(out, []byte("--- FAIL: "+m.test)):
		return fmt.Errorf("the patched tree does not get as far as the test:\n%s", tail(out))
	}
	return nil
}

// test runs one test; each step of a subtest's name is matched whole.
func test(ctx context.Context, dir string, m mutant) ([]byte, error) {
	steps := strings.Split(m.test, "/")
	for i, step := range steps {
		steps[i] = "^" + regexp.QuoteMeta(step) + "$"
	}
	return command(ctx, dir, "go", "test", "-count=1", "-v", "-timeout", testTimeout, "-run", strings.Join(steps, "/"), m.pkg)
}

// command runs a program without the variables that point tests elsewhere.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "QUEEN_EDGE_") && !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}

// tail is the end of what a program said.
func tail(out []byte) string {
	const most = 1500
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return strings.TrimSpace(string(out))
}
