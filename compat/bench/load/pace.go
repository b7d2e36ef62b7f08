package load

import (
	"runtime"
	"syscall"
	"time"
)

// leastSleep keeps a high rate from sleeping before every single record: they go
// out a few at a time then, none before it is due.
const leastSleep = 500 * time.Microsecond

// Pace runs do count times, at a rate a second, with the moment at which each was
// due; it returns false to stop. A timer of Go's runtime is up to a
// millisecond late, which is half of what a record takes; a thread that sleeps in
// the kernel is late by a tenth of that.
func Pace(rate float64, count int, do func(due time.Time) bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	for i := range count {
		due := begin.Add(time.Duration(float64(i) * float64(time.Second) / rate))
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			ts := syscall.NsecToTimespec(int64(max(wait, leastSleep)))
			_ = syscall.Nanosleep(&ts, nil) // a signal ends it early: then what is left
		}
		if !do(due) {
			return
		}
	}
}
