package tlsconf_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
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
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tlsconf"
)

func newCA(t *testing.T) *tlsconf.DevCA {
	t.Helper()
	ca, err := tlsconf.NewDevCA("test CA")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *tlsconf.DevCA, hosts ...string) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := ca.Issue(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dial makes one handshake over loopback and one byte each way, so that session
// tickets arrive.
func dial(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("x"))
	}()
	defer func() { <-served }()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", l.Addr().String(), client)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 1))
	return c.ConnectionState(), err
}

// load is a store with a default pair on disk.
func load(cert, key string) (*tlsconf.Store, error) {
	return tlsconf.Open(tlsconf.Config{CertFile: cert, KeyFile: key})
}

// serving is the configuration of a listener with one pair.
func serving(t *testing.T, pair *tlsconf.Pair) *tls.Config {
	t.Helper()
	s, err := tlsconf.Open(tlsconf.Config{Pair: pair})
	if err != nil {
		t.Fatal(err)
	}
	return s.TLS()
}

func TestHandshake(t *testing.T) {
	ca := newCA(t)
	certPEM, keyPEM := issue(t, ca, "kafka.example", "*.eu.example", "127.0.0.1", "::1")
	pair, err := tlsconf.FromPEM(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server, err := load(write(t, "c.pem", certPEM), write(t, "k.pem", keyPEM))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kafka.example", "a.eu.example", "127.0.0.1", "::1"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client := &tls.Config{RootCAs: ca.Pool(), ServerName: name, MinVersion: version, MaxVersion: version, NextProtos: []string{"h2"}}
			state, err := dial(t, server.TLS(), client)
			if err != nil {
				t.Errorf("%s, %s: %v", name, tls.VersionName(version), err)
				continue
			}
			if state.NegotiatedProtocol != "" {
				t.Errorf("ALPN agreed on %q", state.NegotiatedProtocol)
			}
			if n := len(state.PeerCertificates); n != 2 {
				t.Errorf("%d certificates served, want leaf and authority", n)
			}
		}
		if err := pair.Covers(name); err != nil {
			t.Errorf("Covers(%s): %v", name, err)
		}
	}
	if pair.Covers("other.example") == nil {
		t.Error("the certificate covers a name it was not issued for")
	}
	if got := strings.Join(pair.Names(), " "); got != "kafka.example *.eu.example 127.0.0.1 ::1" {
		t.Errorf("Names() = %s", got)
	}
	old := &tls.Config{RootCAs: ca.Pool(), ServerName: "kafka.example", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if _, err := dial(t, server.TLS(), old); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestSessionTickets(t *testing.T) {
	ca := newCA(t)
	pair, err := ca.IssuePair([]string{"kafka.example"})
	if err != nil {
		t.Fatal(err)
	}
	server := serving(t, pair)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := &tls.Config{
			RootCAs: ca.Pool(), ServerName: "kafka.example", MinVersion: version, MaxVersion: version,
			ClientSessionCache: tls.NewLRUClientSessionCache(4),
		}
		for round, resumed := range []bool{false, true} {
			state, err := dial(t, server, client)
			if err != nil || state.DidResume != resumed {
				t.Errorf("%s, round %d: resumed %v, %v", tls.VersionName(version), round, state.DidResume, err)
			}
		}
	}
}

