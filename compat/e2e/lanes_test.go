package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

const unrecognizedName = 112 // the alert (RFC 6066 §3)

// The lanes of the tests: two clusters by their names, and one for all.
const (
	laneAcme   = "acme.localhost"
	laneGlobex = "globex.localhost"
	laneShared = rig.Host
)

// withLanes is a gateway of three lanes, one of them by a pattern, each with a
// certificate of its own; change has the last word.
func withLanes(t *testing.T, change func(*config.Config)) *rig.Rig {
	t.Helper()
	dir := t.TempDir()
	return rig.Start(t, func(o *rig.Options) {
		o.Certificates = func(r *rig.Rig) {
			r.WritePair(t, dir, laneAcme, laneAcme)
			r.WritePair(t, dir, "_wildcard.localhost", "*.localhost", laneGlobex) // OpenSSL takes no wildcard of a single label
			r.WritePair(t, dir, laneShared, laneShared)
		}
		o.Config = func(c *config.Config) {
			c.TLSDir, c.TLSCert, c.TLSKey = dir, "", ""
			c.Lanes = []string{"*.localhost", laneShared}
			c.Advertised = config.Addr{Port: c.Advertised.Port, SNI: true}
			c.ForwardSNIHost, c.Group.JoinDelay = true, 0
			if change != nil {
				change(c)
			}
		}
	})
}

// B5: one process, three lanes with a certificate each, two tenants. A client of
// a lane is told that lane's name alone, and so never dials another.
func TestLanes(t *testing.T) {
	r := withLanes(t, nil)
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for i, lane := range []struct{ key, dialled, name string }{
		{rig.Acme, "ACME.localhost", laneAcme},
		{rig.Globex, laneGlobex, laneGlobex},
		{rig.Acme, laneShared, laneShared},
		{rig.Globex, laneShared, laneShared},
	} {
		topic, own := fmt.Sprintf("lanes-%d", i), net.JoinHostPort(lane.name, port)
		ctx := rig.Context(t)
		producer, txnNames := r.KafkaAt(t, lane.key, lane.dialled, kgo.TransactionalID("lanes"), kgo.DefaultProduceTopic(topic))
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := producer.ProduceSync(ctx, kgo.StringRecord(lane.name)).FirstErr(); err != nil {
			t.Fatalf("%s: %v", lane.name, err)
		}
		if err := producer.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatalf("%s: %v", lane.name, err)
		}
		c, names := r.KafkaAt(t, lane.key, lane.dialled, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("g"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if got := c.PollFetches(ctx); got.Err() != nil || string(got.Records()[0].Value) != lane.name {
			t.Fatalf("%s: reads %v, %v", lane.name, got.Records(), got.Err())
		}
		if err := c.CommitUncommittedOffsets(ctx); err != nil {
			t.Fatalf("%s: %v", lane.name, err)
		}
		want := []string{own}
		if lane.dialled != lane.name {
			want = []string{net.JoinHostPort(lane.dialled, port), own} // the bootstrap address as it was given
		}
		for _, got := range [][]string{names.Dialled(), txnNames.Dialled()} {
			if !slices.Equal(got, want) {
				t.Errorf("a client of %s dials %q, want %q", lane.name, got, want)
			}
		}
		wantToldOnly(t, r, lane.key, lane.dialled, own)
	}
	// Tenants stay apart: the name of another's cluster is refused by the cell.
	w := r.DialAs(t, laneGlobex)
	if resp := w.Authenticate(rig.Acme, r.Key(rig.Acme)); resp.ErrorCode == 0 {
		t.Error("a key of one cluster logs in under the name of another")
	}
}

// wantToldOnly asks, at every version, each API whose answer can name a broker.
func wantToldOnly(t *testing.T, r *rig.Rig, key, dialled, own string) {
	t.Helper()
	w := r.DialAs(t, dialled)
	if resp := w.Authenticate(key, r.Key(key)); resp.ErrorCode != 0 {
		t.Fatalf("login as %s: code %d", dialled, resp.ErrorCode)
	}
	asked := 0
	for _, row := range api.Table() {
		req := kmsg.RequestForKey(row.Key)
		if len(addressesOf(reflect.ValueOf(req.ResponseKind()), true)) == 0 {
			continue
		}
		asked++
		for version := row.Min; version <= row.Max; version++ {
			req := namingBrokers(t, row.Key)
			req.SetVersion(version)
			resp := w.Ask(req)
			got := addressesOf(reflect.ValueOf(resp), false)
			if len(got) == 0 && row.Key != 0 && row.Key != 1 { // those name nodes only where the leader is another
				t.Errorf("%s %d names no broker", kmsg.NameForKey(row.Key), version)
			}
			for _, address := range got {
				if address != own {
					t.Errorf("%s %d under the name %s tells %s, want %s", kmsg.NameForKey(row.Key), version, dialled, address, own)
				}
			}
		}
	}
	if asked != 5 {
		t.Errorf("%d APIs can name a broker; this test knows 5: Produce, Fetch, Metadata, FindCoordinator, DescribeCluster", asked)
	}
}

// namingBrokers is a request whose answer names a broker.
func namingBrokers(t *testing.T, key int16) kmsg.Request {
	switch req := kmsg.RequestForKey(key).(type) {
	case *kmsg.ProduceRequest:
		req.Acks = 1
		return req
	case *kmsg.FetchRequest:
		req.SessionEpoch, req.MaxBytes = -1, 1<<20
		return req
	case *kmsg.MetadataRequest:
		return req
	case *kmsg.DescribeClusterRequest:
		req.EndpointType = 1
		return req
	case *kmsg.FindCoordinatorRequest:
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g", "h"}
		return req
	default:
		t.Fatalf("%s can name a broker, and this test knows nothing of it", kmsg.NameForKey(key))
		return nil
	}
}

// addressesOf finds what a client could dial: every struct with a host and a
// port, of a value or, with kinds, of its type.
func addressesOf(v reflect.Value, kinds bool) (out []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			if !kinds {
				return nil
			}
			v = reflect.New(v.Type().Elem())
		}
		return addressesOf(v.Elem(), kinds)
	case reflect.Slice:
		if kinds {
			return addressesOf(reflect.New(v.Type().Elem()).Elem(), kinds)
		}
		for i := range v.Len() {
			out = append(out, addressesOf(v.Index(i), kinds)...)
		}
	case reflect.Struct:
		if host, port := v.FieldByName("Host"), v.FieldByName("Port"); host.IsValid() && port.IsValid() && (kinds || host.String() != "") {
			out = append(out, net.JoinHostPort(host.String(), strconv.FormatInt(port.Int(), 10)))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out = append(out, addressesOf(v.Field(i), kinds)...)
			}
		}
	}
	return out
}

