package tlsconf_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tlsconf"
)

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// clientOf dials name in one version, or in any: 0.
func clientOf(a *authority, name string, version uint16) *tls.Config {
	c := &tls.Config{ServerName: name, RootCAs: a.roots, MinVersion: version, MaxVersion: version}
	if version == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	return c
}

// oneTicket keeps the last ticket, whatever the name: a client that would take a
// session to another name.
type oneTicket struct{ state *tls.ClientSessionState }

func (o *oneTicket) Get(string) (*tls.ClientSessionState, bool) { return o.state, o.state != nil }

func (o *oneTicket) Put(_ string, s *tls.ClientSessionState) {
	if s != nil {
		o.state = s
	}
}

func (l *listener) resumes(t *testing.T, client *tls.Config) bool {
	t.Helper()
	c, err := l.connect(client)
	if err != nil {
		t.Fatalf("%s, %s: %v", client.ServerName, tls.VersionName(client.MaxVersion), err)
	}
	defer c.Close()
	return c.ConnectionState().DidResume
}

func keyLine(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	must(t, err)
	return base64.StdEncoding.EncodeToString(key)
}

// Without a file of keys a session outlives a change of certificates.
func TestSessionsOutliveCertificates(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	put(t, dir, "a.example", a.issue(t, ecKey(t), tomorrow(), "a.example"))
	l := listen(t, tlsconf.Config{Dir: dir})
	clients := map[uint16]*tls.Config{}
	for _, version := range versions {
		clients[version] = clientOf(a, "a.example", version)
		clients[version].ClientSessionCache = new(oneTicket)
		if l.resumes(t, clients[version]) {
			t.Error("a first connection resumes")
		}
	}
	next := a.issue(t, ecKey(t), tomorrow(), "a.example") // of the same kind: TLS 1.2 suites are
	put(t, dir, "a.example", next)
	l.shows(t, a, "a.example", next)
	for _, version := range versions {
		if !l.resumes(t, clients[version]) {
			t.Errorf("%s: no session goes on", tls.VersionName(version))
		}
	}
}

// A session is its name's: another name, known or not, gets a full handshake or
// the alert. The same name in another spelling is the same.
func TestSessionsStayWithTheirName(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	for _, name := range []string{"a.example", "b.example"} {
		put(t, dir, name, a.issue(t, ecKey(t), tomorrow(), name, "unknown.example"))
	}
	strict := listen(t, tlsconf.Config{Dir: dir, Names: lanes(t, sni.Config{Lanes: []string{"a.example", "b.example"}})})
	lenient := listen(t, tlsconf.Config{Dir: dir, Names: lanes(t, sni.Config{Lanes: []string{"a.example", "b.example"}, Default: "a.example"})})
	all := listen(t, tlsconf.Config{Dir: dir})
	for _, version := range versions {
		for what, l := range map[string]*listener{"strict": strict, "with a default": lenient, "without lanes": all} {
			session := new(oneTicket)
			as := func(name string) *tls.Config {
				c := clientOf(a, name, version)
				c.ClientSessionCache = session
				return c
			}
			if l.resumes(t, as("a.example")) || !l.resumes(t, as("a.example")) || !l.resumes(t, as("A.Example")) {
				t.Errorf("%s, %s: no session for its own name", what, tls.VersionName(version))
			}
			kept := session.state
			if l.resumes(t, as("b.example")) {
				t.Errorf("%s, %s: a session went to another lane", what, tls.VersionName(version))
			}
			session.state = kept
			c, err := l.connect(as("unknown.example"))
			switch {
			case l == lenient && (err != nil || c.ConnectionState().DidResume):
				t.Errorf("%s, %s: an unknown name: %v", what, tls.VersionName(version), err)
			case l != lenient && !isUnrecognized(err):
				t.Errorf("%s, %s: an unknown name: %v, want the alert", what, tls.VersionName(version), err)
			}
			if c != nil {
				_ = c.Close()
			}
		}
	}
}

