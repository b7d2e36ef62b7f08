package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	demoStart = time.Minute
	demoStop  = time.Minute     // above the gateway's drain grace, and the cell's end
	afterKill = 5 * time.Second // for the pipes of a killed process
)

// script is one executable of a client's folder.
type script struct {
	file     string
	deadline time.Duration
	env      []string
	stdout   io.Writer
	stderr   io.Writer
}

// execute runs a client's script in a process group of its own, and ends the
// whole group at the deadline.
func (p places) execute(ctx context.Context, client string, s script) error {
	limited, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	cmd := exec.CommandContext(limited, "./"+s.file)
	cmd.Dir = filepath.Join(p.clients, client)
	cmd.Env = append(os.Environ(), append(s.env, "COMPAT_CACHE="+p.cache)...)
	cmd.Stdout, cmd.Stderr = s.stdout, s.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterKill
	err := cmd.Run()
	if cmd.Process != nil {
		// What the script left behind in its group does not outlive it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("killed after %s", s.deadline)
	}
	return err
}

// demo is a running `queen-edge demo`.
type demo struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of the process, once it exited
	dir    string
	log    string
	env    map[string]string
}

// startDemo builds the program and starts it on a free port.
func (p places) startDemo(ctx context.Context) (_ *demo, err error) {
	dir, err := os.MkdirTemp("", "queen-edge-compat-")
	if err != nil {
		return nil, err
	}
	d := &demo{dir: dir, log: filepath.Join(p.cache, "logs", "demo.log"), exited: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = d.stop()
		}
	}()
	program := filepath.Join(dir, "queen-edge")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/queen-edge")
	build.Dir, build.Env, build.Stderr = p.root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	envFile := filepath.Join(dir, "env")
	// Not bound to ctx: clients that are being ended still talk to it.
	// Groups form many times; how long they wait for members is not what is tested.
	d.cmd = exec.Command(program, "demo", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--env-file", envFile,
		"--group-join-delay", "300ms")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.wait()
	return d, d.awaitEnv(ctx, envFile)
}

func (d *demo) wait() {
	d.err = d.cmd.Wait()
	close(d.exited)
}

// awaitEnv waits for the file that the demo writes once clients can connect.
func (d *demo) awaitEnv(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, demoStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil {
			d.env = map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				d.env[name] = value
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-d.exited:
			return d.alive()
		case <-ctx.Done():
			return fmt.Errorf("the demo did not start: %w", ctx.Err())
		}
	}
}

// alive is an error once the demo has ended by itself.
func (d *demo) alive() error {
	select {
	case <-d.exited:
		return fmt.Errorf("the demo ended by itself (%v); its log is %s", d.err, d.log)
	default:
		return nil
	}
}

// stop ends the demo and removes its folder.
func (d *demo) stop() error {
	defer os.RemoveAll(d.dir) //nolint:errcheck // a temporary folder
	if d.cmd == nil || d.cmd.Process == nil {
		return nil
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(demoStop)
	defer late.Stop()
	select {
	case <-d.exited:
	case <-late.C:
		_ = d.cmd.Process.Kill()
		<-d.exited
		return fmt.Errorf("the demo did not end within %s of SIGTERM", demoStop)
	}
	if d.err != nil {
		return fmt.Errorf("the demo: %w; its log is %s", d.err, d.log)
	}
	return nil
}

// environ is what clients are told of the demo.
func (d *demo) environ() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		if name != "QUEEN_EDGE_PID" {
			out = append(out, name+"="+d.env[name])
		}
	}
	return out
}
