package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/demo"
)

const afterKill = 5 * time.Second // for the pipes of a killed process

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

// startDemo builds the program and starts its demo. end ends it, and removes its
// folder.
func (p places) startDemo(ctx context.Context) (d *demo.Demo, end func() error, err error) {
	dir, err := os.MkdirTemp("", "queen-edge-compat-")
	if err != nil {
		return nil, nil, err
	}
	program := filepath.Join(dir, "queen-edge")
	if err = demo.Build(ctx, p.root, program); err == nil {
		d, err = demo.Start(ctx, program, dir, filepath.Join(p.cache, "logs", "demo.log"))
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, func() error { return errors.Join(d.Stop(), os.RemoveAll(dir)) }, nil
}
