package load

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	loginWithin = 30 * time.Second
	maxAnswer   = 1 << 20
)

// logger logs connections in with as little as it takes, so that what is
// measured is the peer: TCP, TLS, ApiVersions, SaslHandshake, SaslAuthenticate.
type logger struct {
	addr   string
	tls    *tls.Config
	echo   bool
	frames *kmsg.RequestFormatter
}

func newLogger(p Peer) (*logger, error) {
	cfg, err := p.dialTLS()
	return &logger{addr: p.Addr, tls: cfg, echo: p.Echo, frames: kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))}, err
}

// login returns a connection that has logged in.
func (l *logger) login(ctx context.Context, token string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, loginWithin)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	conn := net.Conn(raw)
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, err
	}
	if l.tls != nil {
		conn = tls.Client(raw, l.tls)
	}
	if err := l.talk(conn, token); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

func (l *logger) talk(conn net.Conn, token string) error {
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.Version, versions.ClientSoftwareName, versions.ClientSoftwareVersion = 3, "bench", "1"
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, "PLAIN"
	authenticate := kmsg.NewPtrSASLAuthenticateRequest()
	authenticate.Version, authenticate.SASLAuthBytes = 1, []byte("\x00"+userName+"\x00"+token)
	for i, req := range []kmsg.Request{versions, handshake, authenticate} {
		answer, err := l.ask(conn, req, int32(i))
		if err != nil {
			return fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)
		}
		if l.echo {
			continue
		}
		if err := refused(req, answer); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request and reads its answer, without the correlation id.
func (l *logger) ask(conn net.Conn, req kmsg.Request, correlation int32) ([]byte, error) {
	if _, err := conn.Write(l.frames.AppendRequest(nil, req, correlation)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < 4 || size > maxAnswer {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size-4)
	_, err := io.ReadFull(conn, body)
	return body, err
}

// refused reads the error code of an answer; all three begin with it.
func refused(req kmsg.Request, answer []byte) error {
	resp := req.ResponseKind()
	if err := resp.ReadFrom(answer); err != nil {
		return err
	}
	code := int16(0)
	switch resp := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		code = resp.ErrorCode
	case *kmsg.SASLHandshakeResponse:
		code = resp.ErrorCode
	case *kmsg.SASLAuthenticateResponse:
		code = resp.ErrorCode
	}
	if code != 0 {
		return fmt.Errorf("%s was answered with error %d", kmsg.NameForKey(req.Key()), code)
	}
	return nil
}

// negotiated says what a TLS connection agreed on.
func negotiated(conn net.Conn) string {
	c, ok := conn.(*tls.Conn)
	if !ok {
		return ""
	}
	state := c.ConnectionState()
	return tls.VersionName(state.Version) + " " + tls.CipherSuiteName(state.CipherSuite) + " " + state.CurveID.String()
}
