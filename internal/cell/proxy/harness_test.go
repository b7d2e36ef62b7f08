package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a cell behind real HTTP: two clusters, a broker on disk, and a log
// whose text can be searched.
type rig struct {
	t       testing.TB
	dir     string
	control *control.Store
	broker  *broker.Broker
	proxy   *Proxy
	server  *httptest.Server
	client  *http.Client
	log     *bytes.Buffer
}

// rigOption changes the configuration before the proxy is made.
type rigOption func(*Config)

// dedicated is a listener on which every host must name its cluster.
func dedicated(cfg *Config) { cfg.SharedHosts = nil }

// newRig opens a cell with the clusters acme and rival, on which 127.0.0.1 is
// a shared name.
func newRig(t testing.TB, options ...rigOption) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), client: &http.Client{Transport: &http.Transport{}}, log: new(bytes.Buffer)}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		zapcore.Lock(zapcore.AddSync(r.log)), zap.DebugLevel)
	logger := zap.New(core)
	var err error
	store := broker.Config{Dir: r.dir, Logger: logger}
	if _, test := t.(*testing.T); test {
		store.SegmentBytes = 1 << 20 // files are filled with zeroes first: that is most of a short test
	}
	if r.broker, err = broker.Open(store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.broker.Close(); err != nil {
			t.Error(err)
		}
	})
	if r.control, err = control.Open(r.dir, nil); err != nil {
		t.Fatal(err)
	}
	for _, slug := range []string{"acme", "rival"} {
		if _, err := r.control.CreateCluster(control.NewCluster{Slug: slug}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Control: r.control, Broker: r.broker, Logger: logger, SharedHosts: []string{"127.0.0.1"}}
	for _, option := range options {
		option(&cfg)
	}
	if r.proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.server = httptest.NewServer(r.proxy)
	t.Cleanup(func() {
		r.proxy.Drain()
		r.client.CloseIdleConnections()
		r.server.Close()
	})
	return r
}

// key makes a key of a cluster with the named scopes.
func (r *rig) key(slug string, scopes ...string) string {
	r.t.Helper()
	s, err := control.ParseScopes(scopes...)
	if err != nil {
		r.t.Fatal(err)
	}
	text, _, err := r.control.CreateKey(control.NewKey{Cluster: slug, Scopes: s})
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// full makes a key with every scope.
func (r *rig) full(slug string) string { return r.key(slug, "produce", "consume", "admin", "read") }

// override replaces a cluster's limit_overrides by a JSON object.
func (r *rig) override(slug, object string) {
	r.t.Helper()
	var o control.Overrides
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		r.t.Fatal(err)
	}
	if err := r.control.SetOverrides(slug, o); err != nil {
		r.t.Fatal(err)
	}
}

// request is one call to the rig's server.
type request struct {
	method string // empty: GET, or POST when there is a body
	path   string
	host   string // empty: the server's address
	auth   string // whole Authorization value
	body   string
	header map[string]string
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request over HTTP.
func (r *rig) do(q request) reply {
	r.t.Helper()
	got, err := r.try(context.Background(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// try is do for callers that expect an error, or run beside the test.
func (r *rig) try(ctx context.Context, q request) (reply, error) {
	if q.method == "" {
		q.method = http.MethodGet
		if q.body != "" {
			q.method = http.MethodPost
		}
	}
	req, err := http.NewRequestWithContext(ctx, q.method, r.server.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		return reply{}, err
	}
	req.Host = q.host
	req.Header.Set("Content-Type", "application/json")
	if q.auth != "" {
		req.Header.Set("Authorization", q.auth)
	}
	for name, value := range q.header {
		req.Header.Set(name, value)
	}
	return r.roundTrip(req)
}

// send is for requests that do cannot make.
func (r *rig) send(req *http.Request) reply {
	r.t.Helper()
	got, err := r.roundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *rig) roundTrip(req *http.Request) (reply, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body)}, err
}

// discard is a response nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header          { return d.header }
func (discard) WriteHeader(int)                {}
func (discard) Write(part []byte) (int, error) { return len(part), nil }

// post sends a body with a key.
func (r *rig) post(key, path, body string) reply {
	r.t.Helper()
	return r.do(request{method: http.MethodPost, path: path, auth: "Bearer " + key, body: body})
}

// get reads a path with a key.
func (r *rig) get(key, path string) reply {
	r.t.Helper()
	return r.do(request{path: path, auth: "Bearer " + key})
}

// mustPost is post for what has to work.
func (r *rig) mustPost(key, path, body string) string {
	r.t.Helper()
	got := r.post(key, path, body)
	if got.status/100 != 2 {
		r.t.Fatalf("POST %s %.200s: %d %s", path, body, got.status, got.body)
	}
	return got.body
}

// isRefusal checks status, code and text of an error body, its media type, and
// that Retry-After is there exactly where the contract has it.
func isRefusal(t *testing.T, got reply, status int, code, text string) {
	t.Helper()
	var body map[string]string
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatalf("status %d with a body that is no error object: %.300s", got.status, got.body)
	}
	if got.status != status || body["code"] != code || body["error"] != text {
		t.Errorf("got %d %s %q, want %d %s %q", got.status, body["code"], body["error"], status, code, text)
	}
	if len(body) != 2 {
		t.Errorf("the body has other members than error and code: %s", got.body)
	}
	if got.header.Get("Content-Type") != "application/json" {
		t.Errorf("Content-Type %q", got.header.Get("Content-Type"))
	}
	retry := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if (got.header.Get("Retry-After") != "") != retry {
		t.Errorf("status %d with Retry-After %q", status, got.header.Get("Retry-After"))
	}
}

// decoded reads a JSON answer.
func decoded[T any](t testing.TB, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return v
}
