package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 3 * time.Minute // a JVM on a busy machine
	stopPatience  = 30 * time.Second
)

// Process is a running part of a system.
type Process struct {
	Name   string // gateway, cell, kafka, client
	In     io.WriteCloser
	cmd    *exec.Cmd
	exited chan struct{}
	said   chan string // lines of stdout, until nobody takes them
	log    string
}

// Command is what a process is started with.
type Command struct {
	Name string
	Dir  string // working directory
	Log  string // file for stderr, and for what nobody reads of stdout
	Env  []string
	Args []string // the program first
	Talk bool     // its stdin is In; otherwise it has none
}

// Start starts a process, which ends with ctx at the latest.
func Start(ctx context.Context, c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p := &Process{
		Name: c.Name, cmd: exec.CommandContext(ctx, c.Args[0], c.Args[1:]...),
		exited: make(chan struct{}), said: make(chan string, 16), log: c.Log,
	}
	p.cmd.Dir, p.cmd.Stderr = c.Dir, log
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}, c.Env...)
	stdout, err := p.cmd.StdoutPipe()
	if err == nil && c.Talk {
		p.In, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	go p.follow(stdout, log)
	return p, nil
}

// follow owns the process until it has ended.
func (p *Process) follow(stdout io.Reader, log *os.File) {
	defer close(p.exited)
	defer log.Close()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		select {
		case p.said <- lines.Text():
		default:
			_, _ = fmt.Fprintln(log, lines.Text())
		}
	}
	close(p.said)
	_ = p.cmd.Wait() // its log says why
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Line waits for a line of stdout that begins so, and returns the rest.
func (p *Process) Line(ctx context.Context, prefix string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		select {
		case line, ok := <-p.said:
			if !ok {
				return "", fmt.Errorf("%s ended before it said %q\n%s", p.Name, prefix, p.tail())
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest), nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("%s: no line %q: %w\n%s", p.Name, prefix, context.Cause(ctx), p.tail())
		}
	}
}

// alive is nil while it runs.
func (p *Process) alive() error {
	select {
	case <-p.exited:
		return p.ended()
	default:
		return nil
	}
}

func (p *Process) ended() error {
	return fmt.Errorf("%s has ended: %v\n%s", p.Name, p.cmd.ProcessState, p.tail())
}

// Together is a context that ends when one of the processes does: nobody waits
// for what cannot come any more. Its cause says which one.
func Together(ctx context.Context, all []*Process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, p := range all {
		go p.watch(ctx, cancel)
	}
	return ctx, func() { cancel(nil) }
}

func (p *Process) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-p.exited:
		cancel(p.ended())
	case <-ctx.Done():
	}
}

// Stop asks it to end, and insists in the end.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
}

func (p *Process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// tail is the end of its log.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return filepath.Base(p.log) + ": ..." + string(text[max(0, len(text)-4000):])
}
