package peer

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	ticks = 100 // of a second: USER_HZ, as every Linux tells user space
	// Fields of /proc/PID/stat behind the program's name.
	userField, systemField = 11, 12
)

// CPU is the processor time of all of a process's threads so far, in seconds.
func CPU(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) <= systemField {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	user, err := strconv.ParseInt(fields[userField], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[systemField], 10, 64)
	return float64(user+system) / ticks, err
}

// MachineCPU is the processor time that all processes and the kernel have used
// so far, in seconds, what was stolen by the host included.
func MachineCPU() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat: %q", line)
	}
	var busy int64
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		if i != 3 && i != 4 { // idle, and waiting for a disk
			busy += n
		}
	}
	return float64(busy) / ticks, nil
}

// Memory is a process's resident size and its peak, in MiB.
func Memory(pid int) (now, peak float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		at := map[string]*float64{"VmRSS": &now, "VmHWM": &peak}[name]
		if at == nil {
			continue
		}
		kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return 0, 0, err
		}
		*at = kb / 1024
		found++
	}
	if found != 2 {
		return 0, 0, fmt.Errorf("/proc/%d/status has no VmRSS and VmHWM", pid)
	}
	return now, peak, nil
}

// ResetPeak makes the peak begin at the present size (proc(5), clear_refs).
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
