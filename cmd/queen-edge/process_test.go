package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// patience is the generous deadline of whatever a test waits for.
const patience = 3 * time.Minute

// asProgram makes the test binary behave as the program itself, so that tests
// run the command as a user does, in a process of its own.
const asProgram = "QE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a running queen-edge.
type process struct {
	cmd    *exec.Cmd
	stdout *lines
	stderr *lines
}

// lines collects output while it is written.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// launch starts the program with nothing of this environment but what env adds.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return launchUnder(t, ":", env, args...)
}

// launchUnder is launch from a shell that has run a command of its own before.
func launchUnder(t *testing.T, before string, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell := append([]string{"-c", before + ` && exec "$0" "$@"`, exe}, args...)
	p := &process{cmd: exec.Command("/bin/sh", shell...), stdout: &lines{}, stderr: &lines{}}
	p.cmd.Env = append([]string{asProgram + "=1", "TMPDIR=" + t.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.kill()
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// wait waits for the end and returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	stuck := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer stuck.Stop()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks for a clean end.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

// eventually waits for what has no signal of its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

// line waits for a line of stdout with a prefix and returns what follows it.
func (p *process) line(t *testing.T, prefix string) string {
	t.Helper()
	var rest string
	eventually(t, prefix, func() bool {
		for line := range strings.Lines(p.stdout.String()) {
			if after, ok := strings.CutPrefix(line, prefix); ok && strings.HasSuffix(after, "\n") {
				rest = strings.TrimSpace(after)
				return true
			}
		}
		return false
	})
	return rest
}

// logged waits for a text in stderr: what was written there before a line of
// stdout may still be on its way to the test when that line is read.
func (p *process) logged(t *testing.T, text string) {
	t.Helper()
	eventually(t, text, func() bool { return strings.Contains(p.stderr.String(), text) })
}

// runningDemo is a demo with what its env file says.
type runningDemo struct {
	*process
	env   map[string]string
	roots *x509.CertPool
}

func launchDemo(t *testing.T, args ...string) *runningDemo {
	t.Helper()
	envFile := filepath.Join(t.TempDir(), "env")
	p := launch(t, nil, append([]string{"demo", "--addr", "127.0.0.1:0", "--env-file", envFile}, args...)...)
	d := &runningDemo{process: p, env: make(map[string]string), roots: x509.NewCertPool()}
	var text []byte
	eventually(t, "the env file", func() bool {
		var err error
		text, err = os.ReadFile(envFile)
		return err == nil
	})
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		d.env[name] = value
	}
	ca, err := os.ReadFile(d.env["QUEEN_EDGE_CA"])
	if err != nil || !d.roots.AppendCertsFromPEM(ca) {
		t.Fatalf("CA: %v", err)
	}
	return d
}

// client is a Kafka client with one of the demo's tokens, or with any text.
func (d *runningDemo) client(t *testing.T, token string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(d.env["QUEEN_EDGE_BOOTSTRAP"]),
		kgo.SASL(plain.Auth{User: "test", Pass: token}.AsMechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: d.roots, ServerName: d.env["QUEEN_EDGE_SNI"]}),
		kgo.AllowAutoTopicCreation(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (d *runningDemo) token(label string) string { return d.env["QUEEN_EDGE_TOKEN_"+label] }
