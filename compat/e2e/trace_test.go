package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// receiver is an OTLP receiver in this process.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex // guards the fields below
	spans []*otlp.Span
	bytes bytes.Buffer // all that was received, unpacked
	paths []string
}

func startReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		unpacked, err := gzip.NewReader(req.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(unpacked)
		var got collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &got) != nil {
			t.Errorf("what was received is no request: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bytes.Write(body)
		r.paths = append(r.paths, req.Method+" "+req.URL.Path)
		for name := range req.Header {
			r.bytes.WriteString(name + req.Header.Get(name))
		}
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// named are the spans of a name.
func (r *receiver) named(name string) []*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.spans), func(s *otlp.Span) bool { return s.Name != name })
}

func attribute(s *otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func tracedTo(url string, ratio float64) func(*rig.Options) {
	return func(o *rig.Options) {
		o.Config = func(cfg *config.Config) { cfg.OTLPEndpoint, cfg.OTLPRatio, cfg.Group.JoinDelay = url, ratio, 0 }
	}
}

// wantCalls: the calls of a route have been made within a request.
func wantCalls(t *testing.T, r *receiver, request, route string) {
	t.Helper()
	requests, calls := r.named(request), r.named("cell "+route)
	for _, call := range calls {
		for _, parent := range requests {
			if bytes.Equal(call.ParentSpanId, parent.SpanId) && bytes.Equal(call.TraceId, parent.TraceId) {
				if call.StartTimeUnixNano < parent.StartTimeUnixNano || call.EndTimeUnixNano > parent.EndTimeUnixNano {
					t.Errorf("a call of %s lies outside of its %s", route, request)
				}
				return
			}
		}
	}
	t.Errorf("of %d calls of %s none is below one of %d spans of %s", len(calls), route, len(requests), request)
}

// Each request of a real client is a span that says whose it was and how it ended,
// with the calls it made below it, those of a long poll included. Neither tokens
// nor records nor names that clients chose get there.
func TestTraces(t *testing.T) {
	to := startReceiver(t, http.StatusOK)
	r := rig.Start(t, tracedTo(to.URL, 1))
	c := r.Kafka(t, rig.Acme, kgo.ConsumeTopics("secret-topic"), kgo.ConsumerGroup("secret-group"), kgo.ClientID("secret-client"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := c.ProduceSync(rig.Context(t), &kgo.Record{Topic: "secret-topic", Key: []byte("secret-key"), Value: []byte("secret-value")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if got := c.PollFetches(rig.Context(t)).NumRecords(); got != 1 {
		t.Fatalf("%d records", got)
	}
	if err := c.CommitUncommittedOffsets(rig.Context(t)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w := r.Dial(t)
	if resp := w.Authenticate("secret-user", "secret-password"); resp.ErrorCode == 0 {
		t.Error("logged in")
	}
	w.Close() //nolint:errcheck // it is over
	r.StopGateway(t)

	for request, route := range map[string]string{
		"Produce": "push", "Fetch": "fetch", "OffsetCommit": "kv", "Metadata": "configure", "SASLAuthenticate": "list_queues",
	} {
		wantCalls(t, to, request, route)
	}
	acme := ""
	for _, cl := range r.Cell.Control().Clusters() {
		if cl.Slug == "acme" {
			acme = cl.ID.String()
		}
	}
	for _, s := range to.named("Produce") {
		if attribute(s, "queen.tenant") != acme || attribute(s, "queen.outcome") != "ok" || attribute(s, "kafka.api") != "Produce" || len(s.ParentSpanId) != 0 {
			t.Errorf("%v", s)
		}
	}
	refused := slices.DeleteFunc(to.named("SASLAuthenticate"), func(s *otlp.Span) bool { return attribute(s, "queen.outcome") != "refused" })
	if len(refused) != 1 || attribute(refused[0], "queen.tenant") != "" {
		t.Errorf("a refused login: %v", refused)
	}
	if to.paths[0] != "POST /v1/traces" {
		t.Errorf("sent to %s", to.paths[0])
	}
	for _, secret := range []string{"secret", r.Key(rig.Acme), rig.Acme + "\x00"} {
		if bytes.Contains(to.bytes.Bytes(), []byte(secret)) {
			t.Errorf("the receiver was told %q", secret)
		}
	}
}

// What is not sampled is not told, and a receiver that refuses, or is not there,
// costs clients nothing and is counted.
func TestTracesThatAreNotTaken(t *testing.T) {
	none := startReceiver(t, http.StatusOK)
	r := rig.Start(t, tracedTo(none.URL, 0))
	r.Login(t, rig.Acme).Ask(kmsg.NewPtrDescribeClusterRequest())
	r.StopGateway(t)
	if len(none.spans) != 0 {
		t.Errorf("%d spans of no requests", len(none.spans))
	}
	refusing := startReceiver(t, http.StatusServiceUnavailable)
	r = rig.Start(t, tracedTo(refusing.URL, 1))
	s := startSide(t, r, "")
	w := r.Login(t, rig.Acme)
	rig.Eventually(t, "spans that were refused", func() bool {
		w.Ask(kmsg.NewPtrDescribeClusterRequest())
		return series(t, s.metrics(t), `queen_edge_trace_spans_total{result="failed"}`) > 0
	})
	wantSeries(t, s.metrics(t), map[string]float64{
		`queen_edge_trace_spans_total{result="exported"}`:                    0,
		`queen_edge_requests_total{api="DescribeCluster",outcome="refused"}`: 0,
	})
}

// BenchmarkTraced: what a small request costs with traces off, sampled as by
// default, and all of them.
func BenchmarkTraced(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(sink.Close)
	for name, opt := range map[string]func(*rig.Options){
		"off": func(*rig.Options) {}, "1%": tracedTo(sink.URL, 0.01), "all": tracedTo(sink.URL, 1),
	} {
		b.Run(name, func(b *testing.B) {
			r := rig.Start(b, opt)
			w := r.Login(b, rig.Acme)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
					b.Fatal(err)
				}
				w.Ask(kmsg.NewPtrDescribeClusterRequest())
			}
		})
	}
}
