package tlsconf

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is written piece by piece is tried once no piece has come for settle, and
// called bad once it has stood for suspect: not even a file that was cut between
// two blocks, which reads as a whole one, is used before.
func TestSourceWaitsForWriters(t *testing.T) {
	const settle, suspect = 250 * time.Millisecond, 2 * time.Second
	path := filepath.Join(t.TempDir(), "f")
	now := time.Now()
	s := &source{files: []file{{"V", path}}}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(after time.Duration, v verdict, again time.Duration) content {
		t.Helper()
		now = now.Add(after)
		c := s.read()
		if got, wait := s.judge(c, now, settle); got != v || wait != again {
			t.Fatalf("judged %d, again in %v; want %d, %v", got, wait, v, again)
		}
		return c
	}
	write("one")
	s.accept(s.read().digest)
	want(0, same, 0)
	write("one, t")
	want(time.Minute, waiting, settle)
	want(100*time.Millisecond, waiting, 150*time.Millisecond)
	write("one, two")
	want(149*time.Millisecond, waiting, settle) // the piece before is forgotten
	write("one, two, three")
	want(249*time.Millisecond, waiting, settle)
	c := want(settle, changed, 0)
	// Bad: it may still be half of something.
	if tell, again := s.refuse(c.digest, now, suspect); tell || again != suspect-settle {
		t.Fatalf("told %v, again in %v", tell, again)
	}
	c = want(suspect-settle, changed, 0)
	if tell, _ := s.refuse(c.digest, now, suspect); !tell {
		t.Fatal("not told")
	}
	want(time.Hour, same, 0) // told once
	// Back to what is in use, and bad once more in another way.
	write("one")
	want(0, same, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(0, waiting, settle)
	if c = want(settle, changed, 0); !c.gone || c.err == nil {
		t.Fatalf("gone %v, %v", c.gone, c.err)
	}
	write("four")
	want(0, waiting, settle)
	c = want(settle, changed, 0)
	s.accept(c.digest)
	want(0, same, 0)
}
