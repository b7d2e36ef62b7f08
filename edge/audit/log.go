// Package audit writes down who logged in and who changed what: one line of JSON
// for each event, into a file or to standard error (B7, QUEEN_KAFKA_AUDIT_LOG).
//
// No request ever waits for it. Lines go through a bounded queue to one writer;
// what finds the queue full, or a disk that takes nothing, is dropped, counted,
// and told by a line of its own as soon as lines can be written again.
package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// Stderr as a path is standard error.
	Stderr = "stderr"

	queued       = 4096            // lines that may wait for the writer
	batchBytes   = 256 << 10       // about what is written at once
	closePatient = 2 * time.Second // how long Close waits for a writer that hangs
)

// Log writes events. It is safe for concurrent use.
type Log struct {
	path  string // empty: out is not a file of ours
	clock func() time.Time
	log   *zap.Logger

	lines   chan []byte
	stop    chan struct{}
	done    chan struct{}
	written atomic.Int64
	dropped atomic.Int64

	// The writer's own.
	out  io.WriteCloser
	at   os.FileInfo // of out, where it is a file
	torn bool        // the last write ended within a line
	told int64       // dropped lines that a line has told of
}

// Open begins to write to path, or, where that is Stderr, to stderr. A file is
// appended to, with rights for its owner alone, and opened anew when another file,
// or none, is at its path: rotation needs no signal. Anything there but a regular
// file is refused: a pipe could block for ever. log is told of failures; it is
// expected to be sampled.
func Open(path string, stderr io.Writer, clock func() time.Time, log *zap.Logger) (*Log, error) {
	l := &Log{
		clock: clock, log: log,
		lines: make(chan []byte, queued), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if path == Stderr {
		l.out = keepOpen{stderr}
	} else {
		l.path = path
		if err := l.open(); err != nil {
			return nil, err
		}
	}
	go l.run()
	return l, nil
}

// Add writes an event down. It never waits.
func (l *Log) Add(e Event) {
	select {
	case l.lines <- e.line(l.clock()):
	default:
		l.dropped.Add(1)
	}
}

// Counts are the lines that were written, and those that were dropped.
func (l *Log) Counts() (written, dropped int64) { return l.written.Load(), l.dropped.Load() }

// Close writes what is queued and closes the file. It is called once, after the
// last Add, and gives up on a writer that hangs.
func (l *Log) Close() error {
	close(l.stop)
	patience := time.NewTimer(closePatient)
	defer patience.Stop()
	select {
	case <-l.done:
		return nil
	case <-patience.C:
		return errors.New("the audit log's last lines could not be written in time")
	}
}

// run is the writer.
func (l *Log) run() {
	defer close(l.done)
	var batch []byte
	for {
		select {
		case line := <-l.lines:
			batch = l.write(append(batch[:0], line...))
		case <-l.stop:
			for len(l.lines) > 0 {
				batch = l.write(batch[:0])
			}
			if l.dropped.Load() > l.told {
				l.write(batch[:0]) // a last word about them
			}
			if l.out != nil {
				_ = l.out.Close()
			}
			return
		}
	}
}

// write writes a batch, filled up with what waits, and returns its memory.
func (l *Log) write(batch []byte) []byte {
	n := int64(0)
	if len(batch) > 0 {
		n++
	}
	for len(batch) < batchBytes && len(l.lines) > 0 {
		batch = append(batch, <-l.lines...)
		n++
	}
	missing := l.dropped.Load()
	if err := l.put(l.opening(missing), batch); err != nil {
		l.dropped.Add(n)
		l.log.Error("audit lines are lost", zap.Error(err), zap.Int64("dropped", l.dropped.Load()))
		return batch
	}
	l.told = missing
	l.written.Add(n)
	return batch
}

// opening is what must stand before the next lines: the end of a torn one, and
// how many are missing.
func (l *Log) opening(missing int64) []byte {
	var b []byte
	if l.torn {
		b = append(b, '\n')
	}
	if n := missing - l.told; n > 0 {
		b = append(b, Event{What: dropped, Lines: n}.line(l.clock())...)
	}
	return b
}

// put writes to the file that is at the path now.
func (l *Log) put(opening, batch []byte) error {
	if l.path != "" && !l.current() {
		if err := l.open(); err != nil {
			return err
		}
	}
	if len(opening) > 0 {
		batch = append(opening, batch...)
	}
	n, err := l.out.Write(batch)
	if n > 0 {
		l.torn = n < len(batch)
	}
	return err
}

// current reports whether the open file is the one at the path.
func (l *Log) current() bool {
	now, err := os.Stat(l.path)
	return l.out != nil && err == nil && os.SameFile(now, l.at)
}

// open opens the file at the path, made where there is none.
func (l *Log) open() error {
	if l.out != nil {
		_ = l.out.Close()
		l.out, l.torn = nil, false // a line torn there is whole nowhere
	}
	if at, err := os.Stat(l.path); err == nil && !at.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", l.path)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	at, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.out, l.at = f, at
	return nil
}

// keepOpen is a writer that is somebody else's to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
