package rig

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Wire is a raw connection to the gateway, for frames no client would send.
type Wire struct {
	net.Conn
	tb   testing.TB
	next int32
}

// Dial opens a TLS connection that has not logged in.
func (r *Rig) Dial(tb testing.TB) *Wire {
	tb.Helper()
	var conn net.Conn
	var err error
	d := net.Dialer{Timeout: Patience}
	if r.Roots != nil {
		conn, err = tls.DialWithDialer(&d, "tcp", r.Addr, r.TLS())
	} else {
		conn, err = d.Dial("tcp", r.Addr)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	check(tb, conn.SetDeadline(time.Now().Add(Patience)))
	return &Wire{Conn: conn, tb: tb}
}

// Login opens a connection and logs in with one of the rig's keys.
func (r *Rig) Login(tb testing.TB, key string) *Wire {
	tb.Helper()
	w := r.Dial(tb)
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version, hs.Mechanism = 1, "PLAIN"
	w.Ask(hs)
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.SASLAuthBytes = []byte("\x00" + key + "\x00" + r.keys[key])
	resp := w.Ask(auth).(*kmsg.SASLAuthenticateResponse)
	if resp.ErrorCode != 0 {
		tb.Fatalf("login with key %s: code %d", key, resp.ErrorCode)
	}
	return w
}

// Frame makes the frame of a request at its version: length, header, body.
func Frame(req kmsg.Request, correlationID int32, clientID string) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	return f.AppendRequest(nil, req, correlationID)
}

// Send writes a request and returns its correlation id.
func (w *Wire) Send(req kmsg.Request) int32 {
	w.tb.Helper()
	w.next++
	w.SendRaw(Frame(req, w.next, "rig"))
	return w.next
}

// SendRaw writes bytes as they are.
func (w *Wire) SendRaw(b []byte) {
	w.tb.Helper()
	if _, err := w.Write(b); err != nil {
		w.tb.Fatalf("write: %v", err)
	}
}

// ReadFrame reads one response frame: what follows its length.
func (w *Wire) ReadFrame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(w, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(w, b)
	return b, err
}

// Receive reads the answer to req and checks its correlation id.
func (w *Wire) Receive(req kmsg.Request, correlationID int32) kmsg.Response {
	w.tb.Helper()
	b, err := w.ReadFrame()
	if err != nil {
		w.tb.Fatalf("no answer to %s: %v", kmsg.NameForKey(req.Key()), err)
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != correlationID {
		w.tb.Fatalf("answer carries correlation id %d, want %d", got, correlationID)
	}
	b = b[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != 18 {
		if b[0] != 0 {
			w.tb.Fatalf("response header has %d tags", b[0])
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		w.tb.Fatalf("answer to %s does not decode: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp
}

// Ask sends a request and reads its answer.
func (w *Wire) Ask(req kmsg.Request) kmsg.Response {
	w.tb.Helper()
	return w.Receive(req, w.Send(req))
}

// WantClosed checks that the gateway closes the connection without another byte.
func (w *Wire) WantClosed() {
	w.tb.Helper()
	b, err := io.ReadAll(w)
	if len(b) > 0 {
		w.tb.Fatalf("got %d bytes, want the end", len(b))
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		w.tb.Fatal("the connection is still open")
	}
}

// Eventually waits for what becomes true without a signal of its own.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			tb.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
