package tlsconf_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// The ways in which files are replaced, each of them for the folder of names and
// for the default pair.
func TestFilesAreFollowed(t *testing.T) {
	a := newAuthority(t)
	issue := func() pemPair { return a.issue(t, ecKey(t), tomorrow(), "a.example") }
	first := issue()
	dir := t.TempDir()
	put(t, dir, "a.example", first)
	cert, key := filepath.Join(dir, "a.example.crt"), filepath.Join(dir, "a.example.key")
	for what, c := range map[string]tlsconf.Config{
		"the folder":       {Dir: dir, Every: patience},
		"the default pair": {CertFile: cert, KeyFile: key, Every: patience},
	} {
		put(t, dir, "a.example", first)
		l := listen(t, c)
		l.shows(t, a, "a.example", first)
		open, err := l.connect(clientOf(a, "a.example", 0))
		must(t, err)
		defer open.Close()

		byRename := issue()
		put(t, dir, "a.example", byRename)
		l.shows(t, a, "a.example", byRename)

		written := issue()
		inPlace(t, cert, written.cert)
		inPlace(t, key, written.key)
		l.shows(t, a, "a.example", written)

		sameKey := ecKey(t)
		renewed := a.issue(t, sameKey, tomorrow(), "a.example")
		put(t, dir, "a.example", renewed)
		l.shows(t, a, "a.example", renewed)
		renewed = a.issue(t, sameKey, tomorrow(), "a.example")
		rename(t, cert, renewed.cert)
		l.shows(t, a, "a.example", renewed)

		must(t, os.Remove(cert))
		must(t, os.Remove(key))
		again := issue()
		put(t, dir, "a.example", again)
		l.shows(t, a, "a.example", again)

		if _, err := open.Write([]byte("y")); err != nil {
			t.Errorf("%s: an open connection: %v", what, err)
		}
		if b := make([]byte, 1); err == nil {
			if _, err = open.Read(b); err != nil || b[0] != 'y' {
				t.Errorf("%s: an open connection: %v", what, err)
			}
		}
	}
}

// Kubernetes swaps the link ..data, and every file is a link through it.
func TestKubernetesVolume(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	volume := func(name string, p pemPair) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		put(t, filepath.Join(dir, name), "a.example", p)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	first, second := a.issue(t, ecKey(t), tomorrow(), "a.example"), a.issue(t, rsaKey(t), tomorrow(), "a.example")
	volume("..2026_01", first)
	for _, file := range []string{"a.example.crt", "a.example.key"} {
		must(t, os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)))
	}
	l := listen(t, tlsconf.Config{
		Dir: dir, CertFile: filepath.Join(dir, "a.example.crt"), KeyFile: filepath.Join(dir, "a.example.key"), Every: patience,
	})
	l.shows(t, a, "a.example", first)
	volume("..2026_02", second)
	must(t, os.RemoveAll(filepath.Join(dir, "..2026_01")))
	l.shows(t, a, "a.example", second)
	eventually(t, "the default pair", func() bool { return l.loads(tlsconf.PairFiles, tlsconf.Loaded) == 2 })
	if l.loads(tlsconf.PairFiles, tlsconf.Failed) != 0 {
		t.Errorf("a swap failed: %v", l.logs.All())
	}
}

// What the system does not tell of is found by the next look: here files behind
// links, in another folder, and a folder that was replaced as a whole.
func TestLostEventsHeal(t *testing.T) {
	a, top := newAuthority(t), t.TempDir()
	dir, archive := filepath.Join(top, "certs"), filepath.Join(top, "archive")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Mkdir(archive, 0o700))
	first, second, third := a.issue(t, ecKey(t), tomorrow(), "a.example"), a.issue(t, ecKey(t), tomorrow(), "a.example"), a.issue(t, ecKey(t), tomorrow(), "a.example")
	put(t, archive, "1", first)
	for _, ending := range []string{".crt", ".key"} {
		must(t, os.Symlink(filepath.Join(archive, "1"+ending), filepath.Join(dir, "a.example"+ending)))
	}
	l := listen(t, tlsconf.Config{Dir: dir, Every: 20 * time.Millisecond})
	put(t, archive, "1", second)
	l.shows(t, a, "a.example", second)
	must(t, os.Rename(dir, dir+".old"))
	eventually(t, "the folder to be missed", func() bool { return l.told(zapcore.ErrorLevel, "the folder of certificates cannot be used") == 1 })
	l.shows(t, a, "a.example", second)
	must(t, os.Mkdir(dir, 0o700))
	put(t, dir, "a.example", third)
	l.shows(t, a, "a.example", third)
	if l.loads(tlsconf.PairFiles, tlsconf.Removed) != 0 {
		t.Error("a missing folder was taken for a removal")
	}
}

