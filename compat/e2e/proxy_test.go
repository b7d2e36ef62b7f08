package e2e

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// behindBalancer is a gateway to which only balancers at trusted may connect.
func behindBalancer(trusted string, log *zap.Logger) func(*rig.Options) {
	return func(o *rig.Options) {
		o.Log = log
		o.Config = func(c *config.Config) {
			c.ProxyProtocol, c.ProxyTrusted = true, []netip.Prefix{netip.MustParsePrefix(trusted)}
			c.Group.JoinDelay = 0
		}
	}
}

// proxyV2 is a PROXY header of version 2 by hand: command and version, family
// and protocol, and what follows the length.
func proxyV2(command, family byte, rest ...byte) []byte {
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rest)))
	return append(b, rest...)
}

// Parts of such a header.
const (
	proxyLocal, proxyFor = 0x20, 0x21
	proxyTCP4, proxyTCP6 = 0x11, 0x21
)

func proxyIPv4() []byte {
	return proxyV2(proxyFor, proxyTCP4, 203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x34, 0x23, 0x84)
}

func proxyIPv6(tags ...byte) []byte {
	rest := net.ParseIP("2001:db8::7").To16()
	rest = append(rest, net.ParseIP("2001:db8::1").To16()...)
	rest = append(rest, 0x12, 0x34, 0x23, 0x84)
	return proxyV2(proxyFor, proxyTCP6, append(rest, tags...)...)
}

// B7: the source of the header is where the client is, to other members of its
// group and in the log; the TCP peer is nobody's address.
func TestProxySourceIsTheClient(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	r := rig.Start(t, behindBalancer("127.0.0.0/8", zap.New(core)))
	tags := append([]byte{4, 0x0b, 0xb8}, make([]byte, 3000)...) // a no-op of 3,000 bytes, as large as a certificate
	for _, c := range []struct {
		name   string
		header []byte
		host   string
	}{
		{"v1 TCP4", []byte("PROXY TCP4 203.0.113.9 10.0.0.1 1234 9092\r\n"), "203.0.113.9"},
		{"v1 TCP6", []byte("PROXY TCP6 2001:db8::9 2001:db8::1 1234 9092\r\n"), "2001:db8::9"},
		{"v1 longest", []byte("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"), "127.0.0.1"},
		{"v2 TCP4", proxyIPv4(), "203.0.113.7"},
		{"v2 TCP6", proxyIPv6(tags...), "2001:db8::7"},
		{"v2 local", proxyV2(proxyLocal, 0), "127.0.0.1"},
		{"v2 local with an address", proxyV2(proxyLocal, proxyTCP4, 203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x34, 0x23, 0x84), "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := r.DialAfter(t, c.header)
			if resp := w.Authenticate("me", r.Key(rig.Acme)); resp.ErrorCode != 0 {
				t.Fatalf("code %d", resp.ErrorCode)
			}
			m := newMember(t, w, "group of "+c.name, true)
			m.join("t")
			m.sendSync(m.id, "t")()
			group := describeGroup(w, m.group, 5)
			if len(group.Members) != 1 || group.Members[0].ClientHost != "/"+c.host {
				t.Errorf("members %+v, want one at %s", group.Members, c.host)
			}
			w.SendRaw([]byte{0xff, 0xff, 0xff, 0xff}) // ends for a reason that is logged
			w.WantClosed()
			// Lines of one reason are sampled: the first client's must be there before the next has its.
			rig.Eventually(t, "the first line", func() bool { return logs.FilterMessage("connection closed").Len() > 0 })
		})
	}
	peers := ""
	for _, e := range logs.FilterMessage("connection closed").All() {
		peers += e.ContextMap()["peer"].(string) + " "
	}
	if !strings.HasPrefix(peers, "203.0.113.9:1234 ") {
		t.Errorf("the log names %q", peers)
	}
}

// A header may arrive byte by byte, and may be followed by TLS in one segment.
func TestProxyHeaderInPieces(t *testing.T) {
	r := rig.Start(t, behindBalancer("127.0.0.1/32", nil))
	for _, header := range [][]byte{proxyIPv4(), []byte("PROXY TCP4 203.0.113.9 10.0.0.1 1234 9092\r\n")} {
		raw := r.DialPlain(t)
		for i := range header {
			raw.SendRaw(header[i : i+1])
		}
		w := tls.Client(raw.Conn, r.TLS())
		if err := w.Handshake(); err != nil {
			t.Error(err)
		}
		joined := tls.Client(&firstWrite{Conn: r.DialPlain(t).Conn, first: header}, r.TLS())
		if err := joined.Handshake(); err != nil {
			t.Errorf("one segment: %v", err)
		}
	}
}

// firstWrite puts bytes in front of the first that are written.
type firstWrite struct {
	net.Conn
	first []byte
}

