package store

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The first block of a log file names its use, little endian:
//
//	 0 "QELOG\x00\x00\x01"
//	 8 u32 CRC-32C of bytes 12 … 36
//	12 u64 number of the segment
//	20 u64 sequence number its first entry has
//	28 u64 bytes of the file
const (
	segmentHeader = 4096
	headerFields  = 36
	segmentMagic  = "QELOG\x00\x00\x01"
	logSuffix     = ".log"
	tempSuffix    = ".tmp"
)

// segment is one use of a log file. A file that is free has no number.
type segment struct {
	number uint64
	first  uint64 // sequence number of its first entry
	size   int64  // of the file
	name   string
	file   vfs.File
	filled int64 // bytes from the start that have been written once; the writer's

	// The fields below are guarded by log.mu.
	span    int64 // of its bytes, those that were ever used; live ones are held against it
	live    int64 // bytes index rows point to, as charged by AddLive
	readers int
	retired bool // out of use as soon as readers is 0
}

func appendSegmentHeader(dst []byte, s *segment) []byte {
	le := binary.LittleEndian
	from := len(dst)
	dst = append(dst, segmentMagic...)
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, s.number)
	dst = le.AppendUint64(dst, s.first)
	dst = le.AppendUint64(dst, uint64(s.size))
	le.PutUint32(dst[from+8:], Checksum(dst[from+12:from+headerFields]))
	return append(dst, make([]byte, segmentHeader-headerFields)...)
}

// readSegmentHeader fills in number and first; both stay 0 in a file that was
// never used or whose header is torn, which nothing durable can lie behind.
func readSegmentHeader(s *segment) error {
	var h [headerFields]byte
	if _, err := s.file.ReadAt(h[:], 0); err != nil && err != io.EOF {
		return fmt.Errorf("read the header of %s: %w", s.name, err)
	}
	le := binary.LittleEndian
	if string(h[:8]) != segmentMagic || le.Uint32(h[8:]) != Checksum(h[12:]) {
		return nil
	}
	s.number, s.first = le.Uint64(h[12:]), le.Uint64(h[20:])
	return nil
}

// createLogFile makes a file with zeros up to filled that survives a crash, or
// none: it gets its name only when it is whole. rest is writeZeros'.
func createLogFile(fs vfs.FS, dir, name string, size, filled int64, rest func(time.Duration) error) (*segment, error) {
	temp := fs.PathJoin(dir, name+tempSuffix)
	if err := writeZeros(fs, temp, filled, rest); err != nil {
		return nil, fmt.Errorf("fill %s: %w", temp, err)
	}
	path := fs.PathJoin(dir, name)
	if err := fs.Rename(temp, path); err != nil {
		return nil, err
	}
	if err := syncDir(fs, dir); err != nil {
		return nil, err
	}
	s, err := openLogFile(fs, dir, name)
	if err == nil {
		s.size = size
	}
	return s, err
}

// writeZeros makes a file of zeros. With rest it is synced part by part, and
// rest is called after each with how long that took: many megabytes at once
// would hold every sync of the log up until all are written.
func writeZeros(fs vfs.FS, path string, size int64, rest func(time.Duration) error) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	zeros := make([]byte, min(size, fillChunk))
	for left := size; left > 0 && err == nil; left -= int64(len(zeros)) {
		began := time.Now()
		if _, err = f.Write(zeros[:min(left, int64(len(zeros)))]); err != nil || rest == nil {
			continue
		}
		if err = f.SyncData(); err == nil {
			err = rest(time.Since(began))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// openLogFile opens a file for reading and writing in place.
func openLogFile(fs vfs.FS, dir, name string) (*segment, error) {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // the first error tells more
		return nil, err
	}
	return &segment{name: name, file: f, size: info.Size(), filled: info.Size(), span: info.Size()}, nil
}

// slotOf reads the running number out of a log file's name.
func slotOf(name string) (slot int, ok bool) {
	digits, found := strings.CutSuffix(name, logSuffix)
	if !found {
		return 0, false
	}
	if _, err := fmt.Sscanf(digits, "%d", &slot); err != nil {
		return 0, false
	}
	return slot, slotName(slot) == name
}

func slotName(slot int) string { return fmt.Sprintf("%08d%s", slot, logSuffix) }

// syncDir makes the names in dir durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// makeDir makes dir and what is missing above it, durably.
func makeDir(fs vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil {
			made = append(made, d)
			break
		}
		made = append(made, d)
		if fs.PathDir(d) == d {
			break
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range made {
		if err := syncDir(fs, d); err != nil {
			return err
		}
	}
	return nil
}
