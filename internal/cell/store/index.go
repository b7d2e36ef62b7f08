package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// Index keys that begin with byte 0 are the store's own:
//
//	0 'a'                 applied: last sequence number, its segment, where it ends
//	0 's' u64 segment     bytes that rows of the machine point to in that segment
//
// All other keys are the machine's.
const (
	ownKeys    = 0x00
	appliedKey = "\x00a"
	liveKeys   = "\x00s"
)

const (
	memTableBytes = 16 << 20
	cacheBytes    = 32 << 20
)

// position is how far the index has come: the entry seq ends at pos in segment.
type position struct {
	seq     uint64
	segment uint64
	pos     int64
}

// Batch gathers the index rows of a group. They become durable together, some
// time after the log.
type Batch struct {
	rows *pebble.Batch
	live map[uint64]int64
}

// Set writes a row. key must not begin with byte 0.
func (b *Batch) Set(key, value []byte) error { return b.rows.Set(key, value, nil) }

// Delete removes a row.
func (b *Batch) Delete(key []byte) error { return b.rows.Delete(key, nil) }

// DeleteRange removes the rows from (inclusive) to (exclusive).
func (b *Batch) DeleteRange(from, to []byte) error { return b.rows.DeleteRange(from, to, nil) }

// AddLive says that rows now point to n more bytes (or fewer) of a segment. A
// segment without live bytes is taken out of use.
func (b *Batch) AddLive(segment uint64, n int64) { b.live[segment] += n }

func openIndex(fs vfs.FS, dir string, logger *zap.Logger) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{
		FS:                          fs,
		DisableWAL:                  true, // the log is the write-ahead log
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		CacheSize:                   cacheBytes,
		Logger:                      pebbleLogger{logger.Sugar()},
	})
}

// pebbleLogger passes on what an operator may act upon.
type pebbleLogger struct{ to *zap.SugaredLogger }

func (pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) { l.to.Errorf("index: "+format, args...) }

// Fatalf must not return: Pebble calls it when its own state cannot be kept.
// Ending the process is right, the log has everything.
func (l pebbleLogger) Fatalf(format string, args ...any) { l.to.Panicf("index: "+format, args...) }

// Get gives a copy of a row, nil when there is none.
func (s *Store) Get(key []byte) ([]byte, error) {
	v, closer, err := s.index.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v = append([]byte{}, v...)
	return v, closer.Close()
}

// Rows iterates over the rows from (inclusive) to (exclusive) as they are now.
// The caller closes it.
func (s *Store) Rows(from, to []byte) (*pebble.Iterator, error) {
	return s.index.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
}

func (s *Store) loadPosition() (position, error) {
	v, err := s.Get([]byte(appliedKey))
	if err != nil || v == nil {
		return position{}, err
	}
	if len(v) != 24 {
		return position{}, fmt.Errorf("the applied position has %d bytes", len(v))
	}
	le := binary.LittleEndian
	return position{seq: le.Uint64(v), segment: le.Uint64(v[8:]), pos: int64(le.Uint64(v[16:]))}, nil
}

func appendPosition(dst []byte, p position) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, p.seq)
	dst = le.AppendUint64(dst, p.segment)
	return le.AppendUint64(dst, uint64(p.pos))
}

func liveKey(segment uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(liveKeys), segment)
}

// loadLive reads the live counters into the segments. A segment that rows
// point to must be there.
func (s *Store) loadLive() error {
	it, err := s.Rows([]byte(liveKeys), []byte("\x00t"))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		number := binary.BigEndian.Uint64(it.Key()[len(liveKeys):])
		seg := s.log.segments[number]
		if seg == nil {
			_ = it.Close() // the folder is refused anyway
			return fmt.Errorf("segment %d is missing and the index points into it", number)
		}
		seg.live = int64(binary.LittleEndian.Uint64(it.Value()))
	}
	return it.Close()
}

// commit writes the batch with the position it brings the index to.
func (s *Store) commit(b *Batch, p position) error {
	for number, n := range b.live {
		if n == 0 {
			continue
		}
		key := liveKey(number)
		total := s.liveBytes(number) + n
		if total == 0 {
			if err := b.rows.Delete(key, nil); err != nil {
				return err
			}
			continue
		}
		if err := b.rows.Set(key, binary.LittleEndian.AppendUint64(nil, uint64(total)), nil); err != nil {
			return err
		}
	}
	if err := b.rows.Set([]byte(appliedKey), appendPosition(nil, p), nil); err != nil {
		return err
	}
	return b.rows.Commit(pebble.NoSync)
}

func (s *Store) liveBytes(number uint64) int64 {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if seg := s.log.segments[number]; seg != nil {
		return seg.live
	}
	return 0
}
