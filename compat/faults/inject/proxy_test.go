package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cell counts what it is asked and answers.
type cell struct {
	*httptest.Server
	asked atomic.Int64
}

func startCell(t *testing.T) *cell {
	t.Helper()
	c := &cell{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.asked.Add(1)
		w.Header().Set("X-Host", r.Host)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "heard %s", body)
	}))
	t.Cleanup(c.Close)
	return c
}

func startProxy(t *testing.T, c *cell, plan Plan) (*Proxy, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	p, err := Start("127.0.0.1:0", c.URL, plan, &log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return p, &log
}

// ask posts to a path; an answer that does not arrive whole is an error.
func ask(p *Proxy, path string, patience time.Duration) (*http.Response, string, error) {
	client := http.Client{Timeout: patience}
	resp, err := client.Post(p.URL+path, "text/plain", strings.NewReader("hello"))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// What each fault does: to its caller, to the cell, and in the log.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		status int // 0: no answer, or not all of it
		done   bool
		asked  int64
	}{
		{Delay, 201, false, 1},
		{CutBefore, 0, false, 0},
		{CutAfter, 0, true, 1},
		{Truncate, 0, true, 1},
		{NoAnswer, 0, true, 1},
		{Swallow, 0, false, 0},
		{Throttle, 429, false, 0},
		{Refuse, 503, false, 0},
		{Late, 408, false, 0},
		{Watch, 201, true, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			cell := startCell(t)
			meanwhile := false
			p, log := startProxy(t, cell, Plan{Rules: []Rule{{
				Kind: c.kind, Route: "/push", Skip: 1, Count: 1, RetryAfterSeconds: 7, Meanwhile: func() { meanwhile = true },
			}}})
			patience := time.Minute
			if c.kind == NoAnswer || c.kind == Swallow {
				patience = 300 * time.Millisecond // the caller is who gives up
			}
			wantWhole(t, p, "/other")
			wantWhole(t, p, "/push")
			before := cell.asked.Load()
			resp, body, err := ask(p, "/push", patience)
			switch {
			case c.status == 0 && err == nil:
				t.Errorf("answered %s %q", resp.Status, body)
			case c.status != 0 && (err != nil || resp.StatusCode != c.status):
				t.Errorf("%v, %v; want %d", resp, err, c.status)
			case c.status == 201 && body != "heard hello":
				t.Errorf("answered %q", body)
			case c.kind == Throttle && resp.Header.Get("Retry-After") != "7":
				t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
			}
			wantWhole(t, p, "/push")
			if got := cell.asked.Load() - before - 1; got != c.asked {
				t.Errorf("the cell heard %d calls, want %d", got, c.asked)
			}
			if p.Fired(c.kind) != 1 || !meanwhile || p.Calls("/push") != 3 {
				t.Errorf("fired %d of %d calls, meanwhile %v", p.Fired(c.kind), p.Calls("/push"), meanwhile)
			}
			p.mu.Lock() // the log is written under it
			defer p.mu.Unlock()
			var e Event
			if err := json.Unmarshal(log.Bytes(), &e); err != nil || e.Fault != c.kind || e.Route != "/push" || e.N != 2 || e.Done != c.done || (e.Step == afterCell) != c.done {
				t.Errorf("%s: %v", log, err)
			}
		})
	}
}

func wantWhole(t *testing.T, p *Proxy, path string) {
	t.Helper()
	resp, body, err := ask(p, path, time.Minute)
	if err != nil || body != "heard hello" || "http://"+resp.Header.Get("X-Host") != p.URL {
		t.Fatalf("%s: %v %q %v", path, resp, body, err)
	}
}

// A rule that asks for what a call holds strikes no other, and the cell hears all
// of those that it lets through.
func TestCallsByTheirBody(t *testing.T) {
	p, _ := startProxy(t, startCell(t), Plan{Rules: []Rule{{Kind: Refuse, Holds: "ell"}}})
	if resp, _, err := ask(p, "/push", time.Minute); err != nil || resp.StatusCode != 503 {
		t.Errorf("%v, %v; want 503", resp, err)
	}
	p.Clear()
	for _, r := range []Rule{{Kind: Refuse, Holds: "qk:node:"}, {Kind: Watch, Route: "/push", Holds: "hello"}} {
		if err := p.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if resp, body, err := ask(p, "/push", time.Minute); err != nil || resp.StatusCode != 201 || body != "heard hello" || p.Fired(Watch) != 1 || p.Fired(Refuse) != 1 {
		t.Errorf("%v %q, %v", resp, body, err)
	}
}

// The same plan strikes the same calls.
func TestChanceIsOfTheSeed(t *testing.T) {
	struck := func(seed uint64) (calls []int) {
		p, _ := startProxy(t, startCell(t), Plan{Seed: seed, Rules: []Rule{{Kind: Refuse, Chance: 30}}})
		for i := range 60 {
			if resp, _, err := ask(p, "/x", time.Minute); err != nil || resp.StatusCode == 503 {
				calls = append(calls, i)
			}
		}
		return calls
	}
	one, again, other := struck(1), struck(1), struck(2)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) || len(one) < 3 || len(one) > 40 {
		t.Errorf("%v, %v, %v", one, again, other)
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	for _, r := range []Rule{{}, {Kind: "flood"}, {Kind: Delay, WaitMS: -1}, {Kind: Refuse, Chance: 101}, {Kind: Refuse, Count: -1}} {
		if p, err := Start("127.0.0.1:0", "http://127.0.0.1:1", Plan{Rules: []Rule{r}}, nil); err == nil {
			_ = p.Close()
			t.Errorf("%+v is taken", r)
		}
	}
}

// A cell that is gone, or moves, looks like one.
func TestCellGoneAndMoved(t *testing.T) {
	one := startCell(t)
	p, _ := startProxy(t, one, Plan{})
	wantWhole(t, p, "/x")
	one.CloseClientConnections()
	one.Close()
	if resp, _, err := ask(p, "/x", time.Minute); err == nil {
		t.Errorf("a cell that is gone answers %s", resp.Status)
	}
	two := startCell(t)
	if err := p.Point(two.URL); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, p, "/x")
}
