package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// The keys every target has: of two clusters, by what they may do.
const (
	acme        = "acme"         // all scopes
	acme2       = "acme-2"       // all scopes, another key
	acmeConsume = "acme-consume" // consume, read
	acmeProduce = "acme-produce" // produce, read
	acmeTxn     = "acme-txn"     // produce, consume, read
	acmeNoRead  = "acme-noread"  // consume
	globex      = "globex"       // all scopes
)

// patience is the generous deadline of what a case waits for.
const patience = 30 * time.Second

// target is a cell that the cases are run against.
type target struct {
	url    string
	client *http.Client
	keys   map[string]string
	cell   *cell.Cell    // nil: somebody else's
	ahead  *atomic.Int64 // how far the embedded cell's clock is ahead, ns
	serial *atomic.Int64
	run    string // in names, so that runs on one cell do not meet
}

func newTarget(url string) *target {
	return &target{
		url: url, client: &http.Client{Transport: &http.Transport{}, Timeout: 2 * patience}, keys: map[string]string{},
		ahead: new(atomic.Int64), serial: new(atomic.Int64), run: strconv.FormatInt(time.Now().UnixNano(), 36),
	}
}

// startEmbedded is a cell in this process, on a port and a folder of its own.
func startEmbedded(t *testing.T) *target {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newTarget("http://" + ln.Addr().String())
	c.cell, err = cell.Open(cell.Config{
		Dir: t.TempDir(), SharedHosts: []string{"127.0.0.1"}, RetentionInterval: 10 * time.Millisecond, Plans: plans(),
		Clock: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go c.serve(ctx, ln, ended)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.client.CloseIdleConnections()
		if err := c.cell.Close(); err != nil {
			t.Error(err)
		}
	})
	all := []string{"produce", "consume", "admin", "read"}
	for _, k := range []struct {
		name, cluster string
		scopes        []string
	}{
		{acme, "acme", all},
		{acme2, "acme", all},
		{acmeConsume, "acme", []string{"consume", "read"}},
		{acmeProduce, "acme", []string{"produce", "read"}},
		{acmeTxn, "acme", []string{"produce", "consume", "read"}},
		{acmeNoRead, "acme", []string{"consume"}},
		{globex, "globex", all},
	} {
		if _, ok := c.cell.Control().BySlug(k.cluster); !ok {
			if _, err := c.cell.Control().CreateCluster(control.NewCluster{Slug: k.cluster}); err != nil {
				t.Fatal(err)
			}
		}
		if c.keys[k.name], err = c.newKey(k.cluster, k.scopes...); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// monthly is the plan with a monthly quota: of the contract's, none has one.
const monthly = "monthly"

func plans() []control.Plan {
	return append(control.Plans(), control.Plan{Code: monthly, Limits: control.Limits{MonthlyMsgsQuota: control.AtMost(2)}})
}

func (c *target) serve(ctx context.Context, ln net.Listener, ended chan<- error) {
	ended <- c.cell.Serve(ctx, ln)
}

func (c *target) newKey(cluster string, names ...string) (string, error) {
	s, err := control.ParseScopes(names...)
	if err != nil {
		return "", err
	}
	text, _, err := c.cell.Control().CreateKey(control.NewKey{Cluster: cluster, Scopes: s})
	return text, err
}

// probe is one case on its way.
type probe struct {
	*target
	ctx     context.Context // of the test; a probe lives as long as it
	section string
	errs    []string
	skipped string
}

// stop ends a case early.
type stop struct{}

// do runs a case to its end, or to its first fatal error.
func (p *probe) do(run func(*probe)) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(stop); !ours {
				panic(r)
			}
		}
	}()
	run(p)
}

func (p *probe) errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Sprintf(format, args...))
}

func (p *probe) fatalf(format string, args ...any) {
	p.errorf(format, args...)
	panic(stop{})
}

// key is the text of a key; a target that has no such key skips the case.
func (p *probe) key(name string) string {
	text, own := p.keys[name]
	if !own {
		return name // a key a case made itself
	}
	if text == "" {
		p.skipped = "there is no key " + name
		panic(stop{})
	}
	return text
}

// name is one that no other case has.
func (p *probe) name(base string) string {
	return fmt.Sprintf("%s-%s-%d", base, p.run, p.serial.Add(1))
}

// tenant is a cluster made for one case.
type tenant struct {
	p    *probe
	slug string
	key  string // all scopes
}

// cluster makes one, with limit_overrides as a JSON object.
func (p *probe) cluster(plan, overrides string) tenant {
	n := control.NewCluster{Slug: p.name("c"), Plan: plan}
	p.must(json.Unmarshal([]byte(overrides), &n.Overrides))
	_, err := p.cell.Control().CreateCluster(n)
	p.must(err)
	key, err := p.newKey(n.Slug, "produce", "consume", "admin", "read")
	p.must(err)
	return tenant{p: p, slug: n.Slug, key: key}
}

