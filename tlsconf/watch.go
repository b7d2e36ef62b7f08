package tlsconf

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// debounce is how long after a change the files are looked at, at most: changes
// come in swarms, and other files may change in their folder all the time.
const debounce = 100 * time.Millisecond

// Run looks after the files until ctx ends. The system tells of changes in their
// folders, which is where a rename and a swapped link show; what it does not
// tell is found by a look every so often.
func (s *Store) Run(ctx context.Context) {
	if s.other == nil && s.tickets == nil && s.cfg.Dir == "" {
		<-ctx.Done()
		return
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("changes of certificates are found by looking only", zap.Duration("every", s.cfg.Every), zap.Error(err))
		watcher = &fsnotify.Watcher{} // its channels are nil: nothing ever comes
	} else {
		defer watcher.Close() //nolint:errcheck // nothing can be done about it
	}
	s.follow(watcher)
	next := time.Now() // what has changed since Open is found at once
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
		case <-watcher.Errors: // events were lost
		case <-timer.C:
			next = time.Now().Add(s.look(time.Now()))
			s.follow(watcher)
			timer.Reset(time.Until(next))
			continue
		}
		pause := min(debounce, s.cfg.Settle)
		if soon := time.Now().Add(pause); soon.Before(next) {
			next = soon
			timer.Reset(pause)
		}
	}
}

// follow watches the folders of the files. One that was replaced, or was not
// there, is found again.
func (s *Store) follow(watcher *fsnotify.Watcher) {
	if watcher.Events == nil {
		return
	}
	folders := map[string]bool{}
	for _, src := range []*source{s.other, s.tickets} {
		if src == nil {
			continue
		}
		for _, f := range src.files {
			folders[filepath.Dir(f.path)] = true
			// A link may lead elsewhere: a write there shows only there.
			if target, err := filepath.EvalSymlinks(f.path); err == nil {
				folders[filepath.Dir(target)] = true
			}
		}
	}
	if s.cfg.Dir != "" {
		folders[s.cfg.Dir] = true
	}
	for folder := range folders {
		_ = watcher.Add(folder) // one that cannot be watched is looked at
	}
}

// look compares all files with what is in use, and says when to look again.
func (s *Store) look(now time.Time) time.Duration {
	next := s.cfg.Every
	soon := func(d time.Duration) { next = min(next, max(d, time.Millisecond)) }
	if s.other != nil {
		soon(s.lookAt(s.other, PairFiles, defaultName, now, s.usePair(defaultName)))
	}
	if s.tickets != nil {
		soon(s.lookAt(s.tickets, TicketFile, "", now, s.useTickets))
	}
	if s.cfg.Dir != "" && s.discover() {
		for name, src := range s.dir {
			soon(s.lookAt(src, PairFiles, name, now, s.usePair(name)))
		}
	}
	s.lookAtAges()
	return next
}

// discover finds pairs that were not there before. A folder that cannot be read
// changes nothing: that nothing is there does not mean that all was removed.
func (s *Store) discover() bool {
	found, err := s.list()
	if err != nil {
		if text := err.Error(); text != s.dirTold {
			s.dirTold = text
			s.loads[PairFiles][Failed].Add(1)
			s.log.Error("the folder of certificates cannot be used; those in use stay", zap.Error(fmt.Errorf("%s: %w", file{dirVariable, s.cfg.Dir}, err)))
		}
		return false
	}
	s.dirTold = ""
	for name, stem := range found {
		s.sourceOf(name, stem)
	}
	return true
}

// lookAt compares one source with what is in use of it.
func (s *Store) lookAt(src *source, kind FileKind, name string, now time.Time, take func(*source, content) error) time.Duration {
	c := src.read()
	v, again := src.judge(c, now, s.cfg.Settle)
	switch v {
	case same:
		return s.cfg.Every
	case waiting:
		return again
	}
	err := take(src, c)
	if err == nil {
		src.accept(c.digest)
		s.loads[kind][Loaded].Add(1)
		s.log.Info("files have changed: new connections use what they hold", zap.Stringer("kind", kind), zap.String("name", name))
		return s.cfg.Every
	}
	tell, again := src.refuse(c.digest, now, s.cfg.Suspect)
	switch {
	case !tell:
		return again
	case c.gone && s.dir[name] == src:
		s.remove(name)
	default:
		s.loads[kind][Failed].Add(1)
		s.log.Error("files have changed and are bad: what was in use stays", zap.Stringer("kind", kind), zap.String("name", name), zap.Error(err))
	}
	return s.cfg.Every
}

// remove forgets a pair of the folder whose files are both gone: its name is
// shown the next certificate that there is for it.
func (s *Store) remove(name string) {
	delete(s.dir, name)
	if s.ladder.Load().named[name] == nil {
		return // it never was good
	}
	s.put(name, nil)
	s.loads[PairFiles][Removed].Add(1)
	s.log.Info("a certificate's files are gone: its name has none of its own any more", zap.String("name", name))
}

// lookAtAges tells of certificates that have expired in use.
func (s *Store) lookAtAges() {
	l := s.ladder.Load()
	kept := map[*Pair]bool{}
	note := func(name string, p *Pair) {
		if p == nil {
			return
		}
		s.warnIfExpired(name, p)
		if s.expired[p] {
			kept[p] = true
		}
	}
	note(defaultName, l.other)
	for name, p := range l.named {
		note(name, p)
	}
	s.expired = kept
}
