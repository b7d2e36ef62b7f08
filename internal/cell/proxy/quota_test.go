package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// hands is a clock that a test moves.
type hands struct {
	mu sync.Mutex // guards at
	at time.Time
}

func newHands() *hands { return &hands{at: time.Date(2026, 10, 2, 9, 0, 0, 0, time.UTC)} }

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

func clocked(h *hands) rigOption { return func(cfg *Config) { cfg.Clock = h.now } }

func shadowed(cfg *Config) { cfg.Shadow = true }

func onePush(queue, partition, payload string) string {
	return `{"items":[{"queue":"` + queue + `","partition":"` + partition + `","payload":` + payload + `}]}`
}

// TestRequestRate: one token for each request that may do what it asks; a
// refused one takes none, and Retry-After says when.
func TestRequestRate(t *testing.T) {
	h := newHands()
	r := newRig(t, clocked(h))
	key, narrow := r.full("acme"), r.key("acme", "consume")
	r.override("acme", `{"max_req_per_sec":0.5,"req_burst":2}`)
	for range 3 { // not proxied, or not authorised: no token
		r.get(key, "/auth/me")
		r.get(key, "/healthz")
		r.get(narrow, listPath)
		r.get(key, "/api/v1/nope")
	}
	for range 2 {
		if got := r.get(key, listPath); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for range 2 {
		got := r.get(key, listPath)
		isRefusal(t, got, 429, "rate_limited", "request rate limit exceeded")
		if got.header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %s", got.header.Get("Retry-After"))
		}
	}
	h.move(2 * time.Second)
	if got := r.post(key, "/api/v1/fetch", `{}`); got.status != 200 {
		t.Errorf("after the wait: %d %s", got.status, got.body)
	}
	if got := r.get(r.full("rival"), listPath); got.status != 200 {
		t.Errorf("another cluster: %d", got.status)
	}
}

// TestMessageRate: a token for each item, of pushes and transactions.
func TestMessageRate(t *testing.T) {
	h := newHands()
	r := newRig(t, clocked(h))
	key := r.full("acme")
	r.override("acme", `{"max_msgs_per_sec":1,"msgs_burst":3}`)
	two := `{"items":[{"queue":"q","partition":"0","payload":1},{"queue":"q","partition":"0","payload":2}]}`
	r.mustPost(key, "/api/v1/push", two)
	got := r.post(key, "/api/v1/push", two)
	isRefusal(t, got, 429, "rate_limited", "message rate limit exceeded")
	if got.header.Get("Retry-After") != "1" || r.end(key, "q", "0") != 2 {
		t.Errorf("Retry-After %s, %d records", got.header.Get("Retry-After"), r.end(key, "q", "0"))
	}
	isRefusal(t, r.post(key, "/api/v1/transaction", `{"operations":[{"type":"push",`+two[1:]+`]}`), 429, "rate_limited", "message rate limit exceeded")
	r.mustPost(key, "/api/v1/transaction", `{"operations":[],"kv":[{"op":"put","ns":"queen-kafka","key":"qk:a","value":1,"forever":true}]}`)
	h.move(time.Second)
	r.mustPost(key, "/api/v1/push", two)
}

