package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// from opens a TCP connection to the gateway from an address of loopback.
func from(ctx context.Context, r *rig.Rig, host string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	return d.DialContext(ctx, "tcp", "127.0.0.1:"+port)
}

// loginBytes are the frames of a PLAIN login, and what follows them.
func loginBytes(key string, rest ...byte) []byte {
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.Version, auth.SASLAuthBytes = 2, []byte("\x00me\x00"+key)
	b := append(rig.Frame(wireHandshake(1, "PLAIN"), 1, "rig"), rig.Frame(auth, 2, "rig")...)
	return append(b, rest...)
}

// strange is what a connection says: before TLS and within it.
type strange struct{ plain, inside []byte }

func strangeTalks(r *rig.Rig) []strange {
	key := r.Key(rig.Acme)
	poll := wireFetch("t", 0, 0)
	poll.MinBytes, poll.MaxWaitMillis = 1, 30_000
	logged := func(rest ...byte) strange { return strange{proxyIPv4(), loginBytes(key, rest...)} }
	return []strange{
		{nil, nil},
		{[]byte("PROXY"), nil},
		{make([]byte, 50), nil},
		{proxyIPv4(), nil},
		{append(proxyIPv4(), 22, 3, 1, 2), nil},
		{append(proxyIPv4(), make([]byte, 50)...), nil},
		{proxyV2(proxyLocal, 0), []byte{}},
		{proxyIPv4(), []byte{}},
		{proxyIPv4(), []byte{0, 0}},
		{proxyIPv4(), loginBytes("qk_live_wrong")},
		{proxyIPv4(), rig.Frame(poll, 1, "rig")}, // before the login
		logged(),
		logged(rig.Frame(poll, 3, "rig")...),
		logged(rig.Frame(wireProduce(-1, "t", 0, wireBatch{values: []string{"v"}}.bytes()), 3, "rig")...),
		logged(rig.Frame(wireProduce(0, "t", 0, wireBatch{values: []string{"v"}}.bytes()), 3, "rig")...),
		logged(rig.Frame(wireProduce(0, "no/topic", 0, wireBatch{values: []string{"v"}}.bytes()), 3, "rig")...),
		logged(0, 0, 0, 8, 0, 99, 0, 0, 0, 0, 0, 1), // unknown API
		logged(0, 0, 0, 8, 0, 0, 0, 99, 0, 0, 0, 1), // unknown version
		logged(0, 0, 0, 1, 7), // too short
		logged(0xff, 0, 0, 0), // too long
		logged(0, 0, 0, 12, 0, 3, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 9, 9), // malformed
		logged(0, 0, 0),
	}
}

// say goes as far as the gateway lets it, and returns what is still open.
func (s strange) say(ctx context.Context, r *rig.Rig, random *rand.Rand) net.Conn {
	host := "127.0.0.1"
	if random.IntN(10) == 0 {
		host = "127.0.0.2" // no balancer
	}
	conn, err := from(ctx, r, host)
	if err != nil {
		return nil // the count of those that have come tells
	}
	_, _ = conn.Write(s.plain)
	if s.inside != nil {
		over := tls.Client(conn, r.TLS())
		if over.HandshakeContext(ctx) == nil {
			_, _ = over.Write(s.inside)
			conn = over
		}
	}
	switch random.IntN(4) {
	case 0:
		_ = conn.Close()
		return nil
	case 1: // leaves when it is told something, or is sent away
		_, _ = io.ReadFull(conn, make([]byte, 1+random.IntN(40)))
		_ = conn.Close()
		return nil
	case 2:
		if tcp, ok := conn.(*net.TCPConn); ok { // resets
			_ = tcp.SetLinger(0)
			_ = conn.Close()
			return nil
		}
	}
	return conn
}

