package store

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// reclaim is the goroutine that keeps files coming and going: it makes one
// before the writer needs it and takes those out of use nothing points into.
func (s *Store) reclaim() {
	defer s.reclaims.Done()
	for {
		select {
		case <-s.stop:
			return
		case <-s.kick:
		}
		if s.failure() != nil {
			return
		}
		if err := s.reclaimOnce(); err != nil && !errors.Is(err, errStopping) {
			s.cfg.Logger.Error("log files could not be reclaimed", zap.Error(err))
		}
	}
}

func (s *Store) reclaimOnce() error {
	if s.log.wantsSpare() && s.free() > s.cfg.ReserveBytes+2*s.cfg.SegmentBytes {
		if err := s.log.addSpare(s.rest); err != nil {
			return fmt.Errorf("make a log file: %w", err)
		}
	}
	// Listed before the flush: everything that made them unused is in it. Only
	// then may their bytes go, for until the flush a crash brings an index back
	// that points to them or a replay that reads them.
	unused := s.log.unused()
	if len(unused) > 0 || s.unflushed.Load() > flushEvery {
		s.unflushed.Store(0)
		if err := s.index.Flush(); err != nil {
			return fmt.Errorf("flush the index: %w", err)
		}
	}
	s.log.retire(unused)
	inUse, _ := s.Files()
	keep := min(max(inUse/4, leastSpares), mostSpares)
	if s.free() < 2*s.cfg.ReserveBytes {
		keep = 1
	}
	if err := s.log.trim(keep); err != nil {
		return fmt.Errorf("remove log files: %w", err)
	}
	return nil
}

// rest leaves the disk to the writer for as long as it was just taken, unless
// the writer is about to need what is being made.
func (s *Store) rest(took time.Duration) error {
	wait := min(took, longestRest)
	if s.log.hurried() {
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.stop:
		return errStopping
	}
}

func (s *Store) free() int64 {
	usage, err := s.cfg.FS.GetDiskUsage(s.cfg.Dir)
	if err != nil {
		return 1 << 62
	}
	return int64(min(usage.AvailBytes, 1<<62))
}
