package tlsconf_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// patience is the generous deadline of anything a test waits for.
const patience = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

// authority signs for keys of any kind, with an intermediate certificate: a
// chain that was cut is refused by whoever trusts the root alone.
type authority struct {
	root, middle *x509.Certificate
	key          crypto.Signer // of middle
	roots        *x509.CertPool
	serial       int64
}

func ecKey(t *testing.T) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return k
}

func rsaKey(t *testing.T) crypto.Signer {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return k
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{serial: 100, roots: x509.NewCertPool()}
	template := func(n int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(n), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		}
	}
	root, middle, rootKey, key := template(1), template(2), ecKey(t), ecKey(t)
	root.Subject.CommonName, middle.Subject.CommonName = "root", "middle"
	sign := func(c, parent *x509.Certificate, public crypto.PublicKey, by crypto.Signer) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, c, parent, public, by)
		must(t, err)
		out, err := x509.ParseCertificate(der)
		must(t, err)
		return out
	}
	a.root = sign(root, root, rootKey.Public(), rootKey)
	a.middle = sign(middle, a.root, key.Public(), rootKey)
	a.key = key
	a.roots.AddCert(a.root)
	return a
}

// pemPair is a pair as files hold it, and its serial number.
type pemPair struct {
	cert, key []byte
	serial    int64
}

func (a *authority) issue(t *testing.T, key crypto.Signer, notAfter time.Time, hosts ...string) pemPair {
	t.Helper()
	a.serial++
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.middle, key.Public(), a.key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.middle.Raw})...)
	return pemPair{chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), a.serial}
}

func tomorrow() time.Time { return time.Now().Add(12 * time.Hour) }

// put writes a pair as dir/stem.crt and dir/stem.key, each by a rename.
func put(t *testing.T, dir, stem string, p pemPair) {
	t.Helper()
	rename(t, filepath.Join(dir, stem+".crt"), p.cert)
	rename(t, filepath.Join(dir, stem+".key"), p.key)
}

func rename(t *testing.T, path string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".new", text, 0o600))
	must(t, os.Rename(path+".new", path))
}

// inPlace writes into the file that is there.
func inPlace(t *testing.T, path string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(path, text, 0o600))
}

// listener serves a store: every client that shakes hands is sent one byte.
type listener struct {
	*tlsconf.Store
	addr string
	logs *observer.ObservedLogs
}

// listen opens a store with short times and runs it until the test ends.
func listen(t *testing.T, c tlsconf.Config) *listener {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	c.Log = zap.New(core)
	if c.Settle == 0 {
		c.Settle, c.Suspect = 20*time.Millisecond, 60*time.Millisecond
	}
	s, err := tlsconf.Open(c)
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				tc := tls.Server(c, s.TLS())
				if tc.Handshake() != nil {
					return
				}
				_, _ = tc.Write([]byte("x"))
				_, _ = io.Copy(tc, tc) // until the client has gone
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		wg.Wait()
	})
	return &listener{s, ln.Addr().String(), logs}
}

// connect shakes hands and reads the byte, so that session tickets have come.
func (l *listener) connect(client *tls.Config) (*tls.Conn, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", l.addr, client)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err = io.ReadFull(c, make([]byte, 1)); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// shown is the serial number of the certificate that a client of name sees; 0:
// it was refused with unrecognized_name.
func (l *listener) shown(t *testing.T, a *authority, name string) int64 {
	t.Helper()
	c, err := l.connect(&tls.Config{ServerName: name, RootCAs: a.roots})
	if isUnrecognized(err) {
		return 0
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer c.Close()
	return serialOf(c)
}

func serialOf(c *tls.Conn) int64 { return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64() }

func (l *listener) shows(t *testing.T, a *authority, name string, p pemPair) {
	t.Helper()
	eventually(t, "the new certificate of "+name, func() bool { return l.shown(t, a, name) == p.serial })
}

// told is how many lines of a level say something.
func (l *listener) told(level zapcore.Level, message string) int {
	return len(slices.DeleteFunc(l.logs.FilterMessageSnippet(message).All(), func(e observer.LoggedEntry) bool { return e.Level != level }))
}

func (l *listener) loads(k tlsconf.FileKind, o tlsconf.Outcome) (n int64) {
	l.Loads(func(kind tlsconf.FileKind, outcome tlsconf.Outcome, count int64) {
		if kind == k && outcome == o {
			n = count
		}
	})
	return n
}
