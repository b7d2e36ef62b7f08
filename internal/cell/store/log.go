package store

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// gatherBytes is how much is gathered before it is written; a blob of
	// directBytes or more is written from where it lies.
	gatherBytes = 1 << 20
	directBytes = 64 << 10

	// fillAhead is how far zeros are written ahead of the end in a file that is
	// not filled: a sync that must also grow the file takes twice as long.
	fillAhead = 1 << 20
)

// log is the files. The writer goroutine alone appends; readers and the
// reclaimer share what mu guards.
type log struct {
	fs      vfs.FS
	dir     string
	segSize int64

	// Owned by the writer (before it starts: by Open).
	active     *segment // nil until the first append
	pos        int64    // where the next entry goes
	nextSeq    uint64
	nextNumber uint64
	buf        []byte // bytes for active that end at pos and are not written yet
	dirty      bool   // active has bytes that are not synced

	mu       sync.Mutex // guards the fields below and the marked ones of segment
	segments map[uint64]*segment
	free     []*segment // files nobody uses
	nextSlot int
	settled  uint64 // segments below are full and everything in them is applied
	filling  bool   // the active segment is so full, or grows so, that a spare is wanted
	hurry    bool   // it is almost full
}

// openLog opens every file of the folder.
func openLog(fs vfs.FS, dir string, segSize int64) (*log, error) {
	l := &log{fs: fs, dir: dir, segSize: segSize, segments: make(map[uint64]*segment), nextNumber: 1, nextSlot: 1}
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.openFile(name); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *log) openFile(name string) error {
	if strings.HasSuffix(name, tempSuffix) {
		return l.fs.Remove(l.fs.PathJoin(l.dir, name)) // a crash while it was made
	}
	slot, ok := slotOf(name)
	if !ok {
		return nil
	}
	l.nextSlot = max(l.nextSlot, slot+1)
	s, err := openLogFile(l.fs, l.dir, name)
	if err != nil {
		return err
	}
	if err := readSegmentHeader(s); err != nil {
		_ = s.file.Close() // the read error tells more
		return err
	}
	if s.number == 0 {
		l.free = append(l.free, s)
		return nil
	}
	if twin := l.segments[s.number]; twin != nil {
		_ = s.file.Close() // the folder is refused anyway
		return fmt.Errorf("%s and %s both say they are segment %d", s.name, twin.name, s.number)
	}
	l.segments[s.number] = s
	l.nextNumber = max(l.nextNumber, s.number+1)
	return nil
}

// append adds an entry and says where it lies. The bytes are on disk after the
// next sync. blobs are not kept.
func (l *log) append(meta []byte, blobs []Blob, sizes []blobSize) (Entry, error) {
	need := entryBytes(meta, blobs)
	if need > maxEntryBytes || len(meta) > maxMetaBytes || len(blobs) > maxBlobs {
		return Entry{}, fmt.Errorf("an entry of %d bytes and %d blobs exceeds the limits", need, len(blobs))
	}
	if l.active == nil || l.pos+need > l.active.size || l.outgrown(need) {
		if err := l.roll(need); err != nil {
			return Entry{}, err
		}
	}
	if err := l.fill(l.pos+need, need); err != nil {
		return Entry{}, err
	}
	e := Entry{Seq: l.nextSeq, Meta: meta, segment: l.active.number, pos: l.pos}
	l.buf = appendPrefix(l.buf, l.active.number, l.nextSeq, meta, blobs)
	l.dirty = true
	l.pos += need
	l.nextSeq++
	at, left := int64(0), need-(entryHeader+int64(len(blobs))*blobRow+int64(len(meta)))
	for i := range blobs {
		n := int64(len(blobs[i].Data))
		sizes = append(sizes, blobSize{len: uint32(n), crc: blobs[i].CRC, at: at})
		at += n
		left -= n
		if err := l.put(blobs[i].Data, l.pos-left); err != nil {
			return e, err
		}
	}
	e.sizes = sizes
	if len(l.buf) >= gatherBytes {
		return e, l.write(l.pos)
	}
	return e, nil
}

// put adds bytes that end at end.
func (l *log) put(data []byte, end int64) error {
	if len(data) < directBytes {
		l.buf = append(l.buf, data...)
		if len(l.buf) < gatherBytes {
			return nil
		}
		return l.write(end)
	}
	if err := l.write(end - int64(len(data))); err != nil {
		return err
	}
	_, err := l.active.file.WriteAt(data, end-int64(len(data)))
	return err
}

// write writes what is gathered; it ends at end.
func (l *log) write(end int64) error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.active.file.WriteAt(l.buf, end-int64(len(l.buf)))
	l.buf = l.buf[:0]
	return err
}