// selfSigned is a certificate over key, and the key in a PEM block of kind.
func selfSigned(t *testing.T, kind string) (certPEM, keyPEM []byte) {
	t.Helper()
	var key any
	var public any
	var der []byte
	var err error
	switch kind {
	case "EC PRIVATE KEY", "PRIVATE KEY":
		k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		key, public = k, k.Public()
		if der, err = x509.MarshalECPrivateKey(k); kind == "PRIVATE KEY" {
			der, err = x509.MarshalPKCS8PrivateKey(k)
		}
	case "RSA PRIVATE KEY":
		k, _ := rsa.GenerateKey(rand.Reader, 2048)
		key, public, der = k, k.Public(), x509.MarshalPKCS1PrivateKey(k)
	case "ed25519":
		p, k, _ := ed25519.GenerateKey(rand.Reader)
		key, public, kind = k, p, "PRIVATE KEY"
		der, err = x509.MarshalPKCS8PrivateKey(k)
	}
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"x"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestKeyKinds(t *testing.T) {
	for _, kind := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ed25519"} {
		certPEM, keyPEM := selfSigned(t, kind)
		if _, err := load(write(t, "c", certPEM), write(t, "k", keyPEM)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestTolerantPEM(t *testing.T) {
	ca := newCA(t)
	certPEM, keyPEM := issue(t, ca, "x")
	_, otherKey := issue(t, ca, "y")
	crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	params := []byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n")
	tests := []struct {
		name      string
		cert, key []byte
	}{
		{"preamble", append([]byte("Bag Attributes\n  friendlyName: x\n# comment\n"), certPEM...), append([]byte("subject=x\n"), keyPEM...)},
		{"CRLF", crlf(certPEM), crlf(keyPEM)},
		{"both in one file", append(bytes.Clone(keyPEM), certPEM...), append(bytes.Clone(certPEM), keyPEM...)},
		{"first key wins", certPEM, append(bytes.Clone(keyPEM), otherKey...)},
		{"EC parameters first", certPEM, append(params, keyPEM...)},
		{"text after", append(bytes.Clone(certPEM), "end\n"...), append(bytes.Clone(keyPEM), "end"...)},
	}
	for _, test := range tests {
		if _, err := load(write(t, "c", test.cert), write(t, "k", test.key)); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	ca := newCA(t)
	certPEM, keyPEM := issue(t, ca, "x")
	_, otherKey := issue(t, ca, "y")
	cert, key := write(t, "cert.pem", certPEM), write(t, "key.pem", keyPEM)
	block := func(kind string, b string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(b)})
	}
	const certVar, keyVar = "QUEEN_KAFKA_TLS_CERT", "QUEEN_KAFKA_TLS_KEY"
	tests := []struct{ name, cert, key, variable, want string }{
		{"no cert file", filepath.Join(t.TempDir(), "none"), key, certVar, "no such file"},
		{"no key file", cert, filepath.Join(t.TempDir(), "none"), keyVar, "no such file"},
		{"cert is a folder", t.TempDir(), key, certVar, "is a folder"},
		{"cert is huge", write(t, "huge", make([]byte, 1<<20+1)), key, certVar, "larger than 1 MiB"},
		{"empty cert", write(t, "e", nil), key, certVar, "no CERTIFICATE block"},
		{"key in place of the cert", key, key, certVar, "no CERTIFICATE block"},
		{"cert in place of the key", cert, cert, keyVar, "no PRIVATE KEY"},
		{"broken cert", write(t, "b", block("CERTIFICATE", "junk")), key, certVar, "certificate 1 does not parse"},
		{"broken chain", write(t, "b", append(bytes.Clone(certPEM), block("CERTIFICATE", "junk")...)), key, certVar, "certificate 3 does not parse"},
		{"half a cert", write(t, "h", certPEM[:len(certPEM)/4]), key, certVar, "block 1 is not whole"},
		{"half a chain", write(t, "h", certPEM[:len(certPEM)-40]), key, certVar, "block 2 is not whole"},
		{"half a key", cert, write(t, "h", keyPEM[:len(keyPEM)/2]), keyVar, "no PRIVATE KEY"},
		{"broken key", cert, write(t, "b", block("PRIVATE KEY", "hush-0123")), keyVar, "does not parse"},
		{"encrypted key", cert, write(t, "b", block("ENCRYPTED PRIVATE KEY", "x")), keyVar, "encrypted"},
		{"mismatch", cert, write(t, "other", otherKey), keyVar, "does not belong to the first certificate"},
	}
	for _, test := range tests {
		_, err := load(test.cert, test.key)
		if err == nil {
			t.Errorf("%s: accepted", test.name)
			continue
		}
		text := err.Error()
		path := test.cert
		if test.variable == keyVar {
			path = test.key
		}
		if !strings.Contains(text, test.variable) || !strings.Contains(text, path) || !strings.Contains(text, test.want) {
			t.Errorf("%s: error %q should name %s, %s and %q", test.name, text, test.variable, path, test.want)
		}
		if strings.Contains(text, "hush") {
			t.Errorf("%s: the key's bytes are shown: %q", test.name, text)
		}
	}
}

func TestOpenDevCAKeepsItsKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	first, err := tlsconf.OpenDevCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := tlsconf.OpenDevCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.CertPEM(), second.CertPEM()) {
		t.Fatal("a restart changed the authority")
	}
	pair, err := second.IssuePair([]string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, serving(t, pair), &tls.Config{RootCAs: first.Pool(), ServerName: "localhost"}); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info.Mode(), err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 2 {
		t.Errorf("files left behind: %v", files)
	}
}

func TestOpenDevCADamaged(t *testing.T) {
	dir := t.TempDir()
	first, err := tlsconf.OpenDevCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "ca.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := tlsconf.OpenDevCA(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a certificate without its key: %v", err)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	second, err := tlsconf.OpenDevCA(dir)
	if err != nil {
		t.Fatalf("a first start cut short: %v", err)
	}
	if bytes.Equal(first.CertPEM(), second.CertPEM()) {
		t.Error("the certificate that was removed came back")
	}
	leaf, leafKey := issue(t, first, "x")
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), leaf, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, leafKey, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tlsconf.OpenDevCA(dir); err == nil || !strings.Contains(err.Error(), "not an authority") {
		t.Errorf("a server certificate as authority: %v", err)
	}
}

func TestIssueNeedsHosts(t *testing.T) {
	if _, _, err := newCA(t).Issue(nil); err == nil {
		t.Error("a certificate for nobody")
	}
}