// TestRegistry is cell-http §5.5: places are counted by name, and a configure
// takes one for Default.
func TestRegistry(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.override("acme", `{"max_queues":2,"max_partitions_per_queue":3}`)
	r.mustPost(key, "/api/v1/configure", `{"queue":"made"}`)
	for _, p := range []string{"0", "1", "0"} {
		r.mustPost(key, "/api/v1/push", onePush("made", p, "1"))
	}
	isRefusal(t, r.post(key, "/api/v1/push", onePush("made", "2", "1")), 403, "quota_exceeded", "partition limit reached (3)")
	for _, p := range []string{"0", "1", "2"} { // pushed to, never configured: no Default
		r.mustPost(key, "/api/v1/push", onePush("pushed", p, "1"))
	}
	isRefusal(t, r.post(key, "/api/v1/push", onePush("pushed", "7", "1")), 403, "quota_exceeded", "partition limit reached (3)")
	isRefusal(t, r.post(key, "/api/v1/configure", `{"queue":"third"}`), 403, "quota_exceeded", "queue limit reached (2)")
	isRefusal(t, r.post(key, "/api/v1/push", onePush("third", "0", "1")), 403, "quota_exceeded", "queue limit reached (2)")
	isRefusal(t, r.post(key, "/api/v1/transaction", `{"operations":[{"type":"push",`+onePush("third", "0", "1")[1:]+`]}`),
		403, "quota_exceeded", "queue limit reached (2)")
	r.mustPost(key, "/api/v1/configure", `{"queue":"made","leaseTime":9}`)
	r.mustPost(key, "/api/v1/configure", `{"queue":"pushed"}`)

	// A refused call keeps nothing: one new place that fits beside one that
	// does not.
	r.override("acme", `{"max_queues":3,"max_partitions_per_queue":3}`)
	both := `{"items":[{"queue":"third","partition":"0","payload":1},{"queue":"fourth","partition":"0","payload":1}]}`
	isRefusal(t, r.post(key, "/api/v1/push", both), 403, "quota_exceeded", "queue limit reached (3)")
	r.mustPost(key, "/api/v1/push", onePush("fourth", "0", "1"))
	r.do(request{method: "DELETE", path: "/api/v1/resources/queues/fourth", auth: "Bearer " + key})
	r.mustPost(key, "/api/v1/push", onePush("third", "0", "1"))
	// What the broker refuses is given back.
	r.override("acme", `{"max_queues":4}`)
	isRefusal(t, r.post(key, "/api/v1/push", onePush("x", strings.Repeat("p", 600), "1")), 413, "name_too_long", "name too long")
	r.mustPost(key, "/api/v1/push", onePush("y", "0", "1"))
}

func TestRetentionAboveThePlan(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.override("acme", `{"max_retention_seconds":604800}`)
	for _, tc := range []struct{ body, text string }{
		{`{"queue":"q","retentionSeconds":999999}`, "retentionSeconds of 999999s exceeds the plan's max_retention_seconds (604800s)"},
		{`{"queue":"q","options":{"retentionSeconds":604801}}`, "retentionSeconds of 604801s exceeds the plan's max_retention_seconds (604800s)"},
		{`{"queue":"q","completedRetentionSeconds":700000}`, "completedRetentionSeconds of 700000s exceeds the plan's max_retention_seconds (604800s)"},
		{`{"queue":"q","retentionSeconds":"999999"}`, "retentionSeconds of 999999s exceeds the plan's max_retention_seconds (604800s)"},
		{`{"queue":"q","retentionSeconds":999999,"retentionSeconds":1}`, "retentionSeconds of 999999s exceeds the plan's max_retention_seconds (604800s)"},
	} {
		isRefusal(t, r.post(key, "/api/v1/configure", tc.body), 403, "quota_exceeded", tc.text)
	}
	if list := r.lanes(key); len(list.Queues) != 0 {
		t.Errorf("a refused configure left %+v", list)
	}
	r.mustPost(key, "/api/v1/configure", `{"queue":"q","retentionSeconds":604800,"completedRetentionSeconds":0}`)
	isRefusal(t, r.post(key, "/api/v1/configure", `{"queue":"q","retentionSeconds":"9"}`), 400, "bad_request", "retentionSeconds has the wrong type")
}

