package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// TestScopes is the table of cell-http §5.2: each route with each single
// scope, and with none.
func TestScopes(t *testing.T) {
	r := newRig(t)
	keys := map[string]string{"none": r.key("acme")}
	for _, scope := range []string{"produce", "consume", "admin", "read"} {
		keys[scope] = r.key("acme", scope)
	}
	for _, tc := range []struct{ method, path, allowed string }{
		{"POST", "/api/v1/push", "produce"},
		{"POST", "/api/v1/transaction", "produce"},
		{"POST", "/api/v1/fetch", "consume"},
		{"POST", "/api/v1/fetch/offsets", "consume"},
		{"POST", "/api/v1/kv", "produce consume"}, // "{}" is no gateway's batch
		{"POST", "/api/v1/kv/", "produce consume"},
		{"POST", "/api/v1/partitions/changed", "consume"},
		{"GET", "/api/v1/pop/queue/orders", "consume"},
		{"POST", "/api/v1/ack", "consume"},
		{"POST", "/api/v1/ack/batch", "consume"},
		{"POST", "/api/v1/lease/x/extend", "consume"},
		{"POST", "/api/v1/configure", "admin"},
		{"GET", "/api/v1/configure", "admin"},
		{"DELETE", "/api/v1/resources/queues/orders", "admin"},
		{"POST", "/api/v1/consumer-groups/positions", "admin"},
		{"DELETE", "/api/v1/consumer-groups/g", "admin"},
		{"DELETE", "/api/v1/messages/p/t", "admin"},
		{"POST", "/api/v1/messages/p/t/retry", "admin"},
		{"POST", "/api/v1/dlq/replay", "admin"},
		{"GET", "/api/v1/resources/queues", "read admin"},
		{"HEAD", "/api/v1/resources/queues", "read admin"},
		{"GET", "/api/v1/resources/queues/orders", "read admin"},
		{"GET", "/api/v1/resources/queues/orders/sizes", "read admin"},
		{"GET", "/api/v1/resources", "read admin"},
		{"GET", "/api/v1/resources/overview", "read admin"},
		{"POST", "/api/v1/resources/queues", "read admin"},
		{"GET", "/api/v1/status/queues", "read admin"},
		{"GET", "/api/v1/analytics/queues", "read admin"},
		{"GET", "/api/v1/consumer-groups", "read admin"},
		{"GET", "/api/v1/consumer-groups/g", "read admin"},
		{"GET", "/api/v1/dlq", "read admin"},
		{"GET", "/api/v1/messages", "read admin"},
		{"HEAD", "/api/v1/messages/p/t", "read admin"},
		{"GET", "/api/v1/traces/names", "read admin"},
		{"POST", "/api/v1/traces", "produce consume"},
		{"POST", "/api/v1/timers", "produce consume"},
		{"POST", "/api/v1/streams/x", "produce consume"},
		{"POST", "/api/v1/ephemeral", "produce consume"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			for scope, key := range keys {
				got := r.do(request{method: tc.method, path: tc.path, auth: "Bearer " + key, body: "{}"})
				allowed := strings.Contains(tc.allowed, scope)
				if allowed == (got.status == http.StatusForbidden) {
					t.Errorf("scope %s: %d %s", scope, got.status, got.body)
				}
				if !allowed && tc.method != http.MethodHead {
					isRefusal(t, got, 403, "forbidden", "operation not permitted for this credential")
				}
			}
		})
	}
}

// TestBlockedRoutes: what nobody may call is 404, before the credential.
func TestBlockedRoutes(t *testing.T) {
	r := newRig(t)
	full := r.full("acme")
	for _, tc := range []struct{ method, path string }{
		{"GET", "/"},
		{"GET", "/metrics/prometheus"},
		{"GET", "/internal/x"},
		{"POST", "/auth/me"},
		{"GET", "/auth/me/"},
		{"GET", "/api/"},
		{"GET", "/api/v1"},
		{"GET", "/api/v1/"},
		{"GET", "/api/v1/nope"},
		{"GET", "/api/v2/resources/queues"},
		{"POST", "//api/v1/push"},
		{"POST", "/api/v1/push/"},
		{"POST", "/api/v1/Push"},
		{"POST", "/api/v1/x/../push"},
		{"GET", "/api/v1/push"},
		{"GET", "/api/v1/fetch"},
		{"PUT", "/api/v1/fetch"},
		{"GET", "/api/v1/fetch/offsets"},
		{"GET", "/api/v1/kv"},
		{"DELETE", "/api/v1/kv"},
		{"POST", "/api/v1/kv/x"},
		{"GET", "/api/v1/transaction"},
		{"GET", "/api/v1/status"},
		{"GET", "/api/v1/system/x"},
		{"GET", "/api/v1/migration"},
		{"GET", "/api/v1/resources/tenant"},
		{"GET", "/api/v1/resources/quota"},
		{"GET", "/api/v1/resourcesx"},
		{"POST", "/api/v1/stats/refresh"},
		{"GET", "/api/v1/raft/liveness"},
		{"GET", "/api/v1/raft/status"},
		{"GET", "/api/v1/partitions/changed"},
		{"PUT", "/api/v1/consumer-groups/g"},
		{"PUT", "/api/v1/messages/x"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			for _, auth := range []string{"", "Bearer " + full} {
				isRefusal(t, r.do(request{method: tc.method, path: tc.path, auth: auth}), 404, "route_blocked", "not available")
			}
		})
	}
}