// fill sees to it that an entry of need bytes up to end does not grow the file
// alone. A large one may: the zeros would cost more than they save.
func (l *log) fill(end, need int64) error {
	s := l.active
	if end <= s.filled {
		return nil
	}
	s.filled = end
	if need > fillAhead/4 {
		return nil
	}
	s.filled = min(s.size, end+fillAhead)
	_, err := s.file.WriteAt(make([]byte, s.filled-end), end)
	return err
}

// sync makes everything appended durable.
func (l *log) sync() error {
	if !l.dirty {
		return nil
	}
	if err := l.write(l.pos); err != nil {
		return err
	}
	if err := l.active.file.SyncData(); err != nil {
		return err
	}
	l.dirty = false
	return nil
}

// roll goes on in a fresh segment with room for an entry of need bytes. What
// is in the old one is synced first: a segment may only follow whole ones.
func (l *log) roll(need int64) error {
	if l.active != nil {
		if err := l.sync(); err != nil {
			return err
		}
	}
	size := max(l.segSize, (segmentHeader+need+segmentHeader-1)/segmentHeader*segmentHeader)
	s := l.takeFree(size)
	if s == nil {
		var err error
		// The reclaimer had none ready, and filling one would hold writes up.
		if s, err = createLogFile(l.fs, l.dir, l.takeName(), size, segmentHeader, nil); err != nil {
			return err
		}
	}
	s.number, s.first, s.span = l.nextNumber, l.nextSeq, s.size
	l.nextNumber++
	l.buf = appendSegmentHeader(l.buf[:0], s)
	l.mu.Lock()
	if old := l.active; old != nil && old.filled < old.size {
		old.span = old.filled // nothing is won by copying out of what it never grew to
	}
	l.segments[s.number] = s
	l.filling, l.hurry = false, false
	l.mu.Unlock()
	l.active, l.pos, l.dirty = s, segmentHeader, true
	return nil
}

func (l *log) takeName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextSlot++
	return slotName(l.nextSlot - 1)
}

// room says whether an entry of need bytes goes in without a new file.
func (l *log) room(need int64) bool {
	if l.active != nil && l.pos+need <= l.active.size {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.free, func(s *segment) bool { return s.size >= segmentHeader+need })
}

// acquire keeps a segment in use until release. It is nil when the segment is
// not in use any more.
func (l *log) acquire(number uint64) *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.segments[number]
	if s != nil {
		s.readers++
	}
	return s
}

func (l *log) release(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.readers--
	if s.retired && s.readers == 0 {
		l.free = append(l.free, s)
	}
}

// charge applies the changes of a batch to the live counters and settles every
// segment before the active one. It reports whether there is work for the
// reclaimer and whether for those who copy forward.
func (l *log) charge(live map[uint64]int64) (dead, sparse bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, n := range live {
		if s := l.segments[number]; s != nil {
			s.live += n
		}
	}
	was := l.settled
	if l.active != nil {
		l.settled = l.active.number
		if !l.filling && l.fillsUp() {
			l.filling, dead = true, true
		}
		l.hurry = l.pos > l.active.size/4*3
	}
	for number := range live {
		s := l.segments[number]
		if s == nil || number >= l.settled {
			continue
		}
		dead = dead || s.live == 0
		sparse = sparse || s.sparse()
	}
	if l.settled != was {
		dead, sparse = true, true
	}
	return dead, sparse
}

func (s *segment) sparse() bool { return s.live > 0 && s.live < (s.span-segmentHeader)/2 }

// unused lists the settled segments nothing points into.
func (l *log) unused() []uint64 {
	return l.settledWhere(func(s *segment) bool { return s.live == 0 })
}

// sparseSegments lists the settled segments of which less than half is live.
func (l *log) sparseSegments() []uint64 {
	return l.settledWhere((*segment).sparse)
}

func (l *log) settledWhere(is func(*segment) bool) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var numbers []uint64
	for number, s := range l.segments {
		if number < l.settled && is(s) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// retire takes segments out of use; their files are free when the last reader
// has left.
func (l *log) retire(numbers []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range numbers {
		s := l.segments[number]
		delete(l.segments, number)
		s.retired = true
		if s.readers == 0 {
			l.free = append(l.free, s)
		}
	}
}

// close closes every file.
func (l *log) close() error {
	l.mu.Lock()
	files := slices.Clone(l.free)
	for _, s := range l.segments {
		files = append(files, s)
	}
	l.free, l.segments = nil, nil
	l.mu.Unlock()
	var first error
	for _, s := range files {
		if err := s.file.Close(); first == nil {
			first = err
		}
	}
	return first
}