func (c *firstWrite) Write(b []byte) (int, error) {
	if c.first == nil {
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(append(c.first, b...))
	c.first = nil
	return min(n, len(b)), err
}

// What is not a header, or is one that nobody may send, closes the connection
// for that reason; no byte at all is a probe.
func TestProxyHeaderRefused(t *testing.T) {
	r := rig.Start(t, behindBalancer("127.0.0.1/32", nil))
	unix := make([]byte, 216)
	copy(unix, "/run/x")
	refused := map[string][]byte{
		"a TLS hello":          append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 100)...),
		"a Kafka frame":        rig.Frame(wireMetadata("t"), 1, "rig"),
		"HTTP":                 []byte("GET /readyz HTTP/1.1\r\n\r\n"),
		"v1 without end":       []byte("PROXY TCP4 " + strings.Repeat("1", 200)),
		"v1 other family":      []byte("PROXY UDP4 203.0.113.9 10.0.0.1 1234 9092\r\n"),
		"v1 other word":        []byte("PROXYTCP4 203.0.113.9 10.0.0.1 1234 9092\r\n"),
		"v1 bad address":       []byte("PROXY TCP4 203.0.113.999 10.0.0.1 1234 9092\r\n"),
		"v1 bad port":          []byte("PROXY TCP4 203.0.113.9 10.0.0.1 99999 9092\r\n"),
		"v1 line feed alone":   []byte("PROXY TCP4 203.0.113.9 10.0.0.1 1234 9092\n"),
		"v2 too long":          proxyV2(proxyFor, proxyTCP4, make([]byte, 4097)...),
		"v2 too short":         proxyV2(proxyFor, proxyTCP4, 203, 0, 113, 7),
		"v2 other version":     proxyV2(0x31, proxyTCP4, make([]byte, 12)...),
		"v2 other command":     proxyV2(0x22, proxyTCP4, make([]byte, 12)...),
		"v2 datagrams":         proxyV2(proxyFor, 0x12, make([]byte, 12)...),
		"v2 of a unix socket":  proxyV2(proxyFor, 0x31, unix...),
		"v2 for nobody":        proxyV2(proxyFor, 0),
		"v2 unknown transport": proxyV2(proxyLocal, 0x13, make([]byte, 12)...),
	}
	for name, first := range refused {
		t.Run(name, func(t *testing.T) {
			before := r.Gateway.Closed(wire.ProxyHeader)
			sendAndSeeTheEnd(r.DialPlain(t), first)
			wireCounted(t, r, wire.ProxyHeader, before+1)
		})
	}
	for _, cut := range [][]byte{proxyIPv4()[:20], proxyIPv4()[:13], []byte("PROXY TCP4 203."), []byte("PRO")} {
		before := r.Gateway.Closed(wire.ProxyHeader)
		w := r.DialPlain(t)
		w.SendRaw(cut)
		_ = w.Close()
		wireCounted(t, r, wire.ProxyHeader, before+1)
	}
	_ = r.DialPlain(t).Close()
	wireCounted(t, r, wire.ProbeClosed, 1)
}

// sendAndSeeTheEnd sends what will not be answered. The gateway may have closed
// before it is all there.
func sendAndSeeTheEnd(w *rig.Wire, first []byte) {
	_, _ = w.Write(first)
	w.WantClosed()
}

// Who is not a balancer is closed without a look at what he sends; an address of
// the header does not make him one.
func TestProxyUntrusted(t *testing.T) {
	r := rig.Start(t, behindBalancer("203.0.113.0/24", nil))
	for i, first := range [][]byte{proxyIPv4(), nil, []byte("PROXY TCP4 203.0.113.9 203.0.113.9 1 2\r\n")} {
		sendAndSeeTheEnd(r.DialPlain(t), first)
		wireCounted(t, r, wire.ProxyUntrusted, int64(i)+1)
	}
}

// A header that does not come ends the connection in time, and keeps nobody
// else waiting.
func TestProxyHeaderNeverComes(t *testing.T) {
	r := rig.Start(t, behindBalancer("127.0.0.1/32", nil))
	silent, begun := r.DialPlain(t), r.DialPlain(t)
	begun.SendRaw([]byte("PROXY TCP4 "))
	w := r.DialAfter(t, proxyIPv4())
	if resp := w.Authenticate("me", r.Key(rig.Acme)); resp.ErrorCode != 0 {
		t.Errorf("code %d", resp.ErrorCode)
	}
	if n := r.Gateway.Closed(wire.ProxyHeader); n != 0 {
		t.Errorf("%d are closed before their time", n)
	}
	silent.Close()
	begun.Close()

	soon := rig.Start(t, func(o *rig.Options) {
		behindBalancer("127.0.0.1/32", nil)(o)
		set := o.Config
		o.Config = func(c *config.Config) { set(c); c.Limits.ProxyHeader = 20 * time.Millisecond }
	})
	soon.DialPlain(t).WantClosed()
	begun = soon.DialPlain(t)
	begun.SendRaw([]byte("PROXY TCP4 "))
	begun.WantClosed()
	wireCounted(t, soon, wire.ProxyHeader, 2)
}

// A real client behind a balancer produces and reads in a group.
func TestProxyWithRealClient(t *testing.T) {
	r := rig.Start(t, behindBalancer("127.0.0.1/32", nil))
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return tls.Client(&firstWrite{Conn: conn, first: proxyIPv4()}, r.TLS()), nil
	}
	opts := []kgo.Opt{kgo.DialTLSConfig(nil), kgo.Dialer(dial)}
	ctx := rig.Context(t)
	p := r.Kafka(t, rig.Acme, opts...)
	if err := p.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := r.Kafka(t, rig.Acme, append(opts, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	fetches := c.PollFetches(ctx)
	if err := fetches.Err(); err != nil || fetches.NumRecords() != 1 {
		t.Fatalf("%d records, %v", fetches.NumRecords(), err)
	}
	groups, err := kadm.NewClient(p).DescribeGroups(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if members := groups["g"].Members; len(members) != 1 || members[0].ClientHost != "/203.0.113.7" {
		t.Errorf("members %+v", members)
	}
}
