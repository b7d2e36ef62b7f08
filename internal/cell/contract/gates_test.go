package contract

import (
	"fmt"
	"strings"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// gateCases are cell-http §5.1–§5.3: what may be called, and by whom.
func gateCases() []kase {
	return []kase{
		{section: "5.2", name: "each route wants its scope", items: is(scopes, routes), own: true, run: eachScope},
		{section: "5.2", name: "the rig's narrow keys", items: is(scopes), run: narrowKeys},
		{section: "5.2", name: "blocked paths are 404, before any credential", items: is(blockedRoutes), run: blocked},
		{section: "3.0", name: "fetch, offsets and keys are POST", items: is(blockedRoutes), run: func(p *probe) {
			for _, path := range []string{"/api/v1/fetch", "/api/v1/fetch/offsets", "/api/v1/kv"} {
				p.refused(p.get(acme, path), 404, "route_blocked", "not available")
			}
		}},
		{section: "5.2", name: "a gateway's own batch needs consume and no feature", items: is(kafkaRule), own: true, run: kafkaBatches},
		{section: "5.2", name: "a batch of keys: qk: is 200 and any other is gated", items: is(kafkaRule), run: func(p *probe) {
			p.status(p.kv(acme, `{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}`), 200)
			plain := p.kv(acme, `{"op":"put","ns":"mine","key":"a","value":1}`)
			if plain.status == 403 {
				p.refused(plain, 403, "feature_gated", "not in your plan")
			} else { // a plan with keys: only the missing expiry is wrong
				p.eq(plain, "reason", "kv_expiry_not_specified")
			}
		}},
		{section: "5.1", name: "the order of refusals where names are shared", items: is(blocks), own: true, run: order},
		{section: "5.4", name: "a suspended cluster gets nothing", items: is(blocks), own: true, run: suspended},
		{section: "5.4", name: "push_blocked spares reads, commits and lists", items: is(blocks), own: true, run: pushBlocked},
		{section: "5.2", name: "keys while pushes are blocked", items: is(blocks, kafkaRule), own: true, run: func(p *probe) {
			t := p.cluster("local", "{}")
			t.status(control.PushBlocked)
			const text = "pushes blocked (billing hold)"
			for ops, free := range map[string]bool{
				`{"op":"get","ns":"n","key":"a"}`:                                                          true,
				`{"op":"delete","ns":"n","key":"a"},{"op":"getPrefix","ns":"n","prefix":"a"}`:              true,
				`{"op":"getMany","ns":"n","keys":["a"]}`:                                                   false,
				`{"op":"get","ns":"n","key":"a"},{"op":"put","ns":"n","key":"a","value":1,"forever":true}`: false,
			} {
				if r := p.kv(t.key, ops); free {
					p.status(r, 200)
				} else {
					p.refused(r, 403, "push_blocked", text)
				}
			}
		}},
		{section: "5.2", name: "what a key with produce alone may do with keys", sure: unknown, own: true, run: func(p *probe) {
			p.status(p.kv(p.cluster("local", "{}").scoped("produce"), `{"op":"get","ns":"n","key":"a"}`), 200)
		}},
	}
}

func eachScope(p *probe) {
	t := p.cluster("local", "{}")
	by := map[string]string{"": t.scoped()}
	for _, s := range []string{"produce", "consume", "admin", "read"} {
		by[s] = t.scoped(s)
	}
	p.want2xx(p.push(t.key, rec("q", "0", "1")))
	for _, tc := range []struct{ method, path, body, allowed string }{
		{"GET", lanes, "", "read admin"},
		{"GET", "/api/v1/resources/queues/q", "", "read admin"},
		{"GET", "/api/v1/resources/queues/q/sizes", "", "read admin"},
		{"GET", "/api/v1/consumer-groups", "", "read admin"},
		{"POST", "/api/v1/configure", `{"queue":"q"}`, "admin"},
		{"DELETE", "/api/v1/resources/queues/none", "", "admin"},
		{"POST", "/api/v1/push", `{"items":[]}`, "produce"},
		{"POST", "/api/v1/transaction", `{"operations":[],"kv":[]}`, "produce"},
		{"POST", "/api/v1/fetch", `{}`, "consume"},
		{"POST", "/api/v1/fetch/offsets", `{}`, "consume"},
		{"POST", "/api/v1/kv", `[{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}]`, "consume"},
	} {
		for scope, key := range by {
			r := p.call(tc.method, tc.path, key, tc.body)
			if scope != "" && strings.Contains(tc.allowed, scope) {
				if r.status/100 != 2 {
					p.errorf("%s %s with %s: %d %.200s", tc.method, tc.path, scope, r.status, r.body)
				}
				continue
			}
			p.refused(r, 403, "forbidden", "operation not permitted for this credential")
		}
	}
}

func narrowKeys(p *probe) {
	q := p.name("orders")
	const text = "operation not permitted for this credential"
	p.want2xx(p.push(acmeProduce, rec(q, "0", "1")))
	p.eq(p.fetch(acmeConsume, q, "0", 0), "entries.0.records.0.offset", "0")
	p.refused(p.post(acmeConsume, "/api/v1/configure", `{"queue":"`+q+`"}`), 403, "forbidden", text)
	p.refused(p.push(acmeConsume, rec(q, "0", "1")), 403, "forbidden", text)
	p.refused(p.fetch(acmeProduce, q, "0", 0), 403, "forbidden", text)
	p.status(p.get(acmeProduce, lanes), 200)
	p.eq(p.fetch(acmeNoRead, q, "0", 0), "entries.0.records.0.offset", "0")
}

func blocked(p *probe) {
	for _, tc := range [][2]string{
		{"GET", "/api/v1/nope"},
		{"GET", "/api/v1/system/x"},
		{"GET", "/api/v1/migration"},
		{"GET", "/api/v1/resources/tenant"},
		{"GET", "/api/v1/resources/quota"},
		{"POST", "/api/v1/stats/refresh"},
		{"GET", "/api/v1/raft/status"},
		{"GET", "/api/v1/raft/members"},
		{"GET", "/api/v1/status"},
		{"GET", "/internal/x"},
		{"GET", "/metrics/prometheus"},
		{"GET", "/api/v2/resources/queues"},
		{"POST", "/api/v1/push/x"},
	} {
		p.refused(p.call(tc[0], tc[1], acme, ""), 404, "route_blocked", "not available")
		p.refused(p.call(tc[0], tc[1], "", ""), 404, "route_blocked", "not available")
	}
}

func kafkaBatches(p *probe) {
	t := p.cluster("free", `{"max_req_per_sec":null}`)
	consume, produce := t.scoped("consume"), t.scoped("produce")
	const put = `{"op":"put","ns":"queen-kafka","key":"qk:a","value":1,"forever":true}`
	for _, ops := range []string{
		put, `{"op":"delete","ns":"queen-kafka","key":"qk:a"}`, `{"op":"getMany","ns":"queen-kafka","keys":["qk:a"]}`,
		`{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}`, put + `,{"op":"delete","ns":"queen-kafka","key":"qk:b"}`, `{"op":"getPrefix","ns":"queen-s3","prefix":"s3:"}`,
	} {
		p.status(p.kv(consume, ops), 200)
		p.status(p.post(consume, "/api/v1/kv", "["+ops+"]"), 200)
		p.refused(p.kv(produce, ops), 403, "forbidden", "operation not permitted for this credential")
	}
	for _, ops := range []string{
		"", `{"op":"get","ns":"queen-kafka","key":"qk:a"}`, `{"op":"putIfAbsent","ns":"queen-kafka","key":"qk:a","value":1,"forever":true}`,
		`{"op":"incr","ns":"queen-kafka","key":"qk:a","by":1,"forever":true}`, `{"op":"put","ns":"mine","key":"qk:a","value":1,"forever":true}`,
		`{"op":"put","ns":"queen-kafka","key":"a","value":1,"forever":true}`, put + `,{"op":"get","ns":"queen-kafka","key":"qk:a"}`,
		`{"op":"getMany","ns":"queen-kafka","keys":[]}`, `{"op":"getMany","ns":"queen-kafka","keys":["qk:a","b"]}`, `{"op":"getMany","ns":"queen-kafka","keys":["qk:a",1]}`,
		`{"op":"delete","ns":"queen-kafka"}`, put + ",7",
	} {
		p.refused(p.kv(t.key, ops), 403, "feature_gated", "not in your plan")
	}
	p.refused(p.post(t.key, "/api/v1/kv", "{"), 403, "feature_gated", "not in your plan")
}

func order(p *probe) {
	t := p.cluster("free", `{"max_req_per_sec":0,"req_burst":0,"max_batch_items":0}`)
	none := t.scoped()
	plain := `{"op":"put","ns":"mine","key":"a","value":1,"forever":true}`
	t.status(control.Suspended)
	p.refused(p.get(nobody, "/api/v1/nope"), 404, "route_blocked", "")
	p.refused(p.kv(nobody, plain), 401, "unauthorized", "")
	p.refused(p.kv(none, plain), 403, "cluster_suspended", "cluster suspended")
	t.status(control.PushBlocked)
	p.refused(p.kv(none, plain), 403, "feature_gated", "")
	p.refused(p.push(none, rec("q", "0", "1")), 403, "push_blocked", "")
	t.status(control.Active)
	p.refused(p.push(none, rec("q", "0", "1")), 403, "forbidden", "")
	p.refused(p.push(t.key, rec("q", "0", "1")), 429, "rate_limited", "request rate limit exceeded")
	t.limit(`{"max_batch_items":0,"max_msgs_per_sec":0,"msgs_burst":0,"max_queues":0}`)
	p.refused(p.push(t.key, rec("q", "0", "1")), 413, "payload_too_large", "")
	t.limit(`{"max_msgs_per_sec":0,"msgs_burst":0,"max_queues":0}`)
	p.refused(p.push(t.key, rec("q", "0", "1")), 429, "rate_limited", "message rate limit exceeded")
	t.limit(`{"max_queues":0}`)
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "quota_exceeded", "queue limit reached (0)")
}