// TestRoutesWithoutAnAnswer: what a cell without them says, after the checks.
func TestRoutesWithoutAnAnswer(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	for _, path := range []string{"/api/v1/partitions/changed", "/api/v1/consumer-groups/positions"} {
		got := r.post(key, path, `{}`)
		if want := fmt.Sprintf(`{"code":"no_such_route","error":"not found","path":%q}`, path); got.status != 404 || got.body != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestOrderOfRefusals is the order of cell-http §5.1: each request fails in
// every way from its own on, and shows the first.
func TestOrderOfRefusals(t *testing.T) {
	shared, strict := newRig(t), newRig(t, dedicated)
	const (
		push     = "/api/v1/push"
		streams  = "/api/v1/streams/x"
		narrow   = "narrow"
		mismatch = "acme.example"
	)
	for _, tc := range []struct {
		name       string
		rig        *rig
		status     control.Status
		plan       string
		path, host string
		auth       string // narrow: a key without scopes
		want       int
		code       string
	}{
		{"shared: unknown route first", shared, "suspended", "free", "/api/v1/nope", "", "", 404, "route_blocked"},
		{"shared: then the credential", shared, "suspended", "free", streams, "", "", 401, "unauthorized"},
		{"shared: then suspension", shared, "suspended", "free", streams, "", narrow, 403, "cluster_suspended"},
		{"shared: deleting is suspended", shared, "deleting", "free", streams, "", narrow, 403, "cluster_suspended"},
		{"shared: then the feature", shared, "push_blocked", "free", streams, "", narrow, 403, "feature_gated"},
		{"shared: then the push block", shared, "push_blocked", "free", push, "", narrow, 403, "push_blocked"},
		{"shared: then the scope", shared, "active", "free", push, "", narrow, 403, "forbidden"},
		{"dedicated: host first", strict, "suspended", "free", "/api/v1/nope", "nope.example", "", 421, "cluster_unknown"},
		{"dedicated: then suspension", strict, "suspended", "free", "/api/v1/nope", mismatch, "", 403, "cluster_suspended"},
		{"dedicated: then the route", strict, "push_blocked", "free", "/api/v1/nope", mismatch, "", 404, "route_blocked"},
		{"dedicated: then the feature", strict, "push_blocked", "free", streams, mismatch, "", 403, "feature_gated"},
		{"dedicated: then the push block", strict, "push_blocked", "free", push, mismatch, "", 403, "push_blocked"},
		{"dedicated: then the credential", strict, "active", "free", push, mismatch, "", 401, "unauthorized"},
		{"dedicated: then the scope", strict, "active", "free", push, mismatch, narrow, 403, "forbidden"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.rig.control.SetStatus("acme", tc.status); err != nil {
				t.Fatal(err)
			}
			if err := tc.rig.control.SetPlan("acme", tc.plan); err != nil {
				t.Fatal(err)
			}
			auth := tc.auth
			if auth == narrow {
				auth = "Bearer " + tc.rig.key("acme")
			}
			got := tc.rig.do(request{method: "POST", path: tc.path, host: tc.host, auth: auth, body: "{"})
			if body := decoded[map[string]string](t, got.body); got.status != tc.want || body["code"] != tc.code {
				t.Errorf("got %d %s, want %d %s", got.status, got.body, tc.want, tc.code)
			}
		})
	}
}

// TestStatusTexts is the rest of the status rows of cell-http §5.3.
func TestStatusTexts(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	push := func() reply {
		return r.post(key, "/api/v1/push", `{"items":[{"queue":"q","partition":"0","payload":1}]}`)
	}
	for status, want := range map[control.Status][2]string{
		"push_blocked": {"push_blocked", "pushes blocked (billing hold)"},
		"suspended":    {"cluster_suspended", "cluster suspended"},
		"deleting":     {"cluster_suspended", "cluster suspended"},
		"anything":     {"cluster_suspended", "cluster suspended"},
	} {
		if err := r.control.SetStatus("acme", status); err != nil {
			t.Fatal(err)
		}
		isRefusal(t, push(), 403, want[0], want[1])
	}
	if err := r.control.SetStatus("acme", control.PushBlocked); err != nil {
		t.Fatal(err)
	}
	isRefusal(t, r.post(key, "/api/v1/transaction", `{}`), 403, "push_blocked", "pushes blocked (billing hold)")
	for _, path := range []string{"/api/v1/fetch", "/api/v1/fetch/offsets"} {
		r.mustPost(key, path, `{"entries":[]}`)
	}
	r.mustPost(key, "/api/v1/configure", `{"queue":"q"}`)
	if got := r.get(key, listPath); got.status != 200 {
		t.Errorf("listing while pushes are blocked: %d", got.status)
	}
	if err := r.control.SetPlan("acme", control.PlanFree); err != nil {
		t.Fatal(err)
	}
	isRefusal(t, r.post(key, "/api/v1/timers", `{}`), 403, "feature_gated", "not in your plan")
	if err := r.control.SetStatus("acme", control.Active); err != nil {
		t.Fatal(err)
	}
	if got := push(); got.status != 201 {
		t.Errorf("push after the hold: %d %s", got.status, got.body)
	}
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.get(key, listPath)
	r.get("qk_live_x", listPath)
	r.get(key, "/api/v1/nope")
	r.post(key, "/api/v1/fetch", `{`)
	all := r.proxy.Counters().All()
	if all["queues"] != 2 || all["blocked"] != 1 || all["fetch"] != 1 || all["push"] != 0 || len(all) != int(numRoutes) {
		t.Errorf("counts %v", all)
	}
	if r.proxy.Counters().Of(RouteQueues) != 2 {
		t.Error("Of and All disagree")
	}
}
