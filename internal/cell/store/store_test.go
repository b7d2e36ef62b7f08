package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape is a machine that remembers the meta of what was applied.
type tape struct {
	applied []string
	visible []string
	keep    bool // rows point to every blob
}

func (p *tape) Load(*Store) error { return nil }

func (p *tape) Apply(e *Entry, b *Batch) error {
	p.applied = append(p.applied, string(e.Meta))
	if p.keep {
		for i := range e.Blobs() {
			r := e.Ref(i)
			b.AddLive(r.Segment, int64(r.Len))
		}
	}
	return b.Set([]byte("row"), e.Meta)
}

func (p *tape) Publish() { p.visible = append([]string(nil), p.applied...) }

func openTape(t testing.TB, fs vfs.FS, keep bool) (*Store, *tape) {
	t.Helper()
	p := &tape{keep: keep}
	s, err := Open(Config{FS: fs, Dir: "d", SegmentBytes: MinSegmentBytes}, p)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func write(t testing.TB, s *Store, meta string, blobs ...[]byte) {
	t.Helper()
	err := s.Do(context.Background(), &Command{Plan: func(d *Draft) error {
		d.Meta = append(d.Meta, meta...)
		for _, b := range blobs {
			d.Blobs = append(d.Blobs, Blob{Data: b, CRC: Checksum(b)})
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// crashed is what is left when nothing unsynced survives.
func crashed(fs *vfs.MemFS) *vfs.MemFS { return fs.CrashClone(vfs.CrashCloneCfg{}) }

func TestAppliedAgainAfterACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, p := openTape(t, fs, true)
	var all []string
	for i := range 100 {
		meta := fmt.Sprint("entry ", i)
		all = append(all, meta)
		write(t, s, meta, bytes.Repeat([]byte{byte(i)}, 1000))
	}
	left := crashed(fs)
	closeStore(t, s)
	if got := strings.Join(p.visible, ","); got != strings.Join(all, ",") {
		t.Errorf("visible: %s", got)
	}
	s, p = openTape(t, left, true)
	if got := strings.Join(p.visible, ","); got != strings.Join(all, ",") {
		t.Errorf("after the crash: %s", got)
	}
	closeStore(t, s)
	s, p = openTape(t, left, true)
	if len(p.applied) != 0 {
		t.Errorf("after closing, %d entries were applied again", len(p.applied))
	}
	closeStore(t, s)
}

// TestTornTail damages bytes of the last entry, one place after the other: it
// must be gone, and the others there.
func TestTornTail(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, _ := openTape(t, fs, true)
	write(t, s, "one", []byte("blob of one"))
	from := s.log.pos
	write(t, s, "two", []byte("blob of two"))
	to, path := s.log.pos, "d/log/"+s.log.active.name
	left := crashed(fs)
	closeStore(t, s)
	for at := from; at < to; at++ {
		fs := crashed(left)
		f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		s, p := openTape(t, fs, true)
		if got := strings.Join(p.applied, ","); got != "one" {
			t.Fatalf("byte %d: %q", at, got)
		}
		write(t, s, "three")
		again := crashed(fs)
		closeStore(t, s)
		s, p = openTape(t, again, true)
		if got := strings.Join(p.visible, ","); !strings.HasSuffix(got, "three") || strings.Contains(got, "two") {
			t.Fatalf("byte %d, going on: %q", at, got)
		}
		closeStore(t, s)
	}
}

// TestRecycledFile fills a file with entries, uses it again for fewer, and
// crashes: nothing of its first use may come back.
func TestRecycledFile(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, _ := openTape(t, fs, false)
	for i := range 400 {
		write(t, s, fmt.Sprint("old ", i), bytes.Repeat([]byte("o"), 100))
	}
	closeStore(t, s)
	s, _ = openTape(t, fs, false) // begins a segment in a file used before
	first := s.log.nextSeq
	write(t, s, "new 0")
	write(t, s, "new 1")
	if s.log.active.number < 3 || int64(first) < 400 {
		t.Fatalf("segment %d, entry %d: nothing was recycled", s.log.active.number, first)
	}
	left := crashed(fs)
	closeStore(t, s)
	s, p := openTape(t, left, false)
	if got := strings.Join(p.applied, ","); got != "new 0,new 1" {
		t.Errorf("applied again: %s", got)
	}
	closeStore(t, s)
}

// TestStaleNumbers makes the one case where the sequence number of a leftover
// fits: entries 1 and 2 were written and not synced, 1 is torn, and the file is
// used again for another entry 1 of the same size.
func TestStaleNumbers(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, _ := openTape(t, fs, true)
	write(t, s, "a")
	write(t, s, "b")
	left := crashed(fs)
	closeStore(t, s)
	f, err := left.OpenReadWrite("d/log/"+slotName(1), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{0}, segmentHeader)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	s, p := openTape(t, left, true)
	if len(p.applied) != 0 {
		t.Fatalf("applied %v", p.applied)
	}
	for _, unused := s.Files(); unused == 0; _, unused = s.Files() { // the reclaimer is at it
		runtime.Gosched()
	}
	write(t, s, "x")
	if s.log.active.name != slotName(1) {
		t.Fatalf("%s was used", s.log.active.name)
	}
	again := crashed(left)
	closeStore(t, s)
	s, p = openTape(t, again, true)
	if got := strings.Join(p.applied, ","); got != "x" {
		t.Errorf("applied %s", got)
	}
	closeStore(t, s)
}

// TestHoleIsRefused takes a file away that is needed.
func TestHoleIsRefused(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, _ := openTape(t, fs, true)
	for i := range 60 {
		write(t, s, fmt.Sprint("entry ", i), bytes.Repeat([]byte("x"), 1000))
	}
	left := crashed(fs)
	closeStore(t, s)
	if err := left.Remove("d/log/" + slotName(2)); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(Config{FS: left, Dir: "d"}, &tape{}); err == nil {
		closeStore(t, s)
		t.Error("a log with a hole was opened")
	}
}

func TestRefusedPlanWritesNothing(t *testing.T) {
	s, p := openTape(t, vfs.NewMem(), true)
	defer closeStore(t, s)
	refusal := errors.New("no")
	err := s.Do(context.Background(), &Command{Plan: func(d *Draft) error {
		d.Meta = append(d.Meta, "x"...)
		return refusal
	}})
	if !errors.Is(err, refusal) {
		t.Errorf("refused: %v", err)
	}
	if err := s.Do(context.Background(), &Command{Plan: func(*Draft) error { return nil }}); err != nil {
		t.Errorf("empty: %v", err)
	}
	write(t, s, "y")
	if got := strings.Join(p.visible, ","); got != "y" {
		t.Errorf("visible: %q", got)
	}
}

// TestGroup lets many wait for one sync.
func TestGroup(t *testing.T) {
	s, p := openTape(t, vfs.NewMem(), true)
	defer closeStore(t, s)
	hold, held := make(chan struct{}), make(chan struct{})
	const n = 50
	done := make(chan error, n+1)
	do := func(plan func(*Draft) error) { done <- s.Do(context.Background(), &Command{Plan: plan}) }
	go do(func(d *Draft) error {
		close(held)
		<-hold
		d.Meta = append(d.Meta, "first"...)
		return nil
	})
	<-held
	for range n {
		go do(func(d *Draft) error { d.Meta = append(d.Meta, "more"...); return nil })
	}
	for len(s.commands) < n {
		runtime.Gosched()
	}
	close(hold)
	for range n + 1 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if s.Syncs() != 2 || len(p.visible) != n+1 {
		t.Errorf("%d syncs for %d entries", s.Syncs(), len(p.visible))
	}
}

func TestReadChecks(t *testing.T) {
	fs := vfs.NewMem()
	s, _ := openTape(t, fs, true)
	defer closeStore(t, s)
	write(t, s, "m", []byte("first"), []byte("second"))
	at := segmentHeader + int64(entryHeader+2*blobRow+1)
	refs := []Ref{
		{Segment: 1, Pos: at, Len: 5, CRC: Checksum([]byte("first"))},
		{Segment: 1, Pos: at + 5, Len: 6, CRC: Checksum([]byte("second"))},
	}
	got, err := s.Read(refs, nil)
	if err != nil || len(got) != 2 || string(got[0]) != "first" || string(got[1]) != "second" {
		t.Errorf("read %q, %v", got, err)
	}
	refs[1].CRC++
	if _, err := s.Read(refs, nil); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a wrong checksum: %v", err)
	}
	refs[0].Segment = 99
	if _, err := s.Read(refs[:1], nil); !errors.Is(err, ErrGone) {
		t.Errorf("no segment: %v", err)
	}
}

// FuzzScan reads any bytes as a log file.
func FuzzScan(f *testing.F) {
	blob := []byte("blob")
	good := appendPrefix(nil, 7, 9, []byte("meta"), []Blob{{Data: blob, CRC: Checksum(blob)}})
	f.Add(append(append([]byte{}, good...), blob...))
	f.Add(good)
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &segment{number: 7, size: int64(len(b)), name: "fuzz", file: vfs.NewMemFile(b)}
		n := uint64(0)
		pos, seq, err := (&log{}).scan(s, 0, 9, func(e *Entry) error {
			n++
			for i := range e.Blobs() {
				_ = e.Blob(i)
			}
			return nil
		})
		if err != nil || seq != 9+n || pos > int64(len(b)) {
			t.Errorf("position %d, sequence number %d after %d entries, %v", pos, seq, n, err)
		}
	})
}
