package peer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

func TestProcessNumbers(t *testing.T) {
	pid := os.Getpid()
	before, err := CPU(pid)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := MachineCPU()
	if err != nil {
		t.Fatal(err)
	}
	var used float64
	for deadline := time.Now().Add(time.Minute); used < .1; {
		now, err := CPU(pid)
		if err != nil {
			t.Fatal(err)
		}
		if used = now - before; time.Now().After(deadline) {
			t.Fatalf("a busy loop has used %v s", used)
		}
	}
	after, err := MachineCPU()
	if err != nil {
		t.Fatal(err)
	}
	if after-machine < used-.02 { // two clocks of 10 ms each
		t.Errorf("the machine has used %v s, this process alone %v", after-machine, used)
	}
	if err := ResetPeak(pid); err != nil {
		t.Fatal(err)
	}
	was, _, err := Memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	// Not from the heap, which may have room from before.
	block, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(block); err != nil {
			t.Error(err)
		}
	}()
	for i := range block {
		block[i] = 1
	}
	now, peak, err := Memory(pid)
	if err != nil {
		t.Fatal(err)
	}
	if now < was+60 || peak < now-1 {
		t.Errorf("64 MiB more: from %.1f to %.1f MiB, peak %.1f", was, now, peak)
	}
}

// TestMain lets this test be the program that a bare peer wants.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "bare" {
		_ = ServeBare(os.Stdout, os.Args[2], os.Args[3])
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestBareEchoes(t *testing.T) {
	dir := t.TempDir()
	id, err := NewIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := StartPeer(ctx, Bare, Place{Dir: dir, Self: os.Args[0], Identity: id})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for range 2 {
		if err := load.TryLogin(ctx, p.Target()); err != nil {
			t.Error(err)
		}
	}
	stranger, err := NewIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bad := p.Target()
	bad.CA = stranger.CA
	if err := load.TryLogin(ctx, bad); err == nil {
		t.Error("a certificate of an unknown authority is trusted")
	}
}

// A load that waits for a process that has ended would wait for minutes.
func TestTogetherEndsWithAProcess(t *testing.T) {
	start := func(name string, args ...string) *Process {
		p, err := Start(t.Context(), Command{Name: name, Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), name), Args: args})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.kill)
		return p
	}
	long, short := start("long", "sleep", "600"), start("short", "sleep", "600")
	ctx, cancel := Together(t.Context(), []*Process{long, short})
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("it has ended while both run")
	}
	short.kill()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("it goes on without one of its processes")
	}
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "short has ended: signal: killed") {
		t.Errorf("the cause is %v", cause)
	}
}
