package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// helloConn is a client's socket below TLS. It remembers what came of the hello,
// and until then what was read.
type helloConn struct {
	net.Conn
	hello sni.Hello
	heard bool
	first []byte
}

// firstBytes bounds what is kept of a hello until it is understood.
const firstBytes = 4 << 10

var _ tlsconf.Noter = (*helloConn)(nil)

// NoteHello implements tlsconf.Noter: the handshake calls it.
func (c *helloConn) NoteHello(h sni.Hello) { c.hello, c.heard, c.first = h, true, nil }

// Read implements net.Conn.
func (c *helloConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.heard && len(c.first) < firstBytes {
		c.first = append(c.first, b[:min(n, firstBytes-len(c.first))]...)
	}
	return n, err
}

// dotted reports a hello that crypto/tls does not read because its name ends with
// a dot, which RFC 6066 §3 forbids; it is then counted with the others.
func (c *helloConn) dotted() bool {
	if c.heard {
		return false
	}
	name, ok := sni.FromHello(c.first)
	return ok && strings.HasSuffix(name, ".")
}

// handshake finishes TLS under a deadline and tells the lane that the dialled
// name comes to (B5).
func (c *conn) handshake() (sni.Lane, error) {
	tc, ok := c.nc.(*tls.Conn)
	if !ok {
		return sni.Lane{}, nil
	}
	// Not a context's: that would take a goroutine for every handshake. Whoever ends
	// the connection meanwhile closes the socket.
	err := c.raw.SetDeadline(time.Now().Add(min(c.srv.cfg.Limits.TLSHandshake, c.srv.cfg.LoginTimeout)))
	if err == nil {
		err = tc.Handshake()
	}
	if err == nil {
		err = c.raw.SetDeadline(time.Time{})
	}
	dotted := err != nil && c.hello.dotted()
	c.hello.first = nil
	switch {
	case err == nil:
		c.srv.shakes[resumed(tc)].Add(1)
		return c.hello.hello.Lane, nil
	case isProbe(err):
		return sni.Lane{}, wire.Closing(wire.ProbeClosed, err)
	case c.hello.heard && c.hello.hello.Answer == sni.Refused:
		return sni.Lane{}, wire.Closing(wire.UnknownName, refusedName(c.hello.hello.Kind))
	case dotted:
		c.srv.tls.Hellos.Add(sni.Hello{Kind: sni.Invalid, Answer: sni.Refused})
		return sni.Lane{}, wire.Closing(wire.UnknownName, errors.New("the server name of the hello ends with a dot"))
	}
	return sni.Lane{}, wire.Closing(wire.TLSFailed, err)
}

// refusedName says for the log why a name was refused. The name itself is a
// stranger's text and is left out.
func refusedName(k sni.Kind) error {
	switch k {
	case sni.Known:
		return errors.New("there is no certificate for the name of the hello")
	case sni.None:
		return errors.New("the hello has no server name, and there is no default lane")
	}
	return fmt.Errorf("the server name of the hello (%v) is none of the lanes, and there is no default lane", k)
}

// resumed is the place in Server.shakes.
func resumed(tc *tls.Conn) int {
	if tc.ConnectionState().DidResume {
		return 1
	}
	return 0
}

// OpenTLS reads what a Config says of certificates, ticket keys and lanes. pair is
// a default pair in memory, instead of files; nil: none. Without any of it the
// listener is a plaintext one: nil.
func OpenTLS(cfg config.Config, pair *tlsconf.Pair, log *zap.Logger) (*tlsconf.Store, error) {
	if !cfg.TLS() && pair == nil {
		return nil, nil
	}
	names, err := cfg.Names()
	if err != nil {
		return nil, err
	}
	return tlsconf.Open(tlsconf.Config{
		CertFile: cfg.TLSCert, KeyFile: cfg.TLSKey, Pair: pair, Dir: cfg.TLSDir, TicketFile: cfg.TLSTickets,
		Names: names, Log: log,
	})
}

// lookAfterCertificates watches their files until the last connection is gone.
func (s *Server) lookAfterCertificates(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	if s.tls != nil {
		s.tls.Run(ctx)
	}
}

func (s *Server) tellHellos(tell tell) {
	if s.tls != nil {
		s.tls.Hellos.Each(func(k sni.Kind, a sni.Answer, n int64) { tell(float64(n), k.String(), a.String()) })
	}
}

func (s *Server) tellHandshakes(tell tell) {
	if s.tls != nil {
		tell(float64(s.shakes[0].Load()), "new")
		tell(float64(s.shakes[1].Load()), "resumed")
	}
}

func (s *Server) tellFileLoads(tell tell) {
	if s.tls != nil {
		s.tls.Loads(func(k tlsconf.FileKind, o tlsconf.Outcome, n int64) { tell(float64(n), k.String(), o.String()) })
	}
}

func (s *Server) tellExpiries(tell tell) {
	if s.tls != nil {
		s.tls.Expiries(func(name string, left time.Duration) { tell(left.Seconds(), name) })
	}
}