// TestShadow: rates, registry and retention are logged only; caps are hard.
func TestShadow(t *testing.T) {
	r := newRig(t, shadowed)
	key := r.full("acme")
	r.override("acme", `{"max_req_per_sec":0,"req_burst":0,"max_msgs_per_sec":0,"msgs_burst":0,"max_queues":0,"max_partitions_per_queue":0,"max_retention_seconds":1,"max_batch_items":1}`)
	r.mustPost(key, "/api/v1/configure", `{"queue":"q","retentionSeconds":99}`)
	r.mustPost(key, "/api/v1/push", onePush("other", "0", "1"))
	isRefusal(t, r.post(key, "/api/v1/push", `{"items":[{"queue":"q","payload":1},{"queue":"q","payload":1}]}`),
		413, "payload_too_large", "batch of 2 items exceeds max_batch_items (1)")
	for _, text := range []string{"request rate", "message rate", "queue limit", "retentionSeconds of 99s"} {
		if !strings.Contains(r.log.String(), text) {
			t.Errorf("the log says nothing of %q", text)
		}
	}
}

// TestStorageCap: blocked above the cap, released at 90 % of it, and blocked at
// once when what was accepted reaches it; reads, commits and listings go on.
func TestStorageCap(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	body := func(bytes int) string { return onePush("q", "0", `"`+strings.Repeat("x", bytes-2)+`"`) }
	r.override("acme", `{"max_retained_bytes":100}`)
	r.mustPost(key, "/api/v1/push", body(60))
	r.mustPost(key, "/api/v1/push", body(60))
	blocked := func() {
		t.Helper()
		isRefusal(t, r.post(key, "/api/v1/push", body(2)), 403, "storage_quota_exceeded", "storage quota exceeded; pushes blocked")
	}
	blocked()
	isRefusal(t, r.post(key, "/api/v1/transaction", `{}`), 403, "storage_quota_exceeded", "storage quota exceeded; pushes blocked")
	r.proxy.Reconcile()
	blocked()
	r.mustPost(key, "/api/v1/fetch", `{"entries":[{"queue":"q","partition":"0","offset":0}]}`)
	r.mustPost(key, "/api/v1/kv", `{"operations":[{"op":"put","ns":"queen-kafka","key":"qk:group:g:q:0","value":{"offset":1},"forever":true}]}`)
	r.mustPost(key, "/api/v1/configure", `{"queue":"q2"}`)
	r.get(key, listPath)
	isRefusal(t, r.post(key, "/api/v1/kv", `[{"op":"put","ns":"mine","key":"a","value":1,"forever":true}]`), 403, "storage_quota_exceeded", "storage quota exceeded; pushes blocked")
	r.mustPost(key, "/api/v1/kv", `[{"op":"get","ns":"mine","key":"a"},{"op":"delete","ns":"mine","key":"b"}]`)

	r.override("acme", `{"max_retained_bytes":200}`) // measured is more than 180
	r.mustPost(key, "/api/v1/kv", `[{"op":"put","ns":"queen-kafka","key":"qk:pad","value":"`+strings.Repeat("x", 40)+`","forever":true}]`)
	r.proxy.Reconcile()
	blocked()
	r.override("acme", `{}`)
	r.mustPost(key, "/api/v1/push", body(2)) // no cap: at once
	r.override("acme", `{"max_retained_bytes":100000}`)
	r.proxy.Reconcile()
	r.mustPost(key, "/api/v1/push", body(2))
}

func TestStorageMeasure(t *testing.T) {
	most := control.AtMost(100)
	for _, tc := range []struct {
		name          string
		before        storage
		measured      int64
		blocked       bool
		acceptedAfter int64
	}{
		{"at the cap is not above it", storage{measured: 10}, 100, false, 0},
		{"above", storage{}, 101, true, 0},
		{"between release and cap stays", storage{measured: 101, blocked: true}, 91, true, 0},
		{"at 90 %", storage{measured: 101, blocked: true}, 90, false, 0},
		{"an unchanged measure keeps what was accepted", storage{measured: 50, accepted: 50, blocked: true}, 50, true, 50},
	} {
		s := tc.before
		s.measure(tc.measured, most)
		if s.blocked != tc.blocked || s.accepted != tc.acceptedAfter {
			t.Errorf("%s: %+v", tc.name, s)
		}
	}
}

