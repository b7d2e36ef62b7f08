package proxyclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestNewChecksTheURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "cell:6711", "ftp://cell", "http://", "http:///x", "http://u:p@cell", "http://cell?x=1", "http://cell#f", "http://cell:x", "http://a b", "//cell",
	} {
		if _, err := New(Config{URL: bad}); err == nil {
			t.Errorf("New accepted %q", bad)
		}
	}
	c, err := New(Config{URL: "http://cell:6711/base///"})
	if err != nil || c.base.String() != "http://cell:6711/base" {
		t.Fatalf("base %v, %v", c.base, err)
	}
	if c.timeout != DefaultCallTimeout || c.transport.MaxIdleConnsPerHost != DefaultMaxIdlePerHost {
		t.Fatal("defaults not taken")
	}
}

// §2.1, to the letter.
func TestHeadersOfEveryCall(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"queues":[]}`))
	if _, err := c.ListQueues(t.Context(), testScope(t)); err != nil {
		t.Fatal(err)
	}
	got := cell.last(t)
	want := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + testBearer}}
	for name := range got.header {
		if got.header.Get(name) != want.Get(name) {
			t.Errorf("header %s: %q", name, got.header.Get(name))
		}
	}
	if len(got.header) != len(want) {
		t.Errorf("headers %v", got.header)
	}
	if got.method != "GET" || got.uri != "/api/v1/resources/queues?stats=lanes" || got.body != "" {
		t.Errorf("got %+v", got)
	}
	if got.host != strings.TrimPrefix(cell.URL, "http://") {
		t.Errorf("Host %q", got.host)
	}
}

func TestNoBearerNoHeader(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"queues":[]}`))
	if _, err := c.ListQueuesAs(t.Context(), tenancy.Claim{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := cell.last(t).header["Authorization"]; ok {
		t.Error("Authorization sent for an empty bearer")
	}
}

func TestBasePathIsKept(t *testing.T) {
	t.Parallel()
	cell := newFakeCell(t, says(`{"deleted":true}`))
	c := newTestClient(t, cell.URL+"/a%2Fb/")
	if _, err := c.DeleteQueue(t.Context(), testScope(t), "x y"); err != nil {
		t.Fatal(err)
	}
	if got := cell.last(t).uri; got != "/a%2Fb/api/v1/resources/queues/x%20y" {
		t.Error(got)
	}
	_, _ = c.KV(t.Context(), testScope(t), []KVOp{{}})
	if got := cell.last(t).uri; got != "/a%2Fb/api/v1/kv" {
		t.Error(got)
	}
}

// Two tenants share the pool's connections and nothing else.
func TestTwoScopesOverOnePool(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	cell := newFakeCell(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"queues":[{"name":"of `+r.Host+` `+r.Header.Get("Authorization")+`"}]}`)
	})
	c := newTestClient(t, cell.URL, func(cfg *Config) {
		cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	})
	a, b := scopeOf(t, "token-a", "a.example.cloud"), scopeOf(t, "token-b", "b.example.cloud")
	for range 3 {
		for want, scope := range map[string]tenancy.Scope{"of a.example.cloud Bearer token-a": a, "of b.example.cloud Bearer token-b": b} {
			queues, err := c.ListQueues(t.Context(), scope)
			if err != nil || len(queues) != 1 || queues[0].Name != want {
				t.Fatalf("%v, %v, want %q", queues, err, want)
			}
		}
	}
	if dials.Load() != 1 {
		t.Errorf("%d connections for serial calls", dials.Load())
	}
	if strings.Contains(c.base.Host, "example") {
		t.Error("the dialled address follows the Host")
	}
}

func TestZeroScopePanics(t *testing.T) {
	t.Parallel()
	c, _ := talk(t, says(`{}`))
	defer func() {
		if recover() == nil {
			t.Error("a zero Scope was used")
		}
	}()
	var none tenancy.Scope
	_, _ = c.ListQueues(t.Context(), none)
}

func TestStatusFailure(t *testing.T) {
	t.Parallel()
	forms := []struct {
		header string
		want   time.Duration
	}{
		{"7", 7 * time.Second},
		{" 2 ", 2 * time.Second},
		{"0", 0},
		{"", -1},
		{"-3", -1},
		{"+3", -1},
		{"1.5", -1},
		{"soon", -1},
		{"Wed, 21 Oct 2026 07:28:00 GMT", -1},
		{"99999999999999999999", -1},
	}
	for _, f := range forms {
		c, _ := talk(t, refuses(429, `{"error":"request rate limit exceeded","code":"rate_limited"}`, "Retry-After", f.header))
		_, err := c.ListQueues(t.Context(), testScope(t))
		e := mustError(t, err, KindStatus)
		if e.Status != 429 || e.RetryAfter != f.want || e.Code != "rate_limited" || e.Route != RouteList {
			t.Errorf("%q: %+v", f.header, e)
		}
	}
}

func TestCodesOfTheEnvelopes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":"cluster suspended","code":"cluster_suspended"}`: "cluster_suspended",
		`{"error":"kv_quota_exceeded","reason":"rows"}`:            "kv_quota_exceeded",
		`{"error":"key/cluster mismatch","code":"forbidden"}`:      "forbidden",
		`{"error":"Two words"}`:                                    "",
		`{"code":7,"error":"internal"}`:                            "internal",
		`{"code":"` + strings.Repeat("x", 65) + `"}`:               "",
		`{"code":"evil\u001b[31m"}`:                                "",
		`<html>502</html>`:                                         "",
		``:                                                         "",
		`[1]`:                                                      "",
		`{"code":"` + strings.Repeat("y", 64) + `","error":"other_words"}`: strings.Repeat("y", 64),
	} {
		if got := codeOf([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestRefusalTextIsBoundedAndScrubbed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"huge":        strings.Repeat("é", 100_000),
		"echo":        `{"error":"no such key ` + testBearer + `"}`,
		"echo at cut": strings.Repeat("x", maxErrorText-10) + testBearer + strings.Repeat("y", 1<<20),
		"echoes":      strings.Repeat(testBearer, 500),
		"not utf-8":   "\xff\xfe" + strings.Repeat("\x80", 8000),
	} {
		c, _ := talk(t, refuses(401, body))
		_, err := c.ListQueues(t.Context(), testScope(t))
		e := mustError(t, err, KindStatus)
		if len(e.Text) > maxErrorText || len([]rune(e.WireText())) > wireChars+1 {
			t.Errorf("%s: text of %d bytes, wire text of %d", name, len(e.Text), len(e.WireText()))
		}
		if strings.Contains(e.Text, testBearer[:20]) {
			t.Errorf("%s: a piece of the bearer: %s", name, e.Text)
		}
	}
}

func TestARedirectIsAStatus(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, refuses(307, "elsewhere", "Location", "/api/v1/other", "Set-Cookie", "a=b"))
	for range 2 {
		_, err := c.Configure(t.Context(), testScope(t), "q", nil)
		if e := mustError(t, err, KindStatus); e.Status != 307 {
			t.Errorf("%+v", e)
		}
	}
	if n := len(cell.requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	if cell.last(t).header.Get("Cookie") != "" {
		t.Error("a cookie was kept")
	}
}

// A server that takes the whole request and hangs up: a POST is out of our
// hands by then, and only its sender's owner may decide to send it again.
func TestAPostIsNeverReplayed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int32
	var serving sync.WaitGroup
	serve := func(conn net.Conn) {
		defer serving.Done()
		defer conn.Close()
		in := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if req.URL.Path != "/auth/me" { // that one makes the connection a reused one
				seen.Add(1)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	serving.Add(1)
	go func() {
		defer serving.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Add(1)
			go serve(conn)
		}
	}()
	c := newTestClient(t, "http://"+l.Addr().String())
	if _, err := c.Identify(t.Context(), testClaim()); err != nil {
		t.Fatal(err)
	}
	b := NewPushBody()
	b.Add("q", 0, record("k", "v"))
	_, err = c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	mustError(t, err, KindTransport)
	if seen.Load() != 1 {
		t.Errorf("the push was seen %d times", seen.Load())
	}
	l.Close()
	c.Close()
	serving.Wait()
}

func TestTransportFailures(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		c := newTestClient(t, "http://127.0.0.1:1")
		_, err := c.ListQueues(t.Context(), testScope(t))
		e := mustError(t, err, KindTransport)
		if e.Timeout() || e.WireText() != "the cell could not be reached" || e.Status != 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		cell := newFakeCell(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := newTestClient(t, cell.URL, func(cfg *Config) { cfg.CallTimeout = 50 * time.Millisecond })
		_, err := c.ListQueues(t.Context(), testScope(t))
		e := mustError(t, err, KindTransport)
		if !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) || e.WireText() != "the cell did not answer in time" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an answer that stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTestClient(t, "http://cell", func(cfg *Config) {
				cfg.CallTimeout = time.Second
				cfg.DialContext = func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go stopInAnswer(there)
					return here, nil
				}
			})
			_, err := c.ListQueues(t.Context(), testScope(t))
			if e := mustError(t, err, KindTransport); !e.Timeout() || e.Status != 200 {
				t.Errorf("%+v", e)
			}
		})
	})
	t.Run("cut body", func(t *testing.T) {
		c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"queues":[]}`)
		})
		_, err := c.ListQueues(t.Context(), testScope(t))
		mustError(t, err, KindTransport)
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cell := newFakeCell(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		c := newTestClient(t, cell.URL)
		_, err := c.ListQueues(ctx, testScope(t))
		if e := mustError(t, err, KindTransport); !errors.Is(err, context.Canceled) || e.Timeout() {
			t.Errorf("%+v", e)
		}
	})
	t.Run("dial timeout", func(t *testing.T) {
		c := newTestClient(t, "http://cell", func(cfg *Config) {
			cfg.ConnectTimeout = 20 * time.Millisecond
			cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		_, err := c.ListQueues(t.Context(), testScope(t))
		if e := mustError(t, err, KindTransport); !e.Timeout() {
			t.Errorf("%+v", e)
		}
	})
}

// stopInAnswer is a cell that sends the beginning of an answer.
func stopInAnswer(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if _, err := http.ReadRequest(in); err != nil {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"queues\":[")
	_, _ = in.ReadByte() // until the client leaves
}

// A bearer that no header can carry is one no cell knows: not a failure of the
// connection, and nothing is sent.
func TestABearerThatIsNoHeaderIsRefusedHere(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"queues":[]}`))
	_, err := c.ListQueuesAs(t.Context(), tenancy.NewClaim(tenancy.NewSecret("pass\r\nX-Evil: 1"), ""))
	e := mustError(t, err, KindStatus)
	if e.Status != 401 || strings.Contains(err.Error(), "Evil") || len(cell.requests()) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestAnswersTooLarge(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(maxAnswer+1))
			w.WriteHeader(200)
		},
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				_, _ = io.WriteString(w, strings.Repeat(" ", 100_000))
				w.(http.Flusher).Flush()
			}
		},
	} {
		c, _ := talk(t, answer)
		_, err := c.Configure(t.Context(), testScope(t), "q", nil)
		if e := mustError(t, err, KindBody); !errors.Is(e, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	type seen struct {
		route  string
		status int
	}
	var calls []seen
	cell := newFakeCell(t, refuses(503, "later"))
	c := newTestClient(t, cell.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Observe(func(asked context.Context, d Done) {
		if d.Took <= 0 || d.Began.IsZero() || asked != ctx {
			t.Errorf("%s began at %v and took %v", d.Route, d.Began, d.Took)
		}
		calls = append(calls, seen{d.Route, d.Status})
	})
	_, _ = c.ListQueues(ctx, testScope(t))
	cell.Close()
	_, _ = c.KV(ctx, testScope(t), []KVOp{{}})
	if len(calls) != 2 || calls[0] != (seen{RouteList, 503}) || calls[1] != (seen{RouteKV, 0}) {
		t.Errorf("%v", calls)
	}
	if len(Routes()) != 10 {
		t.Errorf("%v", Routes())
	}
}

// A refusal that comes while the body is still being sent: the transport may
// not touch the body's bytes once Push has returned.
func TestTheBodyIsLetGo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // it takes the first bytes, refuses, and lets the rest wait in the socket
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, 1000))
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	c := newTestClient(t, "http://"+l.Addr().String())
	for range 2 {
		b := NewPushBody()
		for range 32 {
			b.Add("q", 0, record("", strings.Repeat("x", 1<<18)))
		}
		_, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
		if e := mustError(t, err, KindStatus); e.Status != 413 {
			t.Errorf("%+v", e)
		}
		for _, c := range b.chunks {
			clear(*c) // the race detector watches
		}
		b.Release()
	}
	l.Close()
	<-done
}

