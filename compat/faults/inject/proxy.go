// Package inject puts faults between a gateway and its cell: an HTTP proxy that
// carries every call, but for those that a rule tells it to lose, delay, refuse
// or cut.
package inject

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxHeld is the longest that a proxy keeps a caller waiting who does not give
// up by itself.
const maxHeld = 2 * time.Minute

// Proxy carries calls to a cell. It is safe for concurrent use.
type Proxy struct {
	URL string // of the proxy

	cell      atomic.Pointer[url.URL]
	transport *http.Transport
	forward   *httputil.ReverseProxy
	server    *http.Server
	ln        net.Listener
	served    chan struct{}
	closing   chan struct{}

	mu    sync.Mutex // guards the fields below
	log   io.Writer
	rules []*rule
	calls map[string]int // by path
	fired map[Kind]int
	rng   *rand.Rand
	open  map[net.Conn]struct{}
}

// rule is a Rule with what it has done.
type rule struct {
	Rule
	seen, hits int
}

// Start listens on addr in front of a cell. events, if it is not nil, gets one
// line of JSON for every fault that strikes.
func Start(addr, cellURL string, plan Plan, events io.Writer) (*Proxy, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		URL: "http://" + ln.Addr().String(), ln: ln, log: events,
		transport: &http.Transport{MaxIdleConnsPerHost: 64},
		served:    make(chan struct{}), closing: make(chan struct{}),
		calls: make(map[string]int), fired: make(map[Kind]int), open: make(map[net.Conn]struct{}),
		rng: rand.New(rand.NewPCG(plan.Seed, 0)),
	}
	err = p.Point(cellURL)
	for _, r := range plan.Rules {
		err = errors.Join(err, p.Add(r))
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	quiet := log.New(io.Discard, "", 0) // of calls that were given up
	p.forward = &httputil.ReverseProxy{Rewrite: p.rewrite, Transport: p.transport, FlushInterval: -1, ErrorLog: quiet, ErrorHandler: p.lost}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, ConnState: p.track}
	go p.serve()
	return p, nil
}

func (p *Proxy) serve() {
	defer close(p.served)
	_ = p.server.Serve(p.ln)
}

// Close ends the proxy and every connection to it.
func (p *Proxy) Close() error {
	close(p.closing)
	err := p.server.Close()
	<-p.served
	p.transport.CloseIdleConnections()
	return err
}

// Point says where the cell is, from the next call on.
func (p *Proxy) Point(cellURL string) error {
	cell, err := url.Parse(cellURL)
	if err != nil {
		return err
	}
	p.cell.Store(cell)
	return nil
}

// Add adds a rule.
func (p *Proxy) Add(r Rule) error {
	if err := r.check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{Rule: r})
	return nil
}

// Clear drops every rule.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Fired is how often a fault has struck.
func (p *Proxy) Fired(k Kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired[k]
}

// Calls is how many calls of a path have come.
func (p *Proxy) Calls(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[path]
}

// Cut breaks every connection of a caller, whatever is under way on it.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) track(c net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.open[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.open, c)
	}
}

// pick counts a call and finds the rule that strikes it; nil: none.
func (p *Proxy) pick(path string, body []byte) (*rule, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[path]++
	n := p.calls[path]
	for _, r := range p.rules {
		if !r.matches(path, body) || r.Count > 0 && r.hits >= r.Count {
			continue
		}
		if r.seen++; r.seen <= r.Skip || r.Chance > 0 && p.rng.IntN(100) >= r.Chance {
			continue
		}
		r.hits++
		return r, n
	}
	return nil, n
}

// body reads a call's body, where a rule asks for what it holds.
func (p *Proxy) body(req *http.Request) ([]byte, error) {
	p.mu.Lock()
	asked := slices.ContainsFunc(p.rules, func(r *rule) bool { return r.Holds != "" && r.on(req.URL.Path) })
	p.mu.Unlock()
	if !asked {
		return nil, nil
	}
	b, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(b))
	return b, err
}

func (p *Proxy) strike(e Event) {
	e.Time = time.Now().UTC()
	line, err := json.Marshal(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired[e.Fault]++
	if p.log != nil && err == nil {
		_, _ = p.log.Write(append(line, '\n'))
	}
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.cell.Load())
	r.Out.Host = r.In.Host
}

// lost is a cell that does not answer: its caller sees what it would see of a
// cell that is gone.
func (*Proxy) lost(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }

// ServeHTTP carries one call.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := p.body(req)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller has gone
	}
	r, n := p.pick(req.URL.Path, body)
	if r == nil {
		p.forward.ServeHTTP(w, req)
		return
	}
	e := Event{Fault: r.name(), Route: req.URL.Path, N: n, Step: beforeCell}
	switch r.Kind {
	case CutAfter, Truncate, NoAnswer, Watch:
		p.afterwards(w, req, r, e)
		return
	}
	r.meanwhile()
	p.strike(e)
	switch r.Kind {
	case Delay:
		p.pause(req.Context(), r.wait())
		p.forward.ServeHTTP(w, req)
	case Throttle:
		w.Header().Set("Retry-After", fmt.Sprint(r.retryAfter()))
		refuse(w, http.StatusTooManyRequests, "rate_limited")
	case Refuse:
		refuse(w, http.StatusServiceUnavailable, "unavailable")
	case Late:
		refuse(w, http.StatusRequestTimeout, "timeout")
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Swallow:
		_, _ = io.Copy(io.Discard, req.Body) // only then is the caller's leaving noticed
		p.pause(req.Context(), maxHeld)
		panic(http.ErrAbortHandler)
	}
}

// afterwards lets the cell do the call and spoils its answer.
func (p *Proxy) afterwards(w http.ResponseWriter, req *http.Request, r *rule, e Event) {
	answer := &kept{header: make(http.Header), status: http.StatusOK}
	p.forward.ServeHTTP(answer, req.WithContext(context.WithoutCancel(req.Context())))
	e.Step, e.Done = afterCell, answer.status/100 == 2
	r.meanwhile()
	p.strike(e)
	switch r.Kind {
	case NoAnswer:
		p.pause(req.Context(), maxHeld)
	case Truncate:
		answer.send(w, answer.body.Len()/2)
	case Watch:
		answer.send(w, answer.body.Len())
		return
	}
	panic(http.ErrAbortHandler)
}

// pause waits, but not for a caller who has gone.
func (p *Proxy) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.closing:
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":"a fault was injected","code":%q}`, code)
}

// kept is an answer that has not been sent.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) {
	if status >= 200 {
		k.status = status
	}
}

func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

// send sends so many bytes of the body under the length of all of it.
func (k *kept) send(w http.ResponseWriter, n int) {
	for name, values := range k.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(k.body.Len()))
	w.WriteHeader(k.status)
	_, _ = w.Write(k.body.Bytes()[:n])
	_ = http.NewResponseController(w).Flush()
}
