package tlsconf_test

import (
	"crypto"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// crowd shakes hands all the while, up to 250 times a second, in both versions
// and under every name, and notes what goes wrong.
type crowd struct {
	l        *listener
	a        *authority
	names    []string
	done     atomic.Int64
	failures atomic.Int64

	mu    sync.Mutex // guards the rest
	bad   map[int64]bool
	first string // failure
}

func (c *crowd) fail(format string, args ...any) {
	c.failures.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == "" {
		c.first = fmt.Sprintf(format, args...)
	}
}

func (c *crowd) shake(turn int) {
	name, version := c.names[turn%len(c.names)], versions[turn/len(c.names)%2]
	conn, err := c.l.connect(clientOf(c.a, name, version))
	if err != nil {
		c.fail("%s: %v", name, err)
		return
	}
	defer conn.Close()
	c.mu.Lock()
	bad := c.bad[serialOf(conn)]
	c.mu.Unlock()
	if bad {
		c.fail("%s: a certificate of a bad pair was shown", name)
		return
	}
	c.done.Add(1)
}

// run shakes hands until stop is closed: a worker that is late lets its turns
// pass.
func (c *crowd) run(wg *sync.WaitGroup, stop <-chan struct{}) {
	turns := make(chan int)
	for range 16 {
		wg.Go(func() {
			for turn := range turns {
				c.shake(turn)
			}
		})
	}
	wg.Go(func() {
		defer close(turns)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			select {
			case <-stop:
				return
			case turns <- turn:
			}
		}
	})
}

// Certificates are replaced under load, by rename, by a swapped link and in
// place, half-written and mismatched in between, with RSA and ECDSA keys: no
// handshake fails, and none is shown a bad pair. 2 s, or a minute with QE_FULL=1.
func TestHandshakesWhileFilesChange(t *testing.T) {
	length := 2 * time.Second
	if os.Getenv("QE_FULL") == "1" {
		length = time.Minute
	}
	a, dir, volume := newAuthority(t), t.TempDir(), t.TempDir()
	keys := []crypto.Signer{rsaKey(t), ecKey(t), rsaKey(t), ecKey(t)}
	c := &crowd{a: a, names: []string{"renamed.example", "linked.example", "written.example", "default.example"}, bad: map[int64]bool{}}
	swaps, strikes := 0, 0
	// issue makes a pair of alternating kind.
	issue := func(name string) pemPair { return a.issue(t, keys[(swaps+strikes)%len(keys)], tomorrow(), name) }
	link := func(p pemPair) {
		target := filepath.Join(volume, fmt.Sprint(p.serial))
		must(t, os.Mkdir(target, 0o700))
		put(t, target, "linked.example", p)
		must(t, os.Symlink(target, filepath.Join(volume, "next")))
		must(t, os.Rename(filepath.Join(volume, "next"), filepath.Join(volume, "..data")))
	}
	write := func(stem string, p pemPair) {
		inPlace(t, filepath.Join(dir, stem+".crt"), p.cert)
		inPlace(t, filepath.Join(dir, stem+".key"), p.key)
	}
	link(issue("linked.example"))
	for _, ending := range []string{".crt", ".key"} {
		must(t, os.Symlink(filepath.Join(volume, "..data", "linked.example"+ending), filepath.Join(dir, "linked.example"+ending)))
	}
	for _, name := range []string{"renamed.example", "written.example"} {
		put(t, dir, name, issue(name))
	}
	put(t, volume, "tls", issue("default.example"))
	l := listen(t, tlsconf.Config{
		Dir: dir, CertFile: filepath.Join(volume, "tls.crt"), KeyFile: filepath.Join(volume, "tls.key"), Every: 50 * time.Millisecond,
	})
	c.l = l
	open := map[string]*tls.Conn{}
	for _, name := range c.names {
		conn, err := l.connect(clientOf(a, name, 0))
		must(t, err)
		defer conn.Close()
		open[name] = conn
	}
	stop, began := make(chan struct{}), time.Now()
	var wg sync.WaitGroup
	c.run(&wg, stop)
	end := sync.OnceFunc(func() { close(stop); wg.Wait() })
	defer end()

	for time.Since(began) < length {
		for _, name := range c.names[:3] {
			good, odd := issue(name), issue(name)
			c.mu.Lock()
			c.bad[odd.serial] = true
			c.mu.Unlock()
			failed := l.loads(tlsconf.PairFiles, tlsconf.Failed)
			switch { // bad for longer than is forgiven
			case name == "linked.example":
				link(pemPair{odd.cert, ownKey(t, odd, good), odd.serial})
			case strikes%2 == 0:
				write(name, pemPair{good.cert[:len(good.cert)-100], good.key, 0})
			default:
				write(name, pemPair{odd.cert, ownKey(t, odd, good), 0})
			}
			strikes++
			eventually(t, "the bad pair to be told of", func() bool { return l.loads(tlsconf.PairFiles, tlsconf.Failed) > failed })
			switch name {
			case "linked.example":
				link(good)
			case "written.example":
				write(name, good)
			default:
				put(t, dir, name, good)
			}
			swaps++
			l.shows(t, a, name, good)
		}
		good := issue("default.example")
		put(t, volume, "tls", good)
		swaps++
		l.shows(t, a, "default.example", good)
	}
	took := time.Since(began)
	end()
	for name, conn := range open {
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		b := make([]byte, 1)
		if _, err := conn.Write([]byte("y")); err != nil {
			t.Errorf("the open connection of %s: %v", name, err)
		} else if _, err := conn.Read(b); err != nil || b[0] != 'y' {
			t.Errorf("the open connection of %s: %v", name, err)
		}
	}
	t.Logf("%d handshakes in %.1f s (%.0f a second), %d swaps, %d bad pairs, %d failures",
		c.done.Load(), took.Seconds(), float64(c.done.Load())/took.Seconds(), swaps, strikes, c.failures.Load())
	if n := c.failures.Load(); n > 0 {
		t.Errorf("%d handshakes went wrong, the first: %s", n, c.first)
	}
	if c.done.Load() == 0 {
		t.Error("nobody shook hands")
	}
}

// ownKey is a key that does not belong to odd's certificate.
func ownKey(t *testing.T, odd, good pemPair) []byte {
	t.Helper()
	if string(odd.key) != string(good.key) {
		return good.key
	}
	other := newAuthority(t)
	return other.issue(t, ecKey(t), tomorrow(), "x").key
}