// B7: every connection that has come is open, or has ended for exactly one
// reason, whatever it was that ended it.
func TestEveryConnectionHasOneReason(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.ProxyProtocol, c.ProxyTrusted = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			c.MaxConnections = 400 // 100 of them before the login
			c.ConnectionMaxAge, c.LoginTimeout = 2*time.Second, 2*time.Second
			c.Limits.RefusalHold, c.Limits.LimitHold, c.Limits.Linger = time.Millisecond, time.Millisecond, 100*time.Millisecond
		}
	})
	ctx := rig.Context(t)
	says := strangeTalks(r)
	const workers, each = 80, 6
	var talking sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	for i := range workers {
		talking.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			for n := range each {
				conn := says[(i*each+n)%len(says)].say(ctx, r, random)
				if conn != nil {
					mu.Lock()
					open = append(open, conn)
					mu.Unlock()
				}
			}
		})
	}
	talking.Wait()
	sum := func() (ended int64, kinds string) {
		for _, reason := range wire.Reasons() {
			if n := r.Gateway.Closed(reason); n > 0 {
				ended += n
				kinds += fmt.Sprintf("%s %d, ", reason, n)
			}
		}
		return ended, kinds
	}
	rig.Eventually(t, "each is open or has a reason", func() bool {
		before := r.Gateway.Accepted()
		ended, _ := sum()
		return before == workers*each && ended+int64(r.Gateway.Connections()) == before
	})
	r.StopGateway(t)
	for _, conn := range open {
		_ = conn.Close()
	}
	ended, kinds := sum()
	t.Log(kinds)
	if ended != r.Gateway.Accepted() || r.Gateway.Connections() != 0 {
		t.Errorf("%d have come, %d have ended, %d are open: %s", r.Gateway.Accepted(), ended, r.Gateway.Connections(), kinds)
	}
	for _, reason := range []wire.Reason{
		wire.ProbeClosed, wire.ProxyUntrusted, wire.ProxyHeader, wire.TLSFailed, wire.LoginRefused, wire.BeforeLogin,
		wire.UnknownAPI, wire.UnknownVersion, wire.FrameShort, wire.FrameOversize, wire.Malformed, wire.AcksZeroFailed, wire.Draining,
	} {
		if r.Gateway.Closed(reason) == 0 {
			t.Errorf("none ended as %s: the mix lacks it", reason)
		}
	}
}

// H: what balancers do to see whether somebody listens is counted as that, and
// nothing of it is above debug in the log. With SASL off it costs no call to the
// cell either.
func TestProbesAreQuiet(t *testing.T) {
	for own, probes := range map[string]int{"": 2000, rig.Acme: 200} {
		t.Run("own token "+own, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			r := rig.Start(t, behindBalancer("127.0.0.1/32", zap.New(core)), func(o *rig.Options) { o.OwnKey = own })
			ctx := rig.Context(t)
			r.StopCell(t) // nobody needs it; nor could it have its port back while a probe's socket has that
			logs.TakeAll()
			session := r.TLS()
			session.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for i := range probes {
				conn, err := from(ctx, r, "127.0.0.1")
				if err != nil {
					t.Fatal(err)
				}
				header := [][]byte{nil, proxyV2(proxyLocal, 0), []byte("PROXY UNKNOWN\r\n"), proxyIPv4()}[i%4]
				if _, err := conn.Write(header); err != nil {
					t.Fatal(err)
				}
				switch {
				case i%20 < 4 && header != nil: // speaks TLS
					over := tls.Client(conn, session)
					if err := over.HandshakeContext(ctx); err != nil {
						t.Fatal(err)
					}
					if i%40 < 20 { // without a word at the end
						err = conn.Close()
					} else {
						err = over.Close()
					}
				case i%8 < 4: // resets
					err = conn.(*net.TCPConn).SetLinger(0)
					if err == nil {
						err = conn.Close()
					}
				default:
					err = conn.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			wireCounted(t, r, wire.ProbeClosed, int64(probes))
			rig.Eventually(t, "the last one is gone", func() bool { return r.Gateway.Connections() == 0 })
			for _, e := range logs.All() {
				if e.Level > zapcore.DebugLevel {
					t.Errorf("logged: %s %s %v", e.Level, e.Message, e.ContextMap())
				}
			}
		})
	}
}
