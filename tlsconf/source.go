package tlsconf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// maxFile bounds a file, in bytes; a wrong path may name anything.
const maxFile = 1 << 20

// file is one that somebody configured.
type file struct{ variable, path string }

func (f file) String() string { return fmt.Sprintf("%s=%q", f.variable, f.path) }

// digest stands for what files hold, or for why they cannot be read.
type digest [sha256.Size]byte

// source is a set of files that are used together, and what is known of them.
type source struct {
	files []file
	used  digest // what is in use
	told  digest // what is bad, and was told of
	next  digest // what was seen last and is neither
	since time.Time
}

// content is what the files of a source hold at one look.
type content struct {
	texts  [][]byte
	digest digest
	err    error // one of them cannot be read
	gone   bool  // none of them is there
}

// read looks at the files. Two of them are not read at one moment: whoever uses
// the content looks twice.
func (s *source) read() content {
	var c content
	sum, missing := sha256.New(), 0
	for _, f := range s.files {
		text, err := readFile(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			missing++
		}
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("%s: %w", f, err)
		}
		_, _ = fmt.Fprintf(sum, "%d %v\n", len(text), err)
		_, _ = sum.Write(text)
		c.texts = append(c.texts, text)
	}
	c.gone = missing == len(s.files)
	sum.Sum(c.digest[:0])
	return c
}

// pair is the pair that a source holds: a certificate chain, then its key.
func (s *source) pair(c content) (*Pair, error) {
	if c.err != nil {
		return nil, c.err
	}
	p, blame, err := parsePair(c.texts[0], c.texts[1])
	switch {
	case err == nil:
		return p, nil
	case blame == blameBoth:
		return nil, fmt.Errorf("%s and %s: %w", s.files[0], s.files[1], err)
	}
	return nil, fmt.Errorf("%s: %w", s.files[blame], err)
}

// readFile reads no more than it may, whatever the file becomes meanwhile, and
// waits for none that is not a file: opening a pipe would.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if info.IsDir() {
		return nil, errors.New("is a folder")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(text) > maxFile {
		return nil, errors.New("larger than 1 MiB, so not a file of ours")
	}
	return text, nil
}

// verdict is what a look at a source comes to.
type verdict uint8

const (
	same    verdict = iota // nothing to do
	changed                // new content that has settled: try it
	waiting                // look again after the given time
)

// judge compares what is there now with what was known. Content is tried once it
// has stood for settle, so that a file which is being written is not taken for a
// whole one.
func (s *source) judge(c content, now time.Time, settle time.Duration) (verdict, time.Duration) {
	switch c.digest {
	case s.used:
		s.told, s.next = digest{}, digest{} // what was bad is told of anew if it comes back
		return same, 0
	case s.told:
		s.next = digest{}
		return same, 0
	case s.next:
	default:
		s.next, s.since = c.digest, now
		return waiting, settle
	}
	if left := settle - now.Sub(s.since); left > 0 {
		return waiting, left
	}
	return changed, 0
}

// accept notes that content is in use.
func (s *source) accept(d digest) { s.used, s.told, s.next = d, digest{}, digest{} }

// refuse notes that content is bad. It says whether to tell of it now; else the
// files are looked at again after the given time, for they may be half written.
func (s *source) refuse(d digest, now time.Time, suspect time.Duration) (tell bool, again time.Duration) {
	if left := suspect - now.Sub(s.since); left > 0 {
		return false, left
	}
	s.told, s.next = d, digest{}
	return true, 0
}