// limit replaces the cluster's limit_overrides.
func (t tenant) limit(overrides string) {
	var o control.Overrides
	t.p.must(json.Unmarshal([]byte(overrides), &o))
	t.p.must(t.p.cell.Control().SetOverrides(t.slug, o))
}

func (t tenant) status(s control.Status) { t.p.must(t.p.cell.Control().SetStatus(t.slug, s)) }

func (t tenant) scoped(names ...string) string {
	text, err := t.p.newKey(t.slug, names...)
	t.p.must(err)
	return text
}

func (p *probe) must(err error) {
	if err != nil {
		p.fatalf("%v", err)
	}
}

// pass lets time pass for the embedded cell.
func (p *probe) pass(d time.Duration) { p.ahead.Add(int64(d)) }

// eventually asks again until the answer is as it has to be.
func (p *probe) eventually(what string, ok func() bool) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			p.fatalf("still not so: %s", what)
		case <-tick.C:
		}
	}
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
	value  any // of the body, when that is JSON
	took   time.Duration
}

// call sends one request. key is a name of the target's keys or a key's text;
// empty: no credential.
func (p *probe) call(method, path, key, body string) reply {
	auth := ""
	if key != "" {
		auth = "Bearer " + p.key(key)
	}
	return p.send(method, path, body, map[string]string{"Authorization": auth})
}

// send is call with headers of its own; Host is one of them.
func (p *probe) send(method, path, body string, headers map[string]string) reply {
	r, err := p.try(method, path, body, headers)
	p.must(err)
	return r
}

func (p *probe) try(method, path, body string, headers map[string]string) (reply, error) {
	req, err := http.NewRequestWithContext(p.ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		switch {
		case name == "Host":
			req.Host = value
		case value != "":
			req.Header.Set(name, value)
		}
	}
	start := time.Now()
	resp, err := p.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	text, err := io.ReadAll(resp.Body)
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(text), took: time.Since(start)}
	from := json.NewDecoder(bytes.NewReader(text))
	from.UseNumber()
	if from.Decode(&r.value) != nil {
		r.value = nil
	}
	if closed := resp.Body.Close(); err == nil {
		err = closed
	}
	return r, err
}

func (p *probe) get(key, path string) reply        { return p.call("GET", path, key, "") }
func (p *probe) post(key, path, body string) reply { return p.call("POST", path, key, body) }
func (p *probe) kv(key, ops string) reply {
	return p.post(key, "/api/v1/kv", `{"operations":[`+ops+`]}`)
}

func (p *probe) push(key, items string) reply {
	return p.post(key, "/api/v1/push", `{"items":[`+items+`]}`)
}

func (p *probe) fetch(key, queue, partition string, offset int64) reply {
	return p.post(key, "/api/v1/fetch", fmt.Sprintf(`{"entries":[{"queue":%q,"partition":%q,"offset":%d}]}`, queue, partition, offset))
}

func rec(queue, partition, payload string) string {
	return fmt.Sprintf(`{"queue":%q,"partition":%q,"payload":%s}`, queue, partition, payload)
}

// want2xx ends a case whose ground is missing.
func (p *probe) want2xx(r reply) reply {
	if r.status/100 != 2 {
		p.fatalf("%d %.300s", r.status, r.body)
	}
	return r
}

// at is what stands at a path of the answer ("entries.0.offset"): a string as
// it is, anything else as JSON, "absent" where there is nothing.
func (r reply) at(path string) string {
	v := r.value
	if path != "" {
		for _, step := range strings.Split(path, ".") {
			switch in := v.(type) {
			case map[string]any:
				member, ok := in[step]
				if !ok {
					return "absent"
				}
				v = member
			case []any:
				i, err := strconv.Atoi(step)
				if err != nil || i >= len(in) {
					return "absent"
				}
				v = in[i]
			default:
				return "absent"
			}
		}
	}
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// int is a number of the answer.
func (p *probe) int(r reply, path string) int64 {
	n, err := strconv.ParseInt(r.at(path), 10, 64)
	if err != nil {
		p.fatalf("%s is %s in %.300s", path, r.at(path), r.body)
	}
	return n
}

// eq checks pairs of path and value.
func (p *probe) eq(r reply, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := r.at(pairs[i]); got != pairs[i+1] {
			p.errorf("%s is %.200s, want %s (in %d %.300s)", pairs[i], got, pairs[i+1], r.status, r.body)
		}
	}
}

// status checks the status alone.
func (p *probe) status(r reply, want int) {
	if r.status != want {
		p.errorf("status %d, want %d: %.300s", r.status, want, r.body)
	}
}

// refused checks an error body of cell-http §5.3; an empty text is any.
func (p *probe) refused(r reply, status int, code, text string) {
	p.status(r, status)
	p.eq(r, "code", code)
	if text != "" {
		p.eq(r, "error", text)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		p.errorf("Content-Type %q", got)
	}
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if status == http.StatusTooManyRequests {
		if err != nil || after < 1 || after > 60 {
			p.errorf("Retry-After %q", r.header.Get("Retry-After"))
		}
	} else if r.header.Get("Retry-After") != "" {
		p.errorf("status %d with Retry-After", status)
	}
}