// TestMonthlyQuota: the month's messages block pushes until the next one; the
// storage cap precedes it, the status follows it.
func TestMonthlyQuota(t *testing.T) {
	h := newHands()
	plans := control.Plans()
	for i := range plans {
		plans[i].Limits.MonthlyMsgsQuota = control.AtMost(2)
	}
	r := newRig(t, clocked(h), func(cfg *Config) {
		store, err := control.OpenWithPlans(t.TempDir(), h.now, plans)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CreateCluster(control.NewCluster{Slug: "acme"}); err != nil {
			t.Fatal(err)
		}
		cfg.Control = store
	})
	r.control = r.proxy.control
	key := r.full("acme")
	r.mustPost(key, "/api/v1/push", onePush("q", "0", "1"))
	r.mustPost(key, "/api/v1/push", onePush("q", "0", "1"))
	r.proxy.Reconcile()
	const text = "monthly message quota (monthly_msgs_quota) exhausted; pushes blocked until the next calendar month"
	push := func() reply { return r.post(key, "/api/v1/push", onePush("q", "0", "1")) }
	isRefusal(t, push(), 403, "quota_exceeded", text)
	if err := r.control.SetStatus("acme", control.PushBlocked); err != nil {
		t.Fatal(err)
	}
	isRefusal(t, push(), 403, "quota_exceeded", text)
	r.override("acme", `{"max_retained_bytes":1}`)
	r.proxy.Reconcile()
	isRefusal(t, push(), 403, "storage_quota_exceeded", "storage quota exceeded; pushes blocked")
	r.override("acme", `{}`)
	h.move(31 * 24 * time.Hour)
	r.proxy.Reconcile()
	isRefusal(t, push(), 403, "push_blocked", "pushes blocked (billing hold)")
}

// hanging is a broker that answers nothing until its caller gives up.
type hanging struct{ Broker }

func (hanging) Push(ctx context.Context, _ broker.Tenant, _ []broker.PushItem, _ []broker.PushResult) ([]broker.PushResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestUpstreamTimeout(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Broker, cfg.UpstreamTimeout = hanging{cfg.Broker}, time.Millisecond })
	got := r.post(r.full("acme"), "/api/v1/push", onePush("q", "0", "1"))
	isRefusal(t, got, http.StatusGatewayTimeout, "upstream_timeout", "upstream timeout")
}

// capable is a broker whose transactions take more than the contract's.
type capable struct{ Broker }

func (capable) MaxTxnKVOps() int { return 1024 }

func TestCapabilities(t *testing.T) {
	for _, n := range []int{64, 1024} {
		r := newRig(t, func(cfg *Config) {
			if n > 64 {
				cfg.Broker = capable{cfg.Broker}
			}
		})
		want := ""
		if n > 64 {
			want = "txn-kv=" + strconv.Itoa(n)
		}
		key := r.full("acme")
		for _, path := range []string{listPath, "/auth/me"} {
			if got := r.get(key, path).header.Get("X-Queen-Capabilities"); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
}

// TestAKeysEnd: /auth/me says when a key ends, and the key ends then.
func TestAKeysEnd(t *testing.T) {
	r := newRig(t)
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	text, key, err := r.control.CreateKey(control.NewKey{Cluster: "acme", Scopes: control.AllScopes(), ExpiresAt: ends})
	if err != nil {
		t.Fatal(err)
	}
	type identity struct {
		ExpiresAt *time.Time `json:"expires_at"`
	}
	if got := decoded[identity](t, r.get(text, "/auth/me").body); got.ExpiresAt == nil || !got.ExpiresAt.Equal(ends) {
		t.Errorf("expires_at %v, want %v", got.ExpiresAt, ends)
	}
	if got := r.get(r.full("acme"), "/auth/me").body; strings.Contains(got, "expires_at") {
		t.Errorf("a key without an end: %s", got)
	}
	if err := r.control.RevokeKey(key.ID); err != nil {
		t.Fatal(err)
	}
	isRefusal(t, r.get(text, listPath), 401, "unauthorized", "unknown or revoked api key")
}
