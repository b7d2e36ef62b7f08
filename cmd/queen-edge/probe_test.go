package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/check"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/doctor"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// examine runs check or doctor in a process of its own, and holds exit code and
// JSON to each other. No token may come out of it.
func examine(t *testing.T, env []string, secrets []string, args ...string) steps.Report {
	t.Helper()
	p := launch(t, env, append(args, "--json")...)
	code := p.wait(t)
	var r steps.Report
	if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, p.stdout, p.stderr)
	}
	if code != r.ExitCode || (code == 0) != r.OK || p.stderr.String() != "" {
		t.Errorf("exit code %d beside %+v, stderr %q", code, r, p.stderr)
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(p.stdout.String(), secret) {
			t.Errorf("the token is printed:\n%s", p.stdout)
		}
	}
	return r
}

// want is what a broken set-up is to be named as.
type want struct {
	step, cause string
	seen        string // part of what was seen
	all         bool   // every later step is left out
}

// named checks that a report names one step, its cause, what was seen and what
// to do next, that everything before it is fine, and the step's own exit code.
func named(t *testing.T, r steps.Report, kinds []steps.Kind, w want) {
	t.Helper()
	if r.OK || r.FailedStep != w.step || r.Cause != w.cause {
		t.Fatalf("named %q (%s), want %q (%s): %+v", r.FailedStep, r.Cause, w.step, w.cause, r.Steps)
	}
	at := slices.IndexFunc(kinds, func(k steps.Kind) bool { return k.Name == w.step })
	if r.ExitCode != kinds[at].Exit {
		t.Errorf("exit code %d, want %d", r.ExitCode, kinds[at].Exit)
	}
	last, failures := 0, 0
	for _, s := range r.Steps {
		i := slices.IndexFunc(kinds, func(k steps.Kind) bool { return k.Name == s.Step })
		if i < last {
			t.Errorf("step %s is out of order", s.Step)
		}
		last = i
		switch {
		case s.Status == steps.Failed && s.Step == w.step:
			failures++
			if s.Cause != w.cause || !strings.Contains(s.Seen, w.seen) || s.Next == "" {
				t.Errorf("told %+v, want %+v and what to do next", s, w)
			}
		case s.Status == steps.Failed:
			t.Errorf("%s fails as well: %+v", s.Step, s)
		case i > at && w.all && s.Status != steps.Skipped:
			t.Errorf("%s was taken after the failure: %+v", s.Step, s)
		}
	}
	if failures != 1 || last != len(kinds)-1 {
		t.Errorf("%d failures of it, and the last of %d steps is %d", failures, len(kinds), last)
	}
}

// healthy checks that nothing failed, and lists the steps that were taken.
func healthy(t *testing.T, r steps.Report) (taken []string) {
	t.Helper()
	if !r.OK {
		t.Fatalf("fails at %s (%s): %+v", r.FailedStep, r.Cause, r.Steps)
	}
	for _, s := range r.Steps {
		if s.Status != steps.Skipped {
			taken = append(taken, s.Step)
		}
	}
	return slices.Compact(taken)
}

// aCell is an embedded cell with keys, which front may stand before.
type aCell struct {
	*cell.Cell
	url string
}

func startCell(t *testing.T, shared []string, front func(http.Handler) http.Handler) *aCell {
	t.Helper()
	c, err := cell.Open(cell.Config{Dir: t.TempDir(), SharedHosts: shared})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, slug := range []string{"acme", "globex", "frozen"} {
		if _, err := c.Control().CreateCluster(control.NewCluster{Slug: slug}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Control().SetStatus("frozen", control.Suspended); err != nil {
		t.Fatal(err)
	}
	if front == nil {
		front = func(h http.Handler) http.Handler { return h }
	}
	server := &http.Server{Handler: front(c.Handler())}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ln)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &aCell{c, "http://" + ln.Addr().String()}
}

// key makes a key of a cluster.
func (c *aCell) key(t *testing.T, cluster string, scopes ...string) string {
	t.Helper()
	parsed, err := control.ParseScopes(scopes...)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := c.Control().CreateKey(control.NewKey{Cluster: cluster, Scopes: parsed})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// allScopes is what a key may do that may do everything.
func allScopes() []string { return control.AllScopes().Names() }

// closedPort is an address that refuses connections for as long as the test
// runs: the port is taken, and nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*syscall.SockaddrInet4).Port))
}

// authority signs certificates with any names and any life.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	a.cert, a.key = sign(t, template, nil)
	writePEM(t, a.file, a.cert)
	return a
}