// With a file of keys a session goes on after a restart and at another gateway,
// and keys rotate: a new first one seals, the old ones open.
func TestTicketKeys(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	p := a.issue(t, ecKey(t), tomorrow(), "a.example")
	put(t, dir, "a.example", p)
	file := filepath.Join(dir, "tickets")
	older, newer, newest := keyLine(t), keyLine(t), keyLine(t)
	rename(t, file, []byte("# made by openssl rand -base64 32\n\n"+older+" # 2026\n"))
	config := tlsconf.Config{Dir: dir, TicketFile: file}
	one, two, apart := listen(t, config), listen(t, config), listen(t, tlsconf.Config{Dir: dir})
	for _, version := range versions {
		name := tls.VersionName(version)
		client := clientOf(a, "a.example", version)
		session := new(oneTicket)
		client.ClientSessionCache = session
		if one.resumes(t, client) {
			t.Fatalf("%s: a first connection resumes", name)
		}
		if !two.resumes(t, client) || !one.resumes(t, client) {
			t.Errorf("%s: the other gateway takes no session", name)
		}
		if after := listen(t, config); !after.resumes(t, client) {
			t.Errorf("%s: no session after a restart", name)
		}
		if apart.resumes(t, client) {
			t.Errorf("%s: a gateway without the key takes the session", name)
		}
	}
	// Rotation, while a connection is open.
	open, err := one.connect(clientOf(a, "a.example", 0))
	must(t, err)
	defer open.Close()
	session := new(oneTicket)
	client := clientOf(a, "a.example", tls.VersionTLS13)
	client.ClientSessionCache = session
	one.resumes(t, client) // sealed by the older key
	changed := func(text string) {
		t.Helper()
		before := one.loads(tlsconf.TicketFile, tlsconf.Loaded)
		rename(t, file, []byte(text))
		eventually(t, "new keys", func() bool { return one.loads(tlsconf.TicketFile, tlsconf.Loaded) == before+1 })
	}
	changed(newer + "\n" + older + "\n")
	if !one.resumes(t, client) { // sealed by the newer one now
		t.Error("the older key does not open any more")
	}
	changed(newer + "\n")
	if !one.resumes(t, client) {
		t.Error("the newer key did not seal")
	}
	changed(newest)
	if one.resumes(t, client) {
		t.Error("a key that is gone opens")
	}
	if _, err := open.Write([]byte("y")); err != nil {
		t.Errorf("an open connection: %v", err)
	}
	// What is bad changes nothing.
	rename(t, file, []byte("hush\n"))
	eventually(t, "bad keys", func() bool { return one.loads(tlsconf.TicketFile, tlsconf.Failed) == 1 })
	if !one.resumes(t, client) {
		t.Error("bad keys replaced good ones")
	}
	for _, e := range one.logs.All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(text, "hush") || strings.Contains(text, newer) {
			t.Errorf("the log shows a key: %s", text)
		}
	}
}

func TestTicketFile(t *testing.T) {
	a := newAuthority(t)
	p := a.issue(t, ecKey(t), tomorrow(), "a.example")
	cert, key := write(t, "c", p.cert), write(t, "k", p.key)
	line := keyLine(t)
	raw, err := base64.StdEncoding.DecodeString(line)
	must(t, err)
	for _, test := range []struct{ text, want string }{
		{line, ""},
		{hex.EncodeToString(raw), ""},
		{"\r\n# keys\r\n  " + strings.ToUpper(hex.EncodeToString(raw)) + "  # the first\r\n", ""},
		{"", "holds no key"},
		{"# none yet\n", "holds no key"},
		{line[:40], "line 1 is not 32 bytes"},
		{"\n" + line + "\n" + line + "\n", "line 3 repeats"},
		{strings.Repeat("00", 32), "line 1 is all zeros"},
		{line + " " + line, "line 1 is not 32 bytes"},
		{strings.Repeat("\x80", 32), "is not 32 bytes"},
		{strings.Repeat("x", 1<<20+1), "larger than 1 MiB"},
		{manyKeys(t, 16), ""},
		{manyKeys(t, 17), "at most 16"},
	} {
		_, err := tlsconf.Open(tlsconf.Config{CertFile: cert, KeyFile: key, TicketFile: write(t, "tickets", []byte(test.text))})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%.60q: %v, want %q", test.text, err, test.want)
		}
	}
	// Who can read a key can read recorded connections.
	for mode, warned := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1} {
		file := write(t, "tickets", []byte(line))
		must(t, os.Chmod(file, mode))
		l := listen(t, tlsconf.Config{CertFile: cert, KeyFile: key, TicketFile: file})
		if n := l.told(zapcore.WarnLevel, "can be read by every user"); n != warned {
			t.Errorf("mode %v: warned %d times, want %d", mode, n, warned)
		}
	}
}

func manyKeys(t *testing.T, n int) string {
	var b bytes.Buffer
	for range n {
		b.WriteString(keyLine(t) + "\n")
	}
	return b.String()
}
