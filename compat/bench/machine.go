package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// diskReserve is how many bytes a run leaves free.
const diskReserve = 2e9

// roomFor says no before a run that would fill the disk with its limit of bytes.
func roomFor(dir string, limit float64) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return err
	}
	if free := float64(s.Bavail) * float64(s.Bsize); free < limit+diskReserve {
		return fmt.Errorf("%s has %.1f GB free; a run wants %.0f and leaves %.0f", dir, free/1e9, limit/1e9, diskReserve/1e9)
	}
	return nil
}

// used is what a folder takes on the disk, in bytes.
func used(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is in use: files come and go
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			total += s.Blocks * 512
		}
		return nil
	})
	return total, err
}

// facts are what a reader of the figures has to know of the machine.
func facts(ctx context.Context, dir, jars string, counted string) ([]result.Fact, error) {
	kafka, err := peer.KafkaVersion(jars)
	if err != nil {
		return nil, err
	}
	java, err := peer.JavaVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("java: %w", err)
	}
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return []result.Fact{
		{Name: "processor", Value: fmt.Sprintf("%d cores, %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"))},
		{Name: "memory", Value: field("/proc/meminfo", "MemTotal")},
		{Name: "kernel", Value: strings.TrimSpace(read("/proc/sys/kernel/osrelease"))},
		{Name: "file system", Value: fileSystem(dir)},
		{Name: "load average before the run", Value: load},
		{Name: "queen-edge", Value: strings.TrimSpace(string(commit)) + ", " + runtime.Version()},
		{Name: "Apache Kafka", Value: kafka + ", " + java},
		{Name: "syncs", Value: counted},
	}, nil
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// field is the first value of a name in a file of names and values.
func field(path, name string) string {
	for line := range strings.Lines(read(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem is the kind of the file system that dir is on.
func fileSystem(dir string) string {
	best, kind := "", "unknown"
	for line := range strings.Lines(read("/proc/mounts")) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		under := dir == f[1] || strings.HasPrefix(dir, strings.TrimSuffix(f[1], "/")+"/")
		if under && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind
}