// Section H of the field cases: what clients name that dial no lane. Refused by
// the alert unrecognized_name, or served under the default lane, and counted.
func TestHellosWithoutALane(t *testing.T) {
	strict := withLanes(t, nil)
	lenient := withLanes(t, func(c *config.Config) { c.DefaultLane = laneShared })
	long := strings.Repeat(strings.Repeat("a", 63)+".", 4)[:255]
	hellos := []struct{ name, kind string }{
		{"", "none"},
		{"127.0.0.1", "address"},
		{"[::1]", "address"},
		{"unknown.example", "unknown"},
		{"a.acme.localhost", "unknown"},
		{"my_cluster.localhost", "invalid"},
		{"bücher.localhost", "invalid"},
		{long, "invalid"},
	}
	for _, hello := range hellos {
		if alert := strict.Alert(t, hello.name); alert != unrecognizedName {
			t.Errorf("%.40q: alert %d, want unrecognized_name", hello.name, alert)
		}
	}
	wireCounted(t, strict, wire.UnknownName, int64(len(hellos)))
	// crypto/tls refuses a trailing dot before anyone is asked, default lane or not
	// (RFC 6066 §3).
	for _, r := range []*rig.Rig{strict, lenient} {
		if alert := r.Alert(t, laneAcme+"."); alert <= 0 {
			t.Errorf("a trailing dot: alert %d, want one", alert)
		}
	}
	wireCounted(t, strict, wire.UnknownName, int64(len(hellos))+1)
	wireCounted(t, lenient, wire.UnknownName, 1)
	_, port, _ := net.SplitHostPort(lenient.Addr)
	for _, hello := range hellos {
		name := hello.name
		if hello.kind == "address" {
			name += " " // or crypto/tls would send none; blanks are no part of a name
		}
		w := lenient.DialAs(t, name)
		if resp := w.Authenticate(rig.Acme, lenient.Key(rig.Acme)); resp.ErrorCode != 0 {
			t.Fatalf("%.40q: login code %d", hello.name, resp.ErrorCode)
		}
		got := addressesOf(reflect.ValueOf(w.Ask(namingBrokers(t, 3))), false)
		if want := []string{net.JoinHostPort(laneShared, port)}; !slices.Equal(got, want) {
			t.Errorf("%.40q is told %q, want %q", hello.name, got, want)
		}
	}
	w := lenient.DialAs(t, "ACME.LOCALHOST")
	w.Authenticate(rig.Acme, lenient.Key(rig.Acme))

	for _, c := range []struct {
		r      *rig.Rig
		answer string
		known  string
		dots   int // invalid ones more
	}{{strict, "refused", "0", 1}, {lenient, "default", "1", 0}} {
		_, body := startSide(t, c.r, "").get(t, "/metrics")
		want := map[string]int{"none": 1, "address": 2, "unknown": 2, "invalid": 3 + c.dots}
		for kind, n := range want {
			line := fmt.Sprintf("\nqueen_edge_tls_hellos_total{answer=%q,name=%q} %d\n", c.answer, kind, n)
			if !strings.Contains(body, line) {
				t.Errorf("no line %q", line)
			}
		}
		if line := "\nqueen_edge_tls_hellos_total{answer=\"served\",name=\"known\"} " + c.known + "\n"; !strings.Contains(body, line) {
			t.Errorf("no line %q", line)
		}
	}
}

