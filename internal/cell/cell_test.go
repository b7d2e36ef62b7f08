package cell

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Cell {
	t.Helper()
	c, err := Open(Config{Dir: dir, SharedHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// served is a cell on a port of its own.
type served struct {
	cell   *Cell
	url    string
	client *http.Client
	stop   context.CancelFunc
	ended  chan error
}

func serve(t *testing.T, c *Cell) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &served{
		cell: c, url: "http://" + ln.Addr().String(), stop: stop, ended: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{}},
	}
	go s.run(ctx, ln)
	return s
}

func (s *served) run(ctx context.Context, ln net.Listener) { s.ended <- s.cell.Serve(ctx, ln) }

// end stops serving and closes the cell.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	s.client.CloseIdleConnections()
	if err := s.cell.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// call sends one request and returns status and body.
func (s *served) call(method, path, key, body string) (int, string, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), errors.Join(err, resp.Body.Close())
}

func (s *served) mustCall(t *testing.T, method, path, key, body string) string {
	t.Helper()
	status, text, err := s.call(method, path, key, body)
	if err != nil || status/100 != 2 {
		t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return text
}

// TestARestartKeepsEverything: keys, queues and records are there again, in
// the same cluster.
func TestARestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, open(t, dir))
	key, created, err := s.cell.Control().Bootstrap("acme")
	if err != nil || !created {
		t.Fatal(created, err)
	}
	s.mustCall(t, "POST", "/api/v1/push", key, `{"items":[{"queue":"q","partition":"0","payload":{"kept":true}}]}`)
	me := s.mustCall(t, "GET", "/auth/me", key, "")
	list := s.mustCall(t, "GET", "/api/v1/resources/queues?stats=lanes", key, "")
	s.end(t)

	s = serve(t, open(t, dir))
	defer s.end(t)
	if again := s.mustCall(t, "GET", "/auth/me", key, ""); again != me {
		t.Errorf("the identity was %s, is %s", me, again)
	}
	if again := s.mustCall(t, "GET", "/api/v1/resources/queues?stats=lanes", key, ""); again != list {
		t.Errorf("the listing was %s, is %s", list, again)
	}
	got := s.mustCall(t, "POST", "/api/v1/fetch", key, `{"entries":[{"queue":"q","partition":"0","offset":0}]}`)
	if !strings.Contains(got, `"payload":{"kept":true}`) {
		t.Errorf("fetched %s", got)
	}
	if n := s.cell.Requests().Of(proxy.RouteFetch); n != 1 {
		t.Errorf("%d fetches counted", n)
	}
}

func TestOneProcessPerFolder(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if second, err := Open(Config{Dir: dir}); err == nil {
		t.Error("a folder was opened twice")
		_ = second.Close()
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no folder": {},
		"body cap":  {Dir: t.TempDir(), MaxBodyBytes: -1},
	} {
		if c, err := Open(cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = c.Close()
		}
	}
}

// TestServeEndsWithPollsParked: a long poll does not hold the end back, and
// its caller gets an answer.
func TestServeEndsWithPollsParked(t *testing.T) {
	s := serve(t, open(t, t.TempDir()))
	key, _, err := s.cell.Control().Bootstrap("acme")
	if err != nil {
		t.Fatal(err)
	}
	s.mustCall(t, "POST", "/api/v1/configure", key, `{"queue":"q"}`)
	polled := make(chan string, 1)
	go s.poll(key, polled)
	// Counted is not yet parked: the drain has to find it either way.
	for s.cell.Requests().Of(proxy.RouteFetch) == 0 {
		s.mustCall(t, "GET", "/healthz", key, "")
	}
	s.end(t)
	if got := <-polled; got != `200 {"entries":[{"queue":"q","partition":"0","records":[],"highWatermark":0,"logStartOffset":0}]}` {
		t.Errorf("the poll got %s", got)
	}
}

func (s *served) poll(key string, polled chan<- string) {
	status, text, err := s.call("POST", "/api/v1/fetch", key, `{"entries":[{"queue":"q","partition":"0","offset":0}],"maxWaitMs":30000}`)
	if err != nil {
		polled <- err.Error()
		return
	}
	polled <- strconv.Itoa(status) + " " + text
}

func TestServeReportsADeadListener(t *testing.T) {
	c := open(t, t.TempDir())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Serve(t.Context(), ln); err == nil {
		t.Error("no error")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDedicatedHosts(t *testing.T) {
	c, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, c)
	defer s.end(t)
	key, _, err := c.Control().Bootstrap("acme")
	if err != nil {
		t.Fatal(err)
	}
	if status, text, err := s.call("GET", "/auth/me", key, ""); err != nil || status != http.StatusMisdirectedRequest {
		t.Errorf("%d %s, %v", status, text, err)
	}
	if got := c.Control().Keys("acme"); len(got) != 1 || got[0].Scopes != control.AllScopes() {
		t.Errorf("keys %+v", got)
	}
}
