package store

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOutgrownFile writes more to a fresh folder than its first file may grow
// to: the writer goes over to a file that need not grow, and a crash before or
// after that loses nothing.
func TestOutgrownFile(t *testing.T) {
	const segmentBytes = 4 * fillAhead
	fs := vfs.NewCrashableMem()
	open := func(fs vfs.FS) (*Store, *tape) {
		p := &tape{keep: true}
		s, err := Open(Config{FS: fs, Dir: "d", SegmentBytes: segmentBytes}, p)
		if err != nil {
			t.Fatal(err)
		}
		return s, p
	}
	s, _ := open(fs)
	blob := bytes.Repeat([]byte{1}, directBytes/2)
	var all []string
	more := func() {
		all = append(all, fmt.Sprint("entry ", len(all)))
		write(t, s, all[len(all)-1], blob)
	}
	for s.log.pos <= segmentBytes/mayGrow {
		more()
	}
	for _, unused := s.Files(); unused == 0; _, unused = s.Files() { // the reclaimer is at it
		runtime.Gosched()
	}
	first := s.log.active
	if first.number != 1 || first.filled == first.size {
		t.Fatalf("segment %d has grown to %d of %d bytes", first.number, first.filled, first.size)
	}
	before, had := crashed(fs), len(all)
	for s.log.active == first {
		more()
	}
	if now := s.log.active; now.filled != now.size || s.log.pos > segmentBytes/mayGrow {
		t.Errorf("went over to a file that is filled up to %d of %d, at %d", now.filled, now.size, s.log.pos)
	}
	more()
	if sparse := s.SparseSegments(); len(sparse) > 0 {
		t.Errorf("segments %d count as mostly dead", sparse)
	}
	after := crashed(fs)
	closeStore(t, s)
	for name, left := range map[string]struct {
		fs  vfs.FS
		has int
	}{"crash before": {before, had}, "crash after": {after, len(all)}, "closed": {fs, len(all)}} {
		s, p := open(left.fs)
		if got := strings.Join(p.visible, ","); name != "closed" && got != strings.Join(all[:left.has], ",") {
			t.Errorf("%s: %s", name, got)
		}
		write(t, s, "one more")
		closeStore(t, s)
	}
}

// TestSpareInParts makes a spare: the writer's syncs have their turns while it
// is filled, and one that is given up leaves nothing that the next opening keeps.
func TestSpareInParts(t *testing.T) {
	const size = 8 * fillChunk
	fs := vfs.NewCrashableMem()
	l, err := openLog(fs, "", size)
	if err != nil {
		t.Fatal(err)
	}
	rests := 0
	if err := l.addSpare(func(time.Duration) error { rests++; return nil }); err != nil {
		t.Fatal(err)
	}
	if rests != size/fillChunk {
		t.Errorf("%d rests in %d parts", rests, size/fillChunk)
	}
	if err := l.addSpare(func(time.Duration) error { return errStopping }); !errors.Is(err, errStopping) {
		t.Errorf("given up: %v", err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if l, err = openLog(fs, "", size); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	names, err := fs.List("")
	if err != nil || len(names) != 1 || len(l.free) != 1 || l.free[0].filled != size {
		t.Errorf("files %q, %d of them unused (%v)", names, len(l.free), err)
	}
}
