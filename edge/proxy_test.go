package edge

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/iotest"
)

// proxySeeds are headers as HAProxy 3 and AWS balancers send them.
func proxySeeds() [][]byte {
	v2 := func(rest string) []byte { return []byte("\r\n\r\n\x00\r\nQUIT\n" + rest) }
	return [][]byte{
		[]byte("PROXY TCP4 203.0.113.9 10.0.0.1 1234 9092\r\n"),
		[]byte("PROXY TCP6 2001:db8::9 2001:db8::1 1234 9092\r\n"),
		[]byte("PROXY UNKNOWN\r\n"),
		v2("\x21\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\x12\x34\x23\x84"),
		v2("\x20\x00\x00\x00"),
		v2("\x21\x11\x00\x13\xcb\x00\x71\x07\x0a\x00\x00\x01\x12\x34\x23\x84\x03\x00\x04\x00\x00\x00\x00"),
	}
}

// A header is read to its end and no further: TLS follows.
func TestReadProxyHeaderStopsBehindIt(t *testing.T) {
	for _, seed := range proxySeeds() {
		r := bytes.NewReader(append(bytes.Clone(seed), "\x16\x03\x01rest"...))
		got, err := readProxyHeader(iotest.OneByteReader(r))
		if err != nil || !bytes.Equal(got, seed) {
			t.Errorf("%q: %q, %v", seed, got, err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "\x16\x03\x01rest" {
			t.Errorf("%q leaves %q", seed, rest)
		}
		if _, err := proxySource(got); err != nil {
			t.Errorf("%q: %v", seed, err)
		}
		for cut := 1; cut < len(seed); cut++ {
			if _, err := readProxyHeader(bytes.NewReader(seed[:cut])); err == nil || err == errNoByte {
				t.Errorf("%q cut to %d: %v", seed, cut, err)
			}
		}
	}
	if _, err := readProxyHeader(bytes.NewReader(nil)); err != errNoByte {
		t.Errorf("no byte: %v", err)
	}
}

// FuzzProxyHeader: whatever comes, no more is read than a header may have, and
// a source has an address.
func FuzzProxyHeader(f *testing.F) {
	for _, seed := range proxySeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		text, err := readProxyHeader(r)
		if read := len(b) - r.Len(); read > proxyV2Prefix+proxyV2Bytes {
			t.Fatalf("%d bytes read", read)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(text, b[:len(text)]) || len(b)-r.Len() != len(text) {
			t.Fatal("the header is not what was read")
		}
		source, err := proxySource(text)
		if err != nil || source == nil {
			return
		}
		if tcp := source.(*net.TCPAddr); len(tcp.IP) != net.IPv4len && len(tcp.IP) != net.IPv6len {
			t.Fatalf("source %v", source)
		}
	})
}
