package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC) }

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, nil, at, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wait until so many lines have been written or dropped.
func (l *Log) wait(t *testing.T, written, dropped int64) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		w, d := l.Counts()
		if w == written && d == dropped {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d written, %d dropped; want %d and %d", w, d, written, dropped)
		}
		<-tick.C
	}
}

// topics are what the lines of a text are about, and how many they say are missing.
func topics(t *testing.T, text string) (names []string, missing int64) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			names = append(names, "?")
			continue
		}
		if e.What == dropped {
			missing += e.Lines
			continue
		}
		names = append(names, e.Topic)
	}
	return names, missing
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLine(t *testing.T) {
	long := strings.Repeat("é", 4000)
	got := string(Event{What: TopicCreated, Tenant: "t", Label: "a<b>\n\xff", Topic: long, Configs: make([]string, 500)}.line(at().In(time.FixedZone("", 3600))))
	if !strings.HasPrefix(got, `{"time":"2026-01-02T03:04:05.678Z","event":"topic_created","tenant":"t","label":"a<b>\n`) {
		t.Error(got)
	}
	if strings.Count(got, "\n") != 1 || !json.Valid([]byte(got)) || len(got) > 2000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	l.Add(Event{Topic: "1"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if names, _ := topics(t, read(t, path)); fmt.Sprint(names) != "[ 1]" {
		t.Errorf("%q", names)
	}
}

// Rotation by rename and by truncation both lose nothing, and need no signal.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	l := open(t, path)
	l.Add(Event{Topic: "1"})
	l.wait(t, 1, 0)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Add(Event{Topic: "2"})
	l.wait(t, 2, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.Add(Event{Topic: "3"})
	l.wait(t, 3, 0)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	l.Add(Event{Topic: "4"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	first, _ := topics(t, read(t, path+".1"))
	last, _ := topics(t, read(t, path))
	if fmt.Sprint(first, last) != "[1] [4]" {
		t.Errorf("%q, then %q", first, last)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// What cannot be written is counted, and told with the first line that can be:
// here the place of the file is taken by a folder for a while.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit")
	l := open(t, path)
	l.Add(Event{Topic: "1"})
	l.wait(t, 1, 0)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		l.Add(Event{Topic: "lost"})
		l.wait(t, 1, n+1)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.Add(Event{Topic: "2"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if names, missing := topics(t, read(t, path)); fmt.Sprint(names) != "[2]" || missing != 3 {
		t.Errorf("%q, %d missing", names, missing)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/dev/null", filepath.Join(t.TempDir(), "none", "audit")} {
		if l, err := Open(path, nil, at, zap.NewNop()); err == nil {
			t.Errorf("%s was opened", path)
			_ = l.Close()
		}
	}
}

// disk is a writer with room for so many bytes, which can be made to hang.
type disk struct {
	mu   sync.Mutex
	room int
	got  bytes.Buffer
	hang chan struct{}
	met  chan struct{}
}

func (d *disk) Write(b []byte) (int, error) {
	if d.hang != nil {
		d.met <- struct{}{}
		<-d.hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(d.room, len(b))
	d.room -= n
	d.got.Write(b[:n])
	if n < len(b) {
		return n, errors.New("the disk is full")
	}
	return n, nil
}

func (d *disk) grow(n int) { d.mu.Lock(); d.room += n; d.mu.Unlock() }

// A disk that fills up in the middle of a line leaves that one broken and the
// next ones whole.
func TestFullDisk(t *testing.T) {
	d := &disk{room: 100}
	l, err := Open(Stderr, d, at, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(4) { // each is some 60 bytes
		l.Add(Event{What: TopicCreated, Topic: "x"})
		if w := min(n+1, 1); n > 0 {
			l.wait(t, w, n)
		} else {
			l.wait(t, 1, 0)
		}
	}
	d.grow(1000)
	l.Add(Event{What: TopicCreated, Topic: "y"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if names, missing := topics(t, d.got.String()); fmt.Sprint(names) != "[x ? y]" || missing != 3 {
		t.Errorf("%q, %d missing:\n%s", names, missing, d.got.String())
	}
}

// A disk that hangs holds nobody up: what has no room in the queue is dropped.
func TestSlowDisk(t *testing.T) {
	d := &disk{room: 1 << 30, hang: make(chan struct{}), met: make(chan struct{}, 1000)}
	l, err := Open(Stderr, d, at, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	l.Add(Event{Topic: "first"})
	<-d.met // the writer hangs, with that one
	for range queued + 10 {
		l.Add(Event{Topic: "x"})
	}
	l.wait(t, 0, 10)
	close(d.hang)
	l.wait(t, queued+1, 10)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if names, missing := topics(t, d.got.String()); len(names) != queued+1 || missing != 10 {
		t.Errorf("%d lines, %d missing", len(names), missing)
	}
}

func BenchmarkAdd(b *testing.B) {
	l, err := Open(filepath.Join(b.TempDir(), "audit"), nil, time.Now, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	e := Event{What: LoginOK, Tenant: "0b1ff7e2-8f4e-4c55-8e9c-8d3c9bb3e1a1", Label: "orders", Address: "192.0.2.17:51234", Lane: "acme.example", Mechanism: "PLAIN"}
	for b.Loop() {
		l.Add(e)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	written, dropped := l.Counts()
	b.ReportMetric(float64(dropped)/float64(written+dropped)*100, "%dropped")
}
