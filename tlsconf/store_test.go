package tlsconf_test

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// isUnrecognized reports the alert unrecognized_name (RFC 6066 §3).
func isUnrecognized(err error) bool {
	return err != nil && strings.Contains(err.Error(), "tls: unrecognized name")
}

func lanes(t *testing.T, c sni.Config) *sni.Names {
	t.Helper()
	n, err := sni.NewNames(c)
	must(t, err)
	return n
}

// B5: exact name, wildcard, default pair.
func TestLadder(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	all := []string{"a.example", "*.example", "*.eu.example", "x"}
	other := a.issue(t, ecKey(t), tomorrow(), append(all, "*.elsewhere", "a.b.elsewhere")...)
	exact := a.issue(t, rsaKey(t), tomorrow(), all...)
	wild := a.issue(t, ecKey(t), tomorrow(), all...)
	single := a.issue(t, ecKey(t), tomorrow(), all...)
	put(t, dir, "A.Example", exact)
	put(t, dir, "_wildcard.example", wild)
	put(t, dir, "x", single)
	cert, key := write(t, "tls.crt", other.cert), write(t, "tls.key", other.key)
	for _, test := range []struct {
		dialled string
		names   sni.Config
		want    int64
	}{
		{"a.example", sni.Config{}, exact.serial},
		{"A.EXAMPLE", sni.Config{}, exact.serial},
		{"b.example", sni.Config{}, wild.serial},
		{"c.eu.example", sni.Config{}, other.serial},
		{"x", sni.Config{}, single.serial},
		{"a.elsewhere", sni.Config{}, other.serial},
		// Whom the default lane serves is shown what was dialled, if there is such a
		// pair, else that of the lane.
		{"b.example", sni.Config{Lanes: []string{"a.example"}, Default: "a.example"}, wild.serial},
		{"a.b.elsewhere", sni.Config{Lanes: []string{"a.b.elsewhere"}}, other.serial},
		{"a.example", sni.Config{Lanes: []string{"x"}}, 0},
	} {
		l := listen(t, tlsconf.Config{CertFile: cert, KeyFile: key, Dir: dir, Names: lanes(t, test.names)})
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c, err := l.connect(&tls.Config{ServerName: test.dialled, RootCAs: a.roots, MinVersion: version, MaxVersion: version})
			if test.want == 0 {
				if !isUnrecognized(err) {
					t.Errorf("%s, %s: %v, want the alert unrecognized_name", test.dialled, tls.VersionName(version), err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", test.dialled, err)
			}
			if got := serialOf(c); got != test.want {
				t.Errorf("%s, %v: certificate %d, want %d", test.dialled, test.names, got, test.want)
			}
			_ = c.Close()
		}
	}
	// An unknown name under a default lane is shown the lane's.
	l := listen(t, tlsconf.Config{CertFile: cert, KeyFile: key, Dir: dir, Names: lanes(t, sni.Config{Lanes: []string{"a.example"}, Default: "a.example"})})
	for _, dialled := range []string{"", "foreign.elsewhere", "127.0.0.1", "under_score"} {
		c, err := l.connect(&tls.Config{ServerName: dialled, InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("%q: %v", dialled, err)
		}
		if got := serialOf(c); got != exact.serial {
			t.Errorf("%q: certificate %d, want the default lane's %d", dialled, got, exact.serial)
		}
		_ = c.Close()
	}
}

// A folder alone will do; a name without a pair is refused then.
func TestFolderWithoutDefault(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	p := a.issue(t, ecKey(t), tomorrow(), "a.example")
	put(t, dir, "a.example", p)
	l := listen(t, tlsconf.Config{Dir: dir, Names: lanes(t, sni.Config{Lanes: []string{"a.example", "b.example"}})})
	l.shows(t, a, "a.example", p)
	if got := l.shown(t, a, "b.example"); got != 0 {
		t.Errorf("certificate %d for a name without one", got)
	}
	if l.told(zapcore.WarnLevel, "a lane has no certificate") != 1 {
		t.Errorf("the gap was not told: %v", l.logs.All())
	}
	refused := int64(0)
	l.Hellos.Each(func(k sni.Kind, a sni.Answer, n int64) {
		if k == sni.Known && a == sni.Refused {
			refused = n
		}
	})
	if refused != 1 {
		t.Errorf("%d refused hellos, want 1", refused)
	}
}

// What is bad at boot stops it, with a sentence that names variable and file.
func TestOpenRefuses(t *testing.T) {
	a := newAuthority(t)
	good, odd := a.issue(t, ecKey(t), tomorrow(), "a.example"), a.issue(t, ecKey(t), tomorrow(), "a.example")
	folder := func(files map[string][]byte) string {
		dir := t.TempDir()
		for name, text := range files {
			inPlace(t, filepath.Join(dir, name), text)
		}
		return dir
	}
	many := map[string][]byte{}
	for i := range 1001 {
		many[fmt.Sprintf("n%d.crt", i)], many[fmt.Sprintf("n%d.key", i)] = good.cert, good.key
	}
	cert, key := write(t, "c", good.cert), write(t, "k", good.key)
	for _, test := range []struct {
		name   string
		config tlsconf.Config
		want   []string
	}{
		{"no folder", tlsconf.Config{Dir: "/nowhere"}, []string{"QUEEN_KAFKA_TLS_DIR", "/nowhere", "no such file"}},
		{"an empty folder", tlsconf.Config{Dir: folder(nil)}, []string{"QUEEN_KAFKA_TLS_DIR", "holds no pair"}},
		{"a mismatch", tlsconf.Config{Dir: folder(map[string][]byte{"a.crt": good.cert, "a.key": odd.key})}, []string{"QUEEN_KAFKA_TLS_DIR", "/a.crt", "/a.key", "does not belong"}},
		{"half a cert", tlsconf.Config{Dir: folder(map[string][]byte{"a.crt": good.cert[:200], "a.key": good.key})}, []string{"QUEEN_KAFKA_TLS_DIR", "/a.crt", "not whole"}},
		{"a bad key", tlsconf.Config{Dir: folder(map[string][]byte{"a.crt": good.cert, "a.key": []byte("hush")})}, []string{"QUEEN_KAFKA_TLS_DIR", "/a.key", "no PRIVATE KEY"}},
		{"too many", tlsconf.Config{Dir: folder(many)}, []string{"QUEEN_KAFKA_TLS_DIR", "more than 1000 pairs"}},
		{"no tickets", tlsconf.Config{CertFile: cert, KeyFile: key, TicketFile: "/nowhere"}, []string{"QUEEN_KAFKA_TLS_TICKET_KEYS", "/nowhere", "no such file"}},
		{"bad tickets", tlsconf.Config{CertFile: cert, KeyFile: key, TicketFile: write(t, "t", []byte("# keys\nhush\n"))}, []string{"QUEEN_KAFKA_TLS_TICKET_KEYS", "/t", "line 2 is not 32 bytes"}},
	} {
		_, err := tlsconf.Open(test.config)
		if err == nil {
			t.Errorf("%s: accepted", test.name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", test.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the content is shown: %v", test.name, err)
		}
	}
}

// What a client will dislike is told, and used all the same.
func TestOpenWarns(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	put(t, dir, "old.example", a.issue(t, ecKey(t), time.Now().Add(-time.Hour), "old.example"))
	put(t, dir, "b.example", a.issue(t, ecKey(t), tomorrow(), "c.example"))
	rename(t, filepath.Join(dir, "ca.crt"), []byte("an authority, as cert-manager puts it there"))
	rename(t, filepath.Join(dir, "*.example.crt"), []byte("x"))
	l := listen(t, tlsconf.Config{Dir: dir, Names: lanes(t, sni.Config{Lanes: []string{"*.example"}})})
	for _, message := range []string{
		"a certificate has expired", "is not for the name of its files", "a lane has no certificate",
		"is half of a pair", "is neither that of a host",
	} {
		if n := l.told(zapcore.WarnLevel, message); n != 1 {
			t.Errorf("told %d times: %s", n, message)
		}
	}
	left := map[string]time.Duration{}
	l.Expiries(func(name string, d time.Duration) { left[name] = d })
	if d := left["old.example"]; d > -time.Hour+time.Minute || d < -2*time.Hour || len(left) != 2 {
		t.Errorf("lives left: %v", left)
	}
}

// A certificate that expires in use is told of once.
func TestExpiresInUse(t *testing.T) {
	a := newAuthority(t)
	p := a.issue(t, ecKey(t), tomorrow(), "a.example")
	start := time.Now()
	l := listen(t, tlsconf.Config{
		CertFile: write(t, "c", p.cert), KeyFile: write(t, "k", p.key), Every: 5 * time.Millisecond,
		Clock: func() time.Time { return time.Now().Add(time.Since(start) * 1e6) }, // days pass
	})
	eventually(t, "the warning", func() bool { return l.told(zapcore.WarnLevel, "a certificate has expired") == 1 })
	if l.loads(tlsconf.PairFiles, tlsconf.Loaded) != 0 {
		t.Error("an unchanged pair was loaded")
	}
}
