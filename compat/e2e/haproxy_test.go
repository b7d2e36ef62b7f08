package e2e

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/ports"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/edge/config"
)

// proxied is HAProxy with the example's configuration before two nodes that take
// nobody else's connections.
type proxied struct {
	*haproxy
	r      *rig.Rig // node 1's, and its address without HAProxy
	two    *rig.Node
	shared *rig.Rig    // as clients see it that know the first contact
	own    [2]*rig.Rig // as clients see it that dial a node by itself
	sides  [2]*fixedSide
	logs   *observer.ObservedLogs
}

// fixedSide is a node's side listener, which is where it was when the node is
// started again.
type fixedSide struct {
	at  *ports.Port
	end func()
}

func keepSide(t *testing.T) *fixedSide {
	t.Helper()
	at, err := ports.Keep()
	if err != nil {
		t.Fatal(err)
	}
	s := &fixedSide{at: at, end: func() {}}
	t.Cleanup(func() {
		s.end()
		if err := at.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *fixedSide) start(t *testing.T, gateway *edge.Server) {
	t.Helper()
	ln, err := s.at.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.ServeSide(ctx, ln) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the side listener: %v", err)
		}
	})
}

func advertise(t *testing.T, cfg *config.Config, addr string) {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Advertised = config.Addr{Host: rig.Host, Port: int32(at.Port)}
}

// startProxied waits until HAProxy and the nodes see each other. change is for both
// nodes; a drain delay is node 1's alone.
func startProxied(t *testing.T, change func(*config.Config)) *proxied {
	t.Helper()
	p := &proxied{haproxy: newHAProxy(t)}
	bootstrap, first, second := p.front("EDGE_BOOTSTRAP"), p.front("EDGE_1_FRONT"), p.front("EDGE_2_FRONT")
	var core zapcore.Core
	core, p.logs = observer.New(zapcore.DebugLevel)
	p.r = rig.Start(t, rig.WithNode(rig.Acme2), func(o *rig.Options) {
		o.Log = zap.New(core)
		o.Config = func(cfg *config.Config) {
			cfg.ProxyProtocol, cfg.ProxyTrusted = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			cfg.Group.JoinDelay, cfg.Group.MinSessionTimeout = 0, time.Millisecond
			advertise(t, cfg, first)
			if change != nil {
				change(cfg)
			}
		}
	})
	p.two = p.r.StartNode(t, 2, func(cfg *config.Config) {
		advertise(t, cfg, second)
		cfg.DrainDelay = 0
	})
	p.own[0], p.own[1], p.shared = p.at(first), p.two.Rig(), p.at(bootstrap)
	for i := range p.sides {
		p.sides[i] = keepSide(t)
		p.sides[i].start(t, p.gateways()[i])
		p.set(fmt.Sprintf("EDGE_%d_SIDE", i+1), strconv.Itoa(p.sides[i].at.Number()))
	}
	p.set("EDGE_1", p.r.Addr)
	p.set("EDGE_2", p.two.At())
	p.start(haproxyExample)
	p.await("queen-edges/node-1", "UP")
	p.await("queen-edges/node-2", "UP")
	together(t, 2, p.own[:]...)
	return p
}

// gateways are the nodes in their present life.
func (p *proxied) gateways() [2]*edge.Server { return [2]*edge.Server{p.r.Gateway, p.two.Server} }

// at is the rig as clients see it that dial an address of HAProxy's.
func (p *proxied) at(addr string) *rig.Rig {
	r := *p.r
	r.Addr = addr
	return &r
}

// comingFrom has a client's connections come from an address.
func comingFrom(r *rig.Rig, host string) []kgo.Opt {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	return []kgo.Opt{kgo.DialTLSConfig(nil), kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp4", addr)
		if err != nil {
			return nil, err
		}
		return tls.Client(conn, r.TLS()), nil
	})}
}