// A pair that is bad changes nothing, and is told of and counted once.
func TestBadPairKeepsTheOld(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	good, odd := a.issue(t, ecKey(t), tomorrow(), "a.example"), a.issue(t, ecKey(t), tomorrow(), "a.example")
	cert, key := filepath.Join(dir, "a.example.crt"), filepath.Join(dir, "a.example.key")
	put(t, dir, "a.example", good)
	l := listen(t, tlsconf.Config{Dir: dir, Every: 5 * time.Millisecond})
	// Counted by what they say: a step on the way may be told of as well, where the
	// test is held up in it.
	told := func(text string) int {
		return l.logs.Filter(func(e observer.LoggedEntry) bool {
			err, _ := e.ContextMap()["error"].(string)
			return e.Level == zapcore.ErrorLevel && strings.Contains(err, text)
		}).Len()
	}
	for what, strike := range map[string]struct {
		do   func()
		says string
	}{
		"mismatched":  {func() { inPlace(t, key, odd.key) }, "does not belong"},
		"half a cert": {func() { inPlace(t, cert, good.cert[:len(good.cert)/3]) }, "is not whole"},
		"half a key":  {func() { rename(t, key, good.key[:len(good.key)/2]) }, "holds no PRIVATE KEY"},
		"empty":       {func() { inPlace(t, cert, nil) }, "holds no CERTIFICATE"},
		"no key":      {func() { must(t, os.Remove(key)) }, "no such file"},
		"a folder":    {func() { must(t, os.Remove(key)); must(t, os.Mkdir(key, 0o700)) }, "is a folder"},
	} {
		before := told(strike.says)
		strike.do()
		eventually(t, what, func() bool { return told(strike.says) > before })
		if got := l.shown(t, a, "a.example"); got != good.serial {
			t.Errorf("%s: certificate %d is shown", what, got)
		}
		if n := told(strike.says) - before; n != 1 {
			t.Errorf("%s: told of %d times", what, n)
		}
		_ = os.Remove(key)
		good = a.issue(t, ecKey(t), tomorrow(), "a.example")
		put(t, dir, "a.example", good)
		l.shows(t, a, "a.example", good)
	}
	if failed, n := l.loads(tlsconf.PairFiles, tlsconf.Failed), told(""); failed != int64(n) {
		t.Errorf("%d bad pairs are counted, %d told of", failed, n)
	}
	for _, e := range l.logs.All() {
		for name, value := range e.ContextMap() {
			if text, _ := value.(string); strings.Contains(text, "PRIVATE KEY-") || strings.Contains(text, string(odd.key[30:60])) {
				t.Errorf("%s shows a key: %s", name, text)
			}
		}
	}
}

// Pairs that appear are used, pairs whose files are both gone are not any more.
func TestPairsComeAndGo(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	all := []string{"a.example", "b.example"}
	other, wild, exact := a.issue(t, ecKey(t), tomorrow(), all...), a.issue(t, ecKey(t), tomorrow(), all...), a.issue(t, ecKey(t), tomorrow(), all...)
	l := listen(t, tlsconf.Config{CertFile: write(t, "c", other.cert), KeyFile: write(t, "k", other.key), Dir: dir, Every: patience})
	l.shows(t, a, "b.example", other)
	put(t, dir, "_wildcard.example", wild)
	l.shows(t, a, "b.example", wild)
	put(t, dir, "b.example", exact)
	l.shows(t, a, "b.example", exact)
	l.shows(t, a, "a.example", wild)
	must(t, os.Remove(filepath.Join(dir, "b.example.crt")))
	must(t, os.Remove(filepath.Join(dir, "b.example.key")))
	l.shows(t, a, "b.example", wild)
	must(t, os.Remove(filepath.Join(dir, "_wildcard.example.crt")))
	must(t, os.Remove(filepath.Join(dir, "_wildcard.example.key")))
	l.shows(t, a, "b.example", other)
	if n := l.loads(tlsconf.PairFiles, tlsconf.Removed); n != 2 {
		t.Errorf("%d pairs removed, want 2", n)
	}
	// One that comes in a bad state is told of, and taken once it is whole.
	before := l.loads(tlsconf.PairFiles, tlsconf.Failed)
	rename(t, filepath.Join(dir, "a.example.crt"), exact.cert)
	rename(t, filepath.Join(dir, "a.example.key"), bytes.Repeat([]byte("x"), 100))
	eventually(t, "a bad new pair", func() bool { return l.loads(tlsconf.PairFiles, tlsconf.Failed) > before })
	l.shows(t, a, "a.example", other)
	rename(t, filepath.Join(dir, "a.example.key"), exact.key)
	l.shows(t, a, "a.example", exact)
}
