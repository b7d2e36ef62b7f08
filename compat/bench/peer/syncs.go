package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// syncTick is how often the kernel is asked; what is counted is late by as much.
const syncTick = 100 * time.Millisecond

// Syncs counts the fsync and fdatasync calls of one process, by the kernel's own
// trace points (perf), the same way for every peer.
type Syncs struct {
	cmd   *exec.Cmd
	total atomic.Int64
	lines atomic.Int64
	done  chan struct{}
}

// CanCountSyncs counts this process's own: nil if that comes out right.
func CanCountSyncs(ctx context.Context, dir string) error {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	s, err := CountSyncs(ctx, os.Getpid())
	if err != nil {
		return err
	}
	defer s.Stop()
	const times = 3
	for range times {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if got := s.Total(); got != times {
		return fmt.Errorf("of %d syncs perf has counted %d", times, got)
	}
	return nil
}

// CountSyncs begins to count. It wants perf and the right to use it: an error
// says what is missing.
func CountSyncs(ctx context.Context, pid int) (*Syncs, error) {
	s := &Syncs{done: make(chan struct{})}
	s.cmd = exec.CommandContext(ctx, "perf", "stat", "-x", ",", "-I", strconv.FormatInt(syncTick.Milliseconds(), 10),
		"-e", "syscalls:sys_enter_fdatasync,syscalls:sys_enter_fsync", "-p", strconv.Itoa(pid))
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = write // where perf stat writes to
	err = s.cmd.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, fmt.Errorf("perf: %w", err)
	}
	go s.follow(read)
	if err := s.Settle(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// follow owns perf until it has ended. A line is "time,count,unit,event,...".
func (s *Syncs) follow(out *os.File) {
	defer close(s.done)
	defer out.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) < 4 || !strings.HasPrefix(fields[3], "syscalls:") {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil && fields[1] != "<not counted>" { // the process slept
			continue // Settle gives up
		}
		s.total.Add(n)
		s.lines.Add(1)
	}
	_ = s.cmd.Wait()
}

// Settle waits until what has happened is counted.
func (s *Syncs) Settle(ctx context.Context) error {
	const linesEach, patience = 2, 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(syncTick / 5)
	defer tick.Stop()
	// The lines of the tick under way, and of one whole tick after it.
	for want := s.lines.Load() + 2*linesEach; s.lines.Load() < want; {
		select {
		case <-tick.C:
		case <-s.done:
			return errors.New("perf has ended: it may not be allowed to trace (root, or kernel.perf_event_paranoid below 0)")
		case <-ctx.Done():
			return errors.New("perf counts nothing")
		}
	}
	return nil
}

// Total is how many there have been.
func (s *Syncs) Total() int64 { return s.total.Load() }

// Stop ends perf.
func (s *Syncs) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}