// Clients that know HAProxy's shared address alone write, read and form groups at
// both nodes, and are who they are in the audit log and to their groups: HAProxy's
// address is nowhere.
func TestHAProxyShared(t *testing.T) {
	const client = "127.0.0.77"
	path := filepath.Join(t.TempDir(), "audit")
	p := startProxied(t, func(cfg *config.Config) { cfg.AuditLog = path })
	makeTopic(t, p.shared, rig.Acme, "t")
	ctx, opts := rig.Context(t), comingFrom(p.r, client)
	producer := p.shared.Kafka(t, rig.Acme, append(opts, kgo.ClientID("app"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))...)
	const records = 100
	for i := range records {
		if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	admin := kadm.NewClient(producer)
	for node := range int32(2) {
		group := groupOf(t, node+1, p.own[:]...)
		// Each member is told where its coordinator is; both are clients of both nodes.
		members := []*kgo.Client{}
		got := map[string]bool{}
		for range 2 {
			members = append(members, p.shared.Kafka(t, rig.Acme, append(append(impatient(), opts...), kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(100*time.Millisecond))...))
		}
		rig.Eventually(t, "all records in "+group, func() bool {
			for _, c := range members {
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				c.PollFetches(short).EachRecord(func(rec *kgo.Record) { got[string(rec.Value)] = true })
				cancel()
			}
			return len(got) == records
		})
		described, err := admin.DescribeGroups(ctx, group)
		if err != nil {
			t.Fatal(err)
		}
		d := described[group]
		if d.Coordinator.NodeID != node+1 || len(d.Members) != 2 {
			t.Errorf("%s is at node %d with %d members, want node %d and 2", group, d.Coordinator.NodeID, len(d.Members), node+1)
		}
		for _, m := range d.Members {
			if m.ClientHost != "/"+client {
				t.Errorf("a member of %s is at %s, want %s", group, m.ClientHost, client)
			}
		}
		for _, c := range members {
			c.Close()
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	logins := 0
	for line := range strings.Lines(string(text)) {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if strings.HasPrefix(e.Address, client+":") {
			logins++
		}
	}
	if logins == 0 {
		t.Errorf("no line is of %s:\n%s", client, tail(string(text)))
	}
}

// librdkafka goes the same way.
func TestHAProxyKcat(t *testing.T) {
	kcat := needKcat(t)
	p := startProxied(t, nil)
	makeTopic(t, p.shared, rig.Acme, "t")
	k := kcat.as(t, p.shared, rig.Acme)
	want := []string{}
	for i := range 100 {
		want = append(want, fmt.Sprintf("%03d", i))
	}
	k.run(strings.NewReader(strings.Join(want, "\n")), "-P", "-t", "t")
	for node := range int32(2) {
		out, _ := k.run(nil, "-X", "auto.offset.reset=earliest", "-c", fmt.Sprint(len(want)), "-G", groupOf(t, node+1, p.own[:]...), "t")
		got := strings.Fields(out)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("kcat reads %q", got)
		}
	}
}

// Node 1 and then node 2 are restarted behind HAProxy under load. It takes a node
// out while that drains, without a cut, and in again; nothing is lost, no
// application sees an error, no committed offset goes back.
func TestHAProxyRollingRestart(t *testing.T) {
	p := startProxied(t, nil)
	makeTopic(t, p.shared, rig.Acme, "t")
	load := startMoving(t, p.shared)
	load.advance(30)
	for i, node := range []struct{ stop, start func() }{
		{func() { p.r.StopGateway(t) }, func() { p.r.StartGateway(t) }},
		{func() { p.two.Stop(t) }, func() { p.two.Start(t) }},
	} {
		server := fmt.Sprintf("queen-edges/node-%d", i+1)
		begun := time.Now()
		var check string
		var down time.Duration
		seen := make(chan struct{})
		go func() {
			defer close(seen)
			check = p.await(server, "DOWN")
			down = time.Since(begun)
		}()
		node.stop()
		drained := time.Since(begun)
		if i == 0 {
			// The side listener outlives the drain: that is what HAProxy sees of one that
			// takes long. The other's ends with it.
			if <-seen; check != "L7STS 503" {
				t.Errorf("a node that drains is down by %q, want its 503", check)
			}
		}
		p.sides[i].end()
		<-seen
		load.advance(30)
		again := time.Now()
		node.start()
		p.sides[i].start(t, p.gateways()[i])
		p.await(server, "UP")
		up := time.Since(again)
		together(t, 2, p.own[:]...)
		t.Logf("node %d: drained after %v, down for HAProxy after %v; up %v after its start, all together after %v",
			i+1, drained, down, up, time.Since(again))
		load.advance(30)
	}
	load.finish(p.shared)
	for _, group := range load.groups {
		again := 0
		for _, n := range load.got[group] {
			again += n - 1
		}
		t.Logf("%s: %d records in, %d out, %d of them again", group, load.acked, len(load.got[group]), again)
	}
}

// A gateway with a drain delay goes on taking connections after /readyz has said
// no: HAProxy takes it out meanwhile, and of the clients that come all the time
// by the shared address none is cut off. Then the listener ends.
func TestHAProxyDrainDelay(t *testing.T) {
	p := startProxied(t, func(cfg *config.Config) { cfg.DrainDelay = 3 * time.Second })
	at := p.r.Addr
	var wg sync.WaitGroup
	newcomers, enough := context.WithCancel(t.Context())
	defer enough()
	var came atomic.Int64
	for range 4 {
		wg.Go(func() {
			for ; newcomers.Err() == nil; came.Add(1) {
				if err := logInOnce(p.shared); err != nil {
					t.Errorf("one that came by the shared address: %v", err)
				}
			}
		})
	}
	rig.Eventually(t, "newcomers", func() bool { return came.Load() > 10 })
	taken := make(chan error, 1)
	go func() {
		p.await("queen-edges/node-1", "DOWN")
		// HAProxy has it down, and who was sent here before that is still served.
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_, err = conn.Write(proxyIPv4())
		}
		if err == nil {
			err = logInOver(tls.Client(conn, p.r.TLS()), p.r.Key(rig.Acme))
		}
		taken <- err
	}()
	p.r.StopGateway(t)
	if err := <-taken; err != nil {
		t.Errorf("in the delay: %v", err)
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		_ = conn.Close()
		t.Error("the listener is there after the drain")
	}
	enough()
	wg.Wait()
	t.Logf("%d have come by the shared address", came.Load())
}

// logInOnce is a connection that logs in and goes.
func logInOnce(r *rig.Rig) error {
	conn, err := net.DialTimeout("tcp", r.Addr, rig.Patience)
	if err != nil {
		return err
	}
	return logInOver(tls.Client(conn, r.TLS()), r.Key(rig.Acme))
}

// logInOver logs in and closes.
func logInOver(conn *tls.Conn, key string) error {
	defer conn.Close() //nolint:errcheck // whether it went well has been seen
	if err := conn.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		return err
	}
	if _, err := conn.Write(loginBytes(key)); err != nil {
		return err
	}
	for range 2 { // of handshake and login
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return err
		}
	}
	return nil
}