// issue makes a server's certificate; file holds it and the authority's, in
// that order.
func (a *authority) issue(t *testing.T, until time.Time, names ...string) pairFiles {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a server"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: until,
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, key := sign(t, template, a)
	dir := t.TempDir()
	f := pairFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	writePEM(t, f.cert, cert, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// sign signs by an authority, or, without one, by the certificate itself.
func sign(t *testing.T, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func writePEM(t *testing.T, path string, certs ...*x509.Certificate) {
	t.Helper()
	var text []byte
	for _, c := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// later is the end of a certificate that nobody has to renew.
func later() time.Time { return time.Now().AddDate(1, 0, 0) }

// What cannot be understood of a command line is told on stderr with an exit
// code of its own, and never repeats a token.
func TestProbesRefuseBadCommandLines(t *testing.T) {
	const token = "qk_live_aVeryLongTokenWith spaces"
	file := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const at = "--bootstrap=localhost:9092"
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no address", []string{"doctor"}, "--bootstrap"},
		{"no port", []string{"doctor", "--bootstrap", "localhost"}, "host:port"},
		{"several addresses", []string{"doctor", "--bootstrap", "a:1,b:2"}, "one host:port"},
		{"port 0", []string{"doctor", "--bootstrap", "a:0"}, "port from 1"},
		{"unknown flag", []string{"doctor", at, "--nonsense"}, "nonsense"},
		{"an argument", []string{"check", "now"}, "now"},
		{"mechanism", []string{"doctor", at, "--mechanism", "GSSAPI"}, "GSSAPI"},
		{"a step that cannot be left out", []string{"doctor", at, "--skip", "tls"}, "produce, fetch, commit"},
		{"no such CA", []string{"doctor", at, "--ca", "/nowhere"}, "--ca"},
		{"a CA without a certificate", []string{"doctor", at, "--ca", file}, "holds no certificate"},
		{"a token that is none", []string{"doctor", at, "--token", token}, "--token"},
		{"no such token file", []string{"check", "--token-file", "/nowhere"}, "/nowhere"},
		{"an empty token file", []string{"check", "--token-file", file}, "holds no token"},
		{"two tokens", []string{"check", "--token-file", file, "--token", "x"}, "token-file"},
		{"no time", []string{"check", "--timeout", "0s"}, "--timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, nil, c.args...)
			if code := p.wait(t); code != steps.Usage {
				t.Errorf("exit code %d, want %d", code, steps.Usage)
			}
			if got := p.stderr.String(); !strings.Contains(got, c.want) || strings.Contains(got, token) || strings.Contains(got, "FATAL") || p.stdout.String() != "" {
				t.Errorf("stderr %q, want %q in it; stdout %q", got, c.want, p.stdout)
			}
		})
	}
}

// The documents list every step with its exit code, and no step has another's.
func TestProbeStepsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../docs/OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[int]string{0: "no failure", 1: "no command", steps.Usage: "usage"}
	for _, k := range slices.Concat(check.Kinds(), doctor.Kinds()) {
		if other := codes[k.Exit]; other != "" {
			t.Errorf("%s has the exit code of %s", k.Name, other)
		}
		codes[k.Exit] = k.Name
		row := "| `" + k.Name + "` | " + strconv.Itoa(k.Exit) + " | " + k.Does + " |"
		if !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/OPERATIONS.md lacks the row %s", row)
		}
	}
}

// within is a context for what a test itself asks.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
