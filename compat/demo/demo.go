// Package demo runs `queen-edge demo` as a process of its own, for programs that
// judge it from outside.
package demo

import (
	"context"
	"fmt"
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
	startPatience = time.Minute
	stopPatience  = time.Minute // above the gateway's drain grace, and the cell's end
)

// Demo is a running demo.
type Demo struct {
	Env map[string]string // what its env file says: address, CA, tokens

	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of the process, once it exited
	log    string
}

// ModuleRoot is the folder of queen-edge's module.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/queen-mq/queen-edge").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside queen-edge's module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build makes the program of the module at root.
func Build(ctx context.Context, root, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/queen-edge")
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// Start starts the program's demo on a free port, with its data below dir, and
// waits until clients can connect. It is not bound to ctx: clients that are being
// ended still talk to it.
func Start(ctx context.Context, program, dir, logFile string) (*Demo, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	envFile := filepath.Join(dir, "env")
	d := &Demo{log: logFile, exited: make(chan struct{})}
	// Groups form many times; how long they wait for members is not what is tested.
	d.cmd = exec.Command(program, "demo", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--env-file", envFile,
		"--group-join-delay", "300ms")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.wait()
	if err := d.awaitEnv(ctx, envFile); err != nil {
		_ = d.Stop()
		return nil, err
	}
	return d, nil
}

func (d *Demo) wait() {
	d.err = d.cmd.Wait()
	close(d.exited)
}

// awaitEnv waits for the file that the demo writes once clients can connect.
func (d *Demo) awaitEnv(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil {
			d.Env = map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				d.Env[name] = value
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-d.exited:
			return d.Alive()
		case <-ctx.Done():
			return fmt.Errorf("the demo did not start: %w", ctx.Err())
		}
	}
}

// Alive is an error once the demo has ended by itself.
func (d *Demo) Alive() error {
	select {
	case <-d.exited:
		return fmt.Errorf("the demo ended by itself (%v); its log is %s", d.err, d.log)
	default:
		return nil
	}
}

// Stop ends the demo.
func (d *Demo) Stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(stopPatience)
	defer late.Stop()
	select {
	case <-d.exited:
	case <-late.C:
		_ = d.cmd.Process.Kill()
		<-d.exited
		return fmt.Errorf("the demo did not end within %s of SIGTERM", stopPatience)
	}
	if d.err != nil {
		return fmt.Errorf("the demo: %w; its log is %s", d.err, d.log)
	}
	return nil
}

// Environ is what clients are told of the demo.
func (d *Demo) Environ() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		if name != "QUEEN_EDGE_PID" {
			out = append(out, name+"="+d.Env[name])
		}
	}
	return out
}