func TestWireText(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		e    Error
		want string
	}{
		{Error{Status: 403, Text: " {\"error\":\"no\"}\n", RetryAfter: -1}, `HTTP 403: {"error":"no"}`},
		{Error{Status: 429, Text: "slow", RetryAfter: 3 * time.Second}, "HTTP 429 (retry after 3000ms): slow"},
		{Error{Status: 500, Text: "a\x1b[31mred\x1b[0m\r\nb\x00\u0085c", RetryAfter: -1}, "HTTP 500: ared  b  c"},
		{Error{Status: 500, Text: "\x1b]0;title\x07x\x1b]8;;u\x1b\\y\x1bMz\x1b", RetryAfter: -1}, "HTTP 500: xyz "},
		{Error{Status: 500, Text: "\x1b[12", RetryAfter: -1}, "HTTP 500:  [12"},
		{Error{Status: 502, Text: strings.Repeat("é", 201), RetryAfter: -1}, "HTTP 502: " + strings.Repeat("é", 200) + "…"},
		{Error{Status: 502, Text: strings.Repeat("é", 200), RetryAfter: -1}, "HTTP 502: " + strings.Repeat("é", 200)},
	} {
		x.e.Kind = KindStatus
		if got := x.e.WireText(); got != x.want {
			t.Errorf("%q\nwant %q", got, x.want)
		}
	}
	if got := cutChars(strings.Repeat("é", 300), wireChars); len([]rune(got)) != 257 || !strings.HasSuffix(got, "…") {
		t.Error(got)
	}
}
