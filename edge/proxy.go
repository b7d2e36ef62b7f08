package edge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// Bounds of a PROXY header (its specification, sections 2.1 and 2.2). A header
// of version 2 may say that it has 64 KiB; what balancers add, a client's
// certificate included, is far below proxyV2Bytes.
const (
	proxyV1Bytes  = 107
	proxyV2Prefix = 16 // signature, command, family, length
	proxyV2Bytes  = 4096
)

// proxied reads the PROXY header that a balancer begins a connection with (B7),
// and takes its source for the client's address. The TCP peer decides about
// trust alone. A header that names no client (LOCAL, UNKNOWN) belongs to a
// connection of the balancer's own, such as a health check: the peer is its
// client.
func (c *conn) proxied() error {
	if !c.srv.cfg.ProxyProtocol {
		return nil
	}
	if !trusted(c.nc.RemoteAddr(), c.srv.cfg.ProxyTrusted) {
		return wire.Closing(wire.ProxyUntrusted, nil)
	}
	wait := min(c.srv.cfg.Limits.ProxyHeader, c.srv.cfg.LoginTimeout)
	if err := c.raw.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return wire.Closing(wire.ClientError, err)
	}
	text, err := readProxyHeader(c.raw)
	if errors.Is(err, errNoByte) {
		return wire.Closing(wire.ProbeClosed, nil)
	}
	if err != nil {
		return wire.Closing(wire.ProxyHeader, err)
	}
	source, err := proxySource(text)
	if err != nil {
		return wire.Closing(wire.ProxyHeader, err)
	}
	if source != nil {
		c.client = source
	}
	return c.raw.SetReadDeadline(time.Time{})
}

// trusted reports whether an address is in one of the networks.
func trusted(a net.Addr, networks []netip.Prefix) bool {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return false
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// errNoByte is a connection that was closed as it had been opened.
var errNoByte = errors.New("no byte came")

// errNoProxyHeader is a connection that begins with something else.
var errNoProxyHeader = errors.New("the connection does not begin with a PROXY header")

// readProxyHeader reads a header of either version, and not a byte of what
// follows it, which is TLS.
func readProxyHeader(r io.Reader) ([]byte, error) {
	b := make([]byte, proxyV2Prefix, proxyV1Bytes)
	begin := len(proxyproto.SIGV2) // any header is longer
	if n, err := io.ReadFull(r, b[:begin]); err != nil {
		if n == 0 && !isTimeout(err) {
			return nil, errNoByte
		}
		return nil, fmt.Errorf("cut after %d bytes: %w", n, err)
	}
	switch {
	case bytes.Equal(b[:begin], proxyproto.SIGV2):
		return readProxyV2(r, b)
	case bytes.HasPrefix(b, proxyproto.SIGV1):
		return readProxyV1(r, b[:begin])
	}
	return nil, errNoProxyHeader
}

// readProxyV2 reads what follows the signature.
func readProxyV2(r io.Reader, b []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, b[len(proxyproto.SIGV2):]); err != nil {
		return nil, fmt.Errorf("cut: %w", err)
	}
	size := int(binary.BigEndian.Uint16(b[proxyV2Prefix-2:]))
	if size > proxyV2Bytes {
		return nil, fmt.Errorf("a PROXY header of %d bytes, at most %d are read", size, proxyV2Bytes)
	}
	b = append(b, make([]byte, size)...)
	if _, err := io.ReadFull(r, b[proxyV2Prefix:]); err != nil {
		return nil, fmt.Errorf("cut: %w", err)
	}
	return b, nil
}

// readProxyV1 reads on until the end of the line, whose length nothing tells.
func readProxyV1(r io.Reader, b []byte) ([]byte, error) {
	for len(b) < proxyV1Bytes {
		b = append(b, 0)
		if _, err := io.ReadFull(r, b[len(b)-1:]); err != nil {
			return nil, fmt.Errorf("cut: %w", err)
		}
		if b[len(b)-1] == '\n' {
			return b, nil
		}
	}
	return nil, fmt.Errorf("a PROXY line of more than %d bytes", proxyV1Bytes)
}

// proxySource is the client that a whole header names; nil where it names none.
func proxySource(text []byte) (net.Addr, error) {
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(text), len(text)))
	if err != nil {
		return nil, err
	}
	if h.Command.IsLocal() {
		return nil, nil
	}
	tcp, ok := h.SourceAddr.(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("a source that is no TCP address (family %#x)", byte(h.TransportProtocol))
	}
	return tcp, nil
}
