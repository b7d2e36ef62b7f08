package rig

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Alert sends a hello with a server name as it is, whatever crypto/tls would make
// of it, and returns the number of the TLS alert that is the answer, after which
// the gateway has closed; 0: it goes on with the handshake.
func (r *Rig) Alert(tb testing.TB, serverName string) int {
	tb.Helper()
	conn := r.DialPlain(tb)
	defer conn.Close() //nolint:errcheck // over
	conn.SendRaw(hello(tb, serverName))
	var record [5]byte
	_, err := io.ReadFull(conn, record[:])
	check(tb, err)
	body := make([]byte, binary.BigEndian.Uint16(record[3:]))
	_, err = io.ReadFull(conn, body)
	check(tb, err)
	const alert = 21 // content type
	if record[0] != alert || len(body) != 2 {
		return 0
	}
	conn.WantClosed()
	return int(body[1])
}

// hello is the hello of crypto/tls, with another name in the place of its own.
func hello(tb testing.TB, serverName string) []byte {
	tb.Helper()
	var out recorder
	own := strings.Repeat("n", len(serverName))
	err := tls.Client(&out, &tls.Config{ServerName: own, InsecureSkipVerify: true}).Handshake()
	if err == nil || out.Len() == 0 {
		tb.Fatalf("no hello: %v", err)
	}
	if own == "" {
		return out.Bytes()
	}
	sized := func(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }
	if bytes.Count(out.Bytes(), sized(own)) != 1 {
		tb.Fatal("the place of the name is not known")
	}
	return bytes.Replace(out.Bytes(), sized(own), sized(serverName), 1)
}

// recorder is a connection to nobody.
type recorder struct{ bytes.Buffer }

func (*recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (*recorder) Close() error                     { return nil }
func (*recorder) LocalAddr() net.Addr              { return nil }
func (*recorder) RemoteAddr() net.Addr             { return nil }
func (*recorder) SetDeadline(time.Time) error      { return nil }
func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }
