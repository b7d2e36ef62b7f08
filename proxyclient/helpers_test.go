package proxyclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/tenancy"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testBearer = "qk_test_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// heard is what a cell saw of one request.
type heard struct {
	method, uri, host, body string
	header                  http.Header
}

// fakeCell answers every request with one scripted answer and remembers it.
type fakeCell struct {
	*httptest.Server
	mu    sync.Mutex // guards heard
	heard []heard
}

func newFakeCell(t testing.TB, answer http.HandlerFunc) *fakeCell {
	t.Helper()
	f := &fakeCell{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.heard = append(f.heard, heard{r.Method, r.RequestURI, r.Host, string(body), r.Header})
		f.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeCell) requests() []heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]heard(nil), f.heard...)
}

func (f *fakeCell) last(t *testing.T) heard {
	t.Helper()
	all := f.requests()
	if len(all) == 0 {
		t.Fatal("the cell heard nothing")
	}
	return all[len(all)-1]
}

// says answers 200 (201 for a push) with a body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/push") {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, body)
	}
}

func refuses(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func newTestClient(t testing.TB, url string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url, CallTimeout: time.Minute, ConnectTimeout: time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// talk is a client and the cell it talks to.
func talk(t testing.TB, answer http.HandlerFunc) (*Client, *fakeCell) {
	t.Helper()
	f := newFakeCell(t, answer)
	return newTestClient(t, f.URL), f
}

// anyone proves every claim: the only way to a Scope is through a Verifier.
type anyone struct{}

func (anyone) ListQueuesAs(context.Context, tenancy.Claim) ([]Queue, error) { return nil, nil }

func (anyone) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: "cluster-of-" + c.Host()}, nil
}

func scopeOf(t testing.TB, bearer, host string) tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[[]Queue](anyone{}, tenancy.VerifierConfig{})
	proof, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(bearer), host))
	if err != nil {
		t.Fatal(err)
	}
	return proof.Scope
}

func testScope(t testing.TB) tenancy.Scope { return scopeOf(t, testBearer, "") }

func testClaim() tenancy.Claim { return tenancy.NewClaim(tenancy.NewSecret(testBearer), "") }

func mustError(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	e, ok := AsError(err)
	if !ok {
		t.Fatalf("got %v, want an *Error of kind %v", err, kind)
	}
	if e.Kind != kind {
		t.Fatalf("got kind %v (%v), want %v", e.Kind, err, kind)
	}
	if strings.Contains(e.Error(), testBearer) || strings.Contains(e.WireText(), testBearer) || strings.Contains(e.Text, testBearer) {
		t.Fatalf("the error shows the bearer: %v", e)
	}
	return e
}

func record(key, value string) *batch.Record {
	return &batch.Record{Timestamp: -1, Key: []byte(key), Value: []byte(value)}
}
