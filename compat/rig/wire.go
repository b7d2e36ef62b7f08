package rig

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
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

// Dial opens a connection that has not logged in.
func (r *Rig) Dial(tb testing.TB) *Wire {
	tb.Helper()
	if r.Roots == nil {
		return r.DialPlain(tb)
	}
	return r.DialTLS(tb, r.TLS())
}

// DialAs opens a TLS connection under any server name, whatever the certificate
// says of it.
func (r *Rig) DialAs(tb testing.TB, serverName string) *Wire {
	tb.Helper()
	cfg := r.TLS()
	cfg.ServerName, cfg.InsecureSkipVerify = serverName, true
	return r.DialTLS(tb, cfg)
}

// DialPlain opens a TCP connection and says nothing.
func (r *Rig) DialPlain(tb testing.TB) *Wire {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", r.Addr, Patience)
	check(tb, err)
	return newWire(tb, conn)
}

// DialAfter opens a connection that begins with some bytes, as a balancer's do,
// and goes on as Dial's.
func (r *Rig) DialAfter(tb testing.TB, first []byte) *Wire {
	tb.Helper()
	w := r.DialPlain(tb)
	w.SendRaw(first)
	if r.Roots == nil {
		return w
	}
	return newWire(tb, tls.Client(w.Conn, r.TLS()))
}

// DialTLS opens a TLS connection with a configuration of the caller's.
func (r *Rig) DialTLS(tb testing.TB, cfg *tls.Config) *Wire {
	tb.Helper()
	conn := tls.Client(r.DialPlain(tb).Conn, cfg) // not tls.Dial, which gives a hello without a name that of the address
	check(tb, conn.Handshake())
	return newWire(tb, conn)
}

func newWire(tb testing.TB, conn net.Conn) *Wire {
	tb.Helper()
	tb.Cleanup(func() { _ = conn.Close() })
	check(tb, conn.SetDeadline(time.Now().Add(Patience)))
	return &Wire{Conn: conn, tb: tb}
}

// Login opens a connection and logs in with one of the rig's keys.
func (r *Rig) Login(tb testing.TB, key string) *Wire {
	tb.Helper()
	w := r.Dial(tb)
	if resp := w.Authenticate(key, r.keys[key]); resp.ErrorCode != 0 {
		tb.Fatalf("login with key %s: code %d", key, resp.ErrorCode)
	}
	return w
}

// Authenticate goes through a PLAIN login and returns its answer.
func (w *Wire) Authenticate(user, password string) *kmsg.SASLAuthenticateResponse {
	w.tb.Helper()
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version, hs.Mechanism = 1, "PLAIN"
	w.Ask(hs)
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.Version = 2
	auth.SASLAuthBytes = []byte("\x00" + user + "\x00" + password)
	return w.Ask(auth).(*kmsg.SASLAuthenticateResponse)
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
func (w *Wire) ReadFrame() ([]byte, error) { return ReadFrame(w) }

// ReadFrame reads what follows a frame's length.
func ReadFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// Receive reads the answer to req. Its correlation id must be the one given, and
// its error codes must be declared in the table of APIs.
func (w *Wire) Receive(req kmsg.Request, correlationID int32) kmsg.Response {
	w.tb.Helper()
	b, err := w.ReadFrame()
	if err != nil {
		w.tb.Fatalf("no answer to %s: %v", kmsg.NameForKey(req.Key()), err)
	}
	resp, err := Decode(req, correlationID, b)
	check(w.tb, err)
	checkCodes(w.tb, resp)
	return resp
}

// Decode is the answer to req that a frame holds.
func Decode(req kmsg.Request, correlationID int32, b []byte) (kmsg.Response, error) {
	name := kmsg.NameForKey(req.Key())
	resp := req.ResponseKind()
	tagged := resp.IsFlexible() && resp.Key() != 18
	if len(b) < 4 || tagged && len(b) < 5 {
		return nil, fmt.Errorf("the answer to %s has %d bytes", name, len(b))
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != correlationID {
		return nil, fmt.Errorf("the answer to %s carries correlation id %d, want %d", name, got, correlationID)
	}
	b = b[4:]
	if tagged {
		if b[0] != 0 {
			return nil, fmt.Errorf("the header of the answer to %s has %d tags", name, b[0])
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("the answer to %s does not decode: %w", name, err)
	}
	return resp, nil
}

// Ask sends a request and reads its answer.
func (w *Wire) Ask(req kmsg.Request) kmsg.Response {
	w.tb.Helper()
	return w.Receive(req, w.Send(req))
}

// WantClosed checks that the gateway closes the connection without another byte,
// and closes it on this side as well, as a client does.
func (w *Wire) WantClosed() {
	w.tb.Helper()
	b, err := io.ReadAll(w)
	if len(b) > 0 {
		w.tb.Fatalf("got %d bytes, want the end", len(b))
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		w.tb.Fatal("the connection is still open")
	}
	_ = w.Close()
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