func suspended(p *probe) {
	for _, status := range []control.Status{control.Suspended, control.Deleting, "on holiday"} {
		t := p.cluster("local", "{}")
		t.status(status)
		for _, r := range []reply{p.get(t.key, lanes), p.push(t.key, rec("q", "0", "1")), p.fetch(t.key, "q", "0", 0), p.kv(t.key, `{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}`)} {
			p.refused(r, 403, "cluster_suspended", "cluster suspended")
		}
	}
	t := p.cluster("local", "{}")
	for _, c := range p.cell.Control().Clusters() {
		if c.Slug == t.slug {
			p.must(p.cell.Control().SetTenantStatus(c.TenantID, control.Grace))
		}
	}
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "push_blocked", "pushes blocked (billing hold)")
}

// spared checks what every block of pushes leaves alone.
func (t tenant) spared() {
	p := t.p
	p.status(p.fetch(t.key, "q", "0", 0), 200)
	p.status(p.post(t.key, "/api/v1/fetch/offsets", `{}`), 200)
	p.status(p.kv(t.key, fmt.Sprintf(`{"op":"put","ns":"queen-kafka","key":"qk:group:g:q:0","value":{"offset":1,"ts":%d},"forever":true}`, p.serial.Add(1))), 200)
	p.status(p.kv(t.key, `{"op":"getMany","ns":"queen-kafka","keys":["qk:group:g:q:0"]}`), 200)
	p.status(p.get(t.key, lanes), 200)
	p.status(p.get(t.key, "/api/v1/consumer-groups"), 200)
	p.status(p.post(t.key, "/api/v1/configure", `{"queue":"q"}`), 200)
	p.status(p.call("DELETE", "/api/v1/resources/queues/none", t.key, ""), 200)
}

func pushBlocked(p *probe) {
	t := p.cluster("local", "{}")
	p.want2xx(p.push(t.key, rec("q", "0", "1")))
	t.status(control.PushBlocked)
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "push_blocked", "pushes blocked (billing hold)")
	p.refused(p.post(t.key, "/api/v1/transaction", `{"operations":[],"kv":[]}`), 403, "push_blocked", "pushes blocked (billing hold)")
	t.spared()
	t.status(control.Active)
	p.status(p.push(t.key, rec("q", "0", "1")), 201)
}
