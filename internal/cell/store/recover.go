package store

import (
	"fmt"

	"go.uber.org/zap"
)

// catchUp brings the index up to the end of the log.
func (s *Store) catchUp() error {
	from, err := s.loadPosition()
	if err != nil {
		return err
	}
	if err := s.loadLive(); err != nil {
		return err
	}
	if err := s.machine.Load(s); err != nil {
		return fmt.Errorf("load the index: %w", err)
	}
	s.atSeen = from
	if err := s.replay(); err != nil {
		return err
	}
	at := s.atSeen
	s.log.nextSeq = at.seq + 1
	s.log.nextNumber = max(s.log.nextNumber, at.segment+1)
	s.log.settled = s.log.nextNumber
	if at.seq == from.seq {
		return nil
	}
	s.cfg.Logger.Info("the log was applied again",
		zap.Uint64("from", from.seq+1), zap.Uint64("to", at.seq))
	return s.index.Flush()
}

// replay applies the entries behind atSeen.
func (s *Store) replay() error {
	start := s.atSeen
	for _, seg := range s.log.inOrder(start.segment) {
		pos := int64(segmentHeader)
		switch {
		case seg.number == start.segment:
			pos = start.pos
		case seg.first != s.atSeen.seq+1:
			return fmt.Errorf("the log has a hole: segment %d begins with entry %d, entry %d is missing",
				seg.number, seg.first, s.atSeen.seq+1)
		}
		if err := s.harden(seg, pos); err != nil {
			return fmt.Errorf("sync what is applied again: %w", err)
		}
		if err := s.replaySegment(seg, pos); err != nil {
			return err
		}
	}
	return nil
}

// harden makes durable what replaySegment is going to accept. The entries may
// be in the page cache only, even as clean pages after a sync that failed:
// they are written once more, else a sync would have nothing to do for them.
func (s *Store) harden(seg *segment, pos int64) error {
	if pos == segmentHeader {
		if _, err := seg.file.WriteAt(appendSegmentHeader(nil, seg), 0); err != nil {
			return err
		}
	}
	_, _, err := s.log.scan(seg, pos, s.atSeen.seq+1, func(e *Entry) error {
		if _, err := seg.file.WriteAt(e.head, e.pos); err != nil {
			return err
		}
		_, err := seg.file.WriteAt(e.data, e.blobsAt())
		return err
	})
	if err != nil {
		return err
	}
	return seg.file.SyncData()
}

func (s *Store) replaySegment(seg *segment, pos int64) error {
	batch := &s.group.batch
	batch.rows.Reset()
	_, _, err := s.log.scan(seg, pos, s.atSeen.seq+1, func(e *Entry) error {
		if err := s.machine.Apply(e, batch); err != nil {
			return fmt.Errorf("apply entry %d: %w", e.Seq, err)
		}
		s.atSeen = position{seq: e.Seq, segment: seg.number, pos: e.end()}
		if batch.rows.Len() < memTableBytes/16 {
			return nil
		}
		return s.commitReplayed()
	})
	if err != nil {
		return err
	}
	return s.commitReplayed()
}

func (s *Store) commitReplayed() error {
	batch := &s.group.batch
	if err := s.commit(batch, s.atSeen); err != nil {
		return err
	}
	s.log.charge(batch.live)
	s.machine.Publish()
	clear(batch.live)
	batch.rows.Reset()
	return nil
}
