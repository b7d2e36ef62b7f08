package store

import (
	"errors"
	"slices"
	"time"
)

const (
	// A quarter of the files in use is kept for later segments when they become
	// unused, between these bounds.
	leastSpares = 4
	mostSpares  = 16

	// mayGrow is the part of a file that may grow under the writer before a filled
	// one is made for it to go over to.
	mayGrow = 16

	// fillChunk is what is written of a spare at once: a sync of the log that
	// comes meanwhile waits for that much.
	fillChunk = 256 << 10
	// longestRest bounds the rest after a chunk, so that a slow disk does not put
	// a spare off for good.
	longestRest = 20 * time.Millisecond
)

// errStopping ends the making of a spare when the store closes; the next
// opening removes what there is of it.
var errStopping = errors.New("the store is being closed")

// takeFree takes an unused file of at least size bytes.
func (l *log) takeFree(size int64) *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.free, func(s *segment) bool { return s.size >= size && s.readers == 0 })
	if i < 0 {
		return nil
	}
	s := l.free[i]
	l.free = slices.Delete(l.free, i, i+1)
	return &segment{name: s.name, file: s.file, size: s.size, filled: s.filled}
}

// fillsUp says whether the active segment needs a successor soon. mu is held.
func (l *log) fillsUp() bool {
	return l.pos > l.active.size/2 || l.active.filled < l.active.size && l.pos > l.segSize/mayGrow
}

// outgrown says that the active file would have to grow for an entry of need
// bytes while one lies ready that need not: a sync of a file that has just grown
// takes several times as long, and everybody waits for it.
func (l *log) outgrown(need int64) bool {
	if l.pos+need <= l.active.filled || l.pos <= l.segSize/mayGrow {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.free, func(s *segment) bool {
		return s.size >= l.segSize && s.filled >= s.size && s.readers == 0
	})
}

// wantsSpare says whether a file should be made before the writer needs it.
func (l *log) wantsSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filling && !slices.ContainsFunc(l.free, func(s *segment) bool { return s.size >= l.segSize })
}

// hurried says that the writer is about to need another file.
func (l *log) hurried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hurry
}

// addSpare makes a file for a later segment. rest is called between its parts
// with how long the last one took.
func (l *log) addSpare(rest func(time.Duration) error) error {
	s, err := createLogFile(l.fs, l.dir, l.takeName(), l.segSize, l.segSize, rest)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, s)
	return nil
}

// trim removes the unused files beyond keep, those of another size than segments
// have now, and those that are not filled.
func (l *log) trim(keep int) error {
	l.mu.Lock()
	var drop []*segment
	kept := l.free[:0]
	for _, s := range l.free {
		if s.size == l.segSize && s.filled == s.size && len(kept) < keep {
			kept = append(kept, s)
		} else {
			drop = append(drop, s)
		}
	}
	l.free = kept
	l.mu.Unlock()
	for _, s := range drop {
		if err := s.file.Close(); err != nil {
			return err
		}
		if err := l.fs.Remove(l.fs.PathJoin(l.dir, s.name)); err != nil {
			return err
		}
	}
	if len(drop) == 0 {
		return nil
	}
	return syncDir(l.fs, l.dir)
}
