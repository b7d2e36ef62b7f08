package sni_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/sni"
)

// written is a connection to nobody that keeps what is written.
type written struct{ bytes.Buffer }

func (*written) Read([]byte) (int, error)         { return 0, io.EOF }
func (*written) Close() error                     { return nil }
func (*written) LocalAddr() net.Addr              { return nil }
func (*written) RemoteAddr() net.Addr             { return nil }
func (*written) SetDeadline(time.Time) error      { return nil }
func (*written) SetReadDeadline(time.Time) error  { return nil }
func (*written) SetWriteDeadline(time.Time) error { return nil }

func helloOf(tb testing.TB, name string, version uint16) []byte {
	tb.Helper()
	var w written
	if err := tls.Client(&w, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}).Handshake(); err == nil {
		tb.Fatal("a handshake with nobody")
	}
	return w.Bytes()
}

func TestFromHello(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, name := range []string{"a.example", "my_cluster.example", ""} {
			hello := helloOf(t, name, version)
			if got, ok := sni.FromHello(hello); got != name || ok != (name != "") {
				t.Errorf("%s: name %q, %v; want %q", tls.VersionName(version), got, ok, name)
			}
			for n := range hello {
				if got, ok := sni.FromHello(hello[:n]); ok {
					t.Fatalf("%q in the first %d bytes", got, n)
				}
			}
		}
	}
	for _, junk := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff"} {
		if got, ok := sni.FromHello([]byte(junk)); ok {
			t.Errorf("%q names %q", junk, got)
		}
	}
}

func FuzzFromHello(f *testing.F) {
	for _, name := range []string{"a.example", ""} {
		f.Add(helloOf(f, name, tls.VersionTLS13))
		f.Add(helloOf(f, name, tls.VersionTLS12))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, ok := sni.FromHello(b); ok && !bytes.Contains(b, []byte(name)) {
			t.Fatalf("%q is not in the hello", name)
		}
	})
}