// Section H: as many hellos that name no lane leave neither goroutine nor
// descriptor behind. 1,000, or 10,000 with QE_FULL=1.
func TestUnknownNamesLeakNothing(t *testing.T) {
	n := 1000
	if os.Getenv("QE_FULL") == "1" {
		n = 10_000
	}
	r := withLanes(t, nil)
	r.Alert(t, "warm.example") // what is made once
	before := wireHolds()
	for i := range n {
		if alert := r.Alert(t, fmt.Sprintf("unknown-%d.example", i)); alert != unrecognizedName {
			t.Fatalf("hello %d: alert %d, want unrecognized_name", i, alert)
		}
	}
	wireBack(t, r, before)
	wireCounted(t, r, wire.UnknownName, int64(n)+1)
	if got := r.Gateway.Connections(); got != 0 {
		t.Errorf("%d connections are open", got)
	}
}

// Without lanes nothing is refused for its name, and one address is advertised.
func TestWithoutLanesEveryNameIsServed(t *testing.T) {
	r := rig.Start(t)
	for _, name := range []string{"", "unknown.example", "127.0.0.1 ", "my_cluster.localhost"} {
		w := r.DialAs(t, name)
		if resp := w.Authenticate(rig.Acme, r.Key(rig.Acme)); resp.ErrorCode != 0 {
			t.Fatalf("%q: login code %d", name, resp.ErrorCode)
		}
		if got := addressesOf(reflect.ValueOf(w.Ask(namingBrokers(t, 3))), false); !slices.Equal(got, []string{r.Addr}) {
			t.Errorf("%q is told %q, want %q", name, got, r.Addr)
		}
	}
}

// A session that goes on is counted, and goes on under the lane of its new
// hello.
func TestResumedSessionsAreCounted(t *testing.T) {
	r := withLanes(t, nil)
	cfg := r.TLS()
	cfg.ServerName, cfg.ClientSessionCache = laneAcme, tls.NewLRUClientSessionCache(4)
	for _, want := range []bool{false, true} {
		w := r.DialTLS(t, cfg)
		if got := w.Conn.(*tls.Conn).ConnectionState().DidResume; got != want {
			t.Errorf("resumed: %v, want %v", got, want)
		}
		if resp := w.Authenticate(rig.Acme, r.Key(rig.Acme)); resp.ErrorCode != 0 {
			t.Fatalf("login code %d", resp.ErrorCode)
		}
	}
	_, body := startSide(t, r, "").get(t, "/metrics")
	for _, session := range []string{"new", "resumed"} {
		if line := fmt.Sprintf("\nqueen_edge_tls_handshakes_total{session=%q} 1\n", session); !strings.Contains(body, line) {
			t.Errorf("no line %q", line)
		}
	}
}
