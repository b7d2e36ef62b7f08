package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

// diskAlone is what the disk alone does to single records: a write of 1 KiB and
// its fdatasync, 500 times a second, in a file that is there already, when nobody
// else works. Nothing that syncs can be faster. A file system in memory takes next
// to nothing, and no figure means anything on it.
func diskAlone(dir string, seconds float64) (took []time.Duration, err error) {
	const bytes = 1 << 10
	count := max(int(seconds*singleRate), 1)
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, count*bytes)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	record, at := make([]byte, bytes), int64(0)
	load.Pace(singleRate, count, func(time.Time) bool {
		begin := time.Now()
		record[0]++
		if _, err = f.WriteAt(record, at); err != nil {
			return false
		}
		if err = syscall.Fdatasync(int(f.Fd())); err != nil {
			return false
		}
		at += bytes
		took = append(took, time.Since(begin))
		return true
	})
	slices.Sort(took)
	return took, err
}

// diskRound measures it and adds what is said of it.
func (c *conductor) diskRound() error {
	took, err := diskAlone(c.dir, c.size.single)
	if err != nil {
		return err
	}
	at := func(part float64) float64 { return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000 }
	c.disk = append(c.disk, fmt.Sprintf("%.2f, %.2f, %.2f", at(.5), at(.99), at(.999)))
	return nil
}

func (c *conductor) diskFact() string {
	return fmt.Sprintf("%s ms (p50, p99, p99.9; each round)", strings.Join(c.disk, "; "))
}
