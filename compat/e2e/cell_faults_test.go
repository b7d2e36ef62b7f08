package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// cellFaults stands between gateway and cell, answers calls in the cell's place
// and changes what the cell says, as the test wants.
type cellFaults struct {
	mu     sync.Mutex // guards the fields below
	refuse func(path, body string) int
	change func(path, body string, answer map[string]any)
	calls  []string // path and body of all
}

func (f *cellFaults) set(fn func(f *cellFaults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f)
}

// took are the calls since it was asked last that have a text in path or body.
func (f *cellFaults) took(text string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if strings.Contains(c, text) {
			n++
		}
	}
	f.calls = nil
	return n
}

// at is Options.CellAt.
func (f *cellFaults) at(tb testing.TB) func(string) string {
	return func(cell string) string {
		target, err := url.Parse(cell)
		if err != nil {
			tb.Fatal(err)
		}
		forward := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
			},
			ErrorLog: log.New(io.Discard, "", 0),
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			f.serve(forward, w, req)
		}))
		tb.Cleanup(s.Close)
		return s.URL
	}
}

func (f *cellFaults) serve(forward http.Handler, w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	refuse, change := f.refuse, f.change
	f.calls = append(f.calls, req.URL.Path+" "+string(body))
	f.mu.Unlock()
	status := 0
	if refuse != nil {
		status = refuse(req.URL.Path, string(body))
	}
	switch {
	case status < 0:
		panic(http.ErrAbortHandler) // ends the connection without an answer
	case status > 0:
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":"test","detail":"as the test wants"}`))
	case change == nil:
		forward.ServeHTTP(w, req)
	default:
		rec := httptest.NewRecorder()
		forward.ServeHTTP(rec, req)
		answer := rec.Body.Bytes()
		var m map[string]any
		if rec.Code == http.StatusOK && json.Unmarshal(answer, &m) == nil {
			change(req.URL.Path, string(body), m)
			answer, _ = json.Marshal(m)
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(answer)
	}
}

// refusing answers calls of one path prefix, and of one text in the body, with a
// status; a negative one breaks the connection.
func refusing(prefix, text string, status int) func(string, string) int {
	return func(path, body string) int {
		if strings.HasPrefix(path, prefix) && strings.Contains(body, text) {
			return status
		}
		return 0
	}
}

// cellAsk asks the cell itself, as the tenant acme.
func cellAsk(t *testing.T, r *rig.Rig, method, path, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(rig.Context(t), method, r.CellURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key(rig.Acme))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, answer, err)
	}
	return answer
}
