package contract

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kvCases are cell-http §4, on a gateway's own keys where that is possible, so
// that a plan without the kv feature runs them too.
func kvCases() []kase {
	return []kase{
		{section: "4.3", name: "put and its conditions", items: is(routes, keys), run: putConditions},
		{section: "4.3", name: "delete and its conditions", items: is(keys), run: deleteConditions},
		{section: "4.3", name: "an operation that loses does not stop the others", items: is(keys), run: func(p *probe) {
			k := p.gwKey()
			r := p.want2xx(p.kv(acme, p.put(k+"a", "1", `,"expect":5`)+","+p.put(k+"b", "2", "")))
			p.eq(p.byIndex(r, 0), "applied", "false", "reason", "absent")
			p.eq(p.byIndex(r, 1), "applied", "true")
			p.eq(p.getMany(k+"a", k+"b"), "missing", `["`+k+`a"]`)
		}},
		{section: "4.1", name: "versions are unique, positive and of one sequence", items: is(keys), run: versions},
		{section: "4.1", name: "null is a value", items: is(keys), run: func(p *probe) {
			k := p.gwKey()
			p.want2xx(p.kv(acme, p.put(k, "null", "")))
			p.eq(p.getMany(k), "rows.0.value", "null", "missing", "[]")
		}},
		{section: "4.1", name: "an expired row is absent", items: is(keys), own: true, run: expiry},
		{section: "4.4", name: "getMany: rows in byte order, and what is missing", items: is(keys), run: getMany},
		{section: "4.4", name: "getPrefix: byte order, pages, exclusive after", items: is(keys), run: pages},
		{section: "4.4", name: "a read budget of 4 MiB", items: is(keys), run: budget},
		{section: "4.5", name: "reads see the writes of their call", items: is(keys), run: func(p *probe) {
			k := p.gwKey()
			r := p.want2xx(p.kv(acme, fmt.Sprintf(`{"op":"getPrefix","ns":"queen-kafka","prefix":%q,"limit":64}`, k)+","+p.put(k+"n", "7", "")))
			p.eq(p.byIndex(r, 0), "rows.0.key", k+"n", "rows.0.value", "7")
		}},
		{section: "4.6", name: "a lost required condition undoes the call, with 200", items: is(keys), run: required},
		{section: "4.7", name: "limits and their envelope", items: is(keys), run: kvLimits},
		{section: "4.2", name: "get, putIfAbsent and incr on a plan with keys", items: is(keys), own: true, run: plainKeys},
		{section: "4.1", name: "equal keys in two clusters are two rows", items: is(isolation, keys), run: func(p *probe) {
			k := p.gwKey()
			p.want2xx(p.kv(acme, p.put(k, `"acme"`, "")))
			p.eq(p.byIndex(p.want2xx(p.kv(globex, p.put(k, `"globex"`, `,"expect":0`))), 0), "applied", "true")
			p.eq(p.getMany(k), "rows.0.value", "acme")
		}},
	}
}

// gwKey is a key of the gateway's own part that no other case has.
func (p *probe) gwKey() string { return "qk:test:" + p.name("k") + ":" }

func (p *probe) put(key, value, more string) string {
	expiry := `,"forever":true`
	if strings.Contains(more, "ttlSeconds") {
		expiry = ""
	}
	return fmt.Sprintf(`{"op":"put","ns":"queen-kafka","key":%q,"value":%s%s%s}`, key, value, expiry, more)
}

func del(key, more string) string {
	return fmt.Sprintf(`{"op":"delete","ns":"queen-kafka","key":%q%s}`, key, more)
}

// byIndex finds the result of an operation: their order means nothing.
func (p *probe) byIndex(r reply, index int) reply {
	for i := 0; ; i++ {
		at := fmt.Sprintf("results.%d", i)
		switch r.at(at + ".index") {
		case strconv.Itoa(index):
			r.value = r.value.(map[string]any)["results"].([]any)[i]
			return r
		case "absent":
			p.fatalf("no result %d in %.300s", index, r.body)
		}
	}
}

func (p *probe) getMany(names ...string) reply {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return p.byIndex(p.want2xx(p.kv(acme, `{"op":"getMany","ns":"queen-kafka","keys":[`+strings.Join(quoted, ",")+`]}`)), 0)
}

// one runs one operation.
func (p *probe) one(op string) reply { return p.byIndex(p.want2xx(p.kv(acme, op)), 0) }

func putConditions(p *probe) {
	k := p.gwKey()
	first := p.one(p.put(k, `{"x":1}`, `,"expect":0`))
	p.eq(first, "op", "put", "applied", "true", "key", k, "value", `{"x":1}`, "reason", "absent")
	version := first.at("version")
	p.eq(p.one(p.put(k, "2", `,"expect":0`)), "applied", "false", "reason", "exists", "value", `{"x":1}`, "version", version)
	p.eq(p.one(p.put(k, "2", `,"expect":1`)), "applied", "false", "reason", "version", "value", `{"x":1}`, "version", version)
	p.eq(p.one(p.put(k+"none", "2", `,"expect":1`)), "applied", "false", "reason", "absent", "value", "null", "version", "0")
	second := p.one(p.put(k, "2", `,"expect":`+version))
	p.eq(second, "applied", "true", "value", "2")
	if second.at("version") == version {
		p.errorf("a new value has the old version")
	}
	p.eq(p.one(p.put(k, "3", "")), "applied", "true", "value", "3")
}

func deleteConditions(p *probe) {
	k := p.gwKey()
	p.eq(p.one(del(k, "")), "op", "delete", "applied", "false", "reason", "absent")
	p.eq(p.one(del(k, `,"expect":0`)), "applied", "true", "version", "0")
	p.eq(p.one(del(k, `,"expect":9`)), "applied", "false", "reason", "absent")
	version := p.one(p.put(k, `"old"`, "")).at("version")
	p.eq(p.one(del(k, `,"expect":0`)), "applied", "false", "reason", "exists", "value", "old", "version", version)
	p.eq(p.one(del(k, `,"expect":1`)), "applied", "false", "reason", "version")
	p.eq(p.one(del(k, `,"expect":`+version)), "applied", "true", "value", "old", "version", version)
	p.eq(p.getMany(k), "missing", `["`+k+`"]`)
	p.one(p.put(k, "1", ""))
	p.eq(p.one(del(k, "")), "applied", "true", "value", "1")
}

func versions(p *probe) {
	k := p.gwKey()
	seen := map[int64]bool{}
	for i := range 5 {
		r := p.want2xx(p.kv(acme, p.put(k+"a", strconv.Itoa(i), "")+","+p.put(k+"b", "1", "")))
		for op := range 2 {
			v := p.int(p.byIndex(r, op), "version")
			if v <= 0 || seen[v] {
				p.errorf("version %d", v)
			}
			seen[v] = true
		}
	}
	v := p.one(p.put(k+"a", "1", "")).at("version")
	p.one(del(k+"a", ""))
	if again := p.one(p.put(k+"a", "1", "")).at("version"); again == v {
		p.errorf("a version was used again")
	}
}

func expiry(p *probe) {
	k := p.gwKey()
	p.one(p.put(k+"a", "1", `,"ttlSeconds":60`))
	p.one(p.put(k+"b", "1", ""))
	r := p.getMany(k+"a", k+"b")
	if r.at("rows.0.expiresAt") == "null" || r.at("rows.1.expiresAt") != "null" {
		p.errorf("%s", r.body)
	}
	p.pass(59 * time.Second)
	p.eq(p.getMany(k+"a"), "missing", "[]")
	p.pass(2 * time.Second)
	p.eq(p.getMany(k+"a"), "missing", `["`+k+`a"]`, "rows", "[]")
	p.eq(p.byIndex(p.want2xx(p.kv(acme, fmt.Sprintf(`{"op":"getPrefix","ns":"queen-kafka","prefix":%q}`, k))), 0), "rows.0.key", k+"b", "rows.1", "absent")
	p.eq(p.one(p.put(k+"a", "2", `,"expect":0`)), "applied", "true")
}

func getMany(p *probe) {
	k := p.gwKey()
	p.want2xx(p.kv(acme, p.put(k+"b", "2", "")+","+p.put(k+"a", "1", "")+","+p.put(k+"Z", "3", "")))
	r := p.getMany(k+"b", k+"c", k+"a", k+"Z")
	p.eq(r, "op", "getMany", "rows.0.key", k+"Z", "rows.1.key", k+"a", "rows.1.value", "1", "rows.2.key", k+"b", "rows.3", "absent", "missing", `["`+k+`c"]`, "truncated", "false")
	if r.at("rows.0.version") == "absent" || r.at("rows.0.updatedAt") == "absent" || r.at("rows.0.expiresAt") != "null" {
		p.errorf("%s", r.body)
	}
}

func pages(p *probe) {
	k := p.gwKey()
	var ops []string
	for _, n := range []string{"10", "2", "1", "ä", "~"} {
		ops = append(ops, p.put(k+n, "1", ""))
	}
	p.want2xx(p.kv(acme, strings.Join(ops, ",")))
	page := func(more string) reply {
		return p.byIndex(p.want2xx(p.kv(acme, fmt.Sprintf(`{"op":"getPrefix","ns":"queen-kafka","prefix":%q%s}`, k, more))), 0)
	}
	p.eq(page(`,"limit":2`), "op", "getPrefix", "rows.0.key", k+"1", "rows.1.key", k+"10", "rows.2", "absent", "truncated", "true", "nextAfter", k+"10")
	p.eq(page(`,"limit":2,"after":"`+k+`10"`), "rows.0.key", k+"2", "rows.1.key", k+"~", "truncated", "true", "nextAfter", k+"~")
	p.eq(page(`,"limit":2,"after":"`+k+`~"`), "rows.0.key", k+"ä", "rows.1", "absent", "truncated", "false", "nextAfter", "null")
	p.eq(page(`,"limit":0`), "rows.0.key", k+"1", "rows.1", "absent", "truncated", "true")
	p.eq(page(""), "rows.4.key", k+"ä", "truncated", "false")
}

func budget(p *probe) {
	k := p.gwKey()
	value := `"` + strings.Repeat("v", 65_534) + `"`
	var names []string
	for i := range 70 {
		names = append(names, fmt.Sprintf("%s%02d", k, i))
		p.want2xx(p.kv(acme, p.put(names[i], value, "")))
	}
	r := p.getMany(names...)
	p.eq(r, "truncated", "true", "missing", "[]")
	if r.at("rows.69") != "absent" || r.at("rows.10") == "absent" {
		p.errorf("not cut by the budget")
	}
	page := p.byIndex(p.want2xx(p.kv(acme, fmt.Sprintf(`{"op":"getPrefix","ns":"queen-kafka","prefix":%q}`, k))), 0)
	p.eq(page, "truncated", "true")
	last := page.at("nextAfter")
	rest := p.byIndex(p.want2xx(p.kv(acme, fmt.Sprintf(`{"op":"getPrefix","ns":"queen-kafka","prefix":%q,"after":%q}`, k, last))), 0)
	p.eq(rest, "truncated", "false")
	if first := rest.at("rows.0.key"); first <= last {
		p.errorf("the next page begins at %s after %s", first, last)
	}
	for _, n := range names {
		p.want2xx(p.kv(acme, del(n, "")))
	}
}

func required(p *probe) {
	k := p.gwKey()
	version := p.one(p.put(k+"a", `{"node":2}`, "")).at("version")
	r := p.kv(acme, p.put(k+"b", "1", "")+","+p.put(k+"a", "1", `,"expect":1,"required":true`))
	p.status(r, 200)
	p.eq(r, "ok", "false", "reason", "kv_precondition", "failedIndex", "1", "kvReason", "version", "version", version, "value", `{"node":2}`, "results", "absent")
	p.eq(p.getMany(k+"a", k+"b"), "rows.0.value", `{"node":2}`, "missing", `["`+k+`b"]`)
	won := p.kv(acme, p.put(k+"a", "1", `,"expect":`+version+`,"required":true`))
	p.eq(won, "ok", "absent")
	p.eq(p.byIndex(won, 0), "applied", "true")
}

func kvLimits(p *probe) {
	k := p.gwKey()
	many := func(n int, op string) string { return strings.TrimSuffix(strings.Repeat(op+",", n), ",") }
	for _, tc := range []struct {
		ops         string
		status      int
		err, reason string
	}{
		{p.put(k, "1", "") + "," + p.put(k, "2", ""), 400, "kv_bad_request", "kv_duplicate_key_in_call"},
		{`{"op":"put","ns":"queen-kafka","key":"` + k + `","value":1}`, 400, "kv_bad_request", "kv_expiry_not_specified"},
		{`{"op":"put","ns":"queen-kafka","key":"` + k + `","value":1,"forever":false}`, 400, "kv_bad_request", "kv_expiry_not_specified"},
		{p.put(k, "1", `,"ttlSeconds":0`), 400, "kv_bad_request", "kv_bad_ttl"},
		{p.put(k, "1", `,"expect":-1`), 400, "kv_bad_request", "kv_bad_expect"},
		{p.put(k, "1", `,"tenant":"x"`), 400, "kv_bad_request", "kv_tenant_not_an_input"},
		{p.put(k+strings.Repeat("k", 513), "1", ""), 413, "payload_too_large", "kv_key_too_large"},
		{p.put(k, `"`+strings.Repeat("v", 65_535)+`"`, ""), 413, "payload_too_large", "kv_value_too_large"},
		{many(257, `{"op":"getMany","ns":"queen-kafka","keys":["qk:a"]}`), 400, "kv_bad_request", "kv_too_many_ops"},
		{`{"op":"getMany","ns":"queen-kafka","keys":[` + many(1025, `"qk:a"`) + `]}`, 400, "kv_bad_request", "kv_too_many_keys"},
	} {
		r := p.kv(acme, tc.ops)
		p.status(r, tc.status)
		p.eq(r, "error", tc.err, "reason", tc.reason)
	}
	p.want2xx(p.kv(acme, p.put(k, `"`+strings.Repeat("v", 65_534)+`"`, "")))
	p.one(del(k, ""))
}

func plainKeys(p *probe) {
	t := p.cluster("local", "{}")
	run := func(op string) reply { return p.byIndex(p.want2xx(p.post(t.key, "/api/v1/kv", `[`+op+`]`)), 0) }
	p.eq(run(`{"op":"get","ns":"n","key":"a"}`), "op", "get", "found", "false")
	p.eq(run(`{"op":"putIfAbsent","ns":"n","key":"a","value":1,"forever":true}`), "op", "put", "applied", "true")
	p.eq(run(`{"op":"putIfAbsent","ns":"n","key":"a","value":2,"forever":true}`), "op", "put", "applied", "false", "reason", "exists", "value", "1")
	r := run(`{"op":"get","ns":"n","key":"a"}`)
	p.eq(r, "found", "true", "key", "a", "value", "1", "expiresAt", "null")
	if !strings.HasSuffix(r.at("updatedAt"), "+00:00") {
		p.errorf("updatedAt %s", r.at("updatedAt"))
	}
	p.eq(run(`{"op":"incr","ns":"n","key":"i","by":5,"forever":true}`), "op", "incr", "applied", "true", "value", "5")
	p.eq(run(`{"op":"incr","ns":"n","key":"i","by":-2,"forever":true}`), "value", "3")
	for _, ns := range []string{"", "No", "-a", strings.Repeat("n", 65)} {
		p.eq(p.post(t.key, "/api/v1/kv", `[{"op":"get","ns":"`+ns+`","key":"a"}]`), "reason", "kv_bad_namespace")
	}
	p.eq(p.post(t.key, "/api/v1/kv", `[{"op":"swap","ns":"n","key":"a"}]`), "reason", "kv_unknown_op")
	p.eq(p.post(t.key, "/api/v1/kv", `[{"op":"get","ns":"n","key":""}]`), "reason", "kv_bad_key")
	p.eq(p.post(t.key, "/api/v1/kv", `[{"op":"getPrefix","ns":"n","prefix":""}]`), "reason", "kv_prefix_required")
	p.eq(p.post(t.key, "/api/v1/kv", `[`), "reason", "kv_bad_body")
}

// txnCases are cell-http §3.8.
func txnCases() []kase {
	return []kase{
		{section: "3.8", name: "records and keys together, one flat index space", items: is(routes, transactions), run: txnCommits},
		{section: "3.8", name: "a lost fence is 200, names its place, and nothing is written", items: is(transactions), run: txnFenced},
		{section: "3.8", name: "no records", items: is(transactions), run: func(p *probe) {
			k := p.gwKey()
			r := p.txn("", p.put(k, "1", `,"expect":0,"required":true`))
			p.eq(r, "success", "true", "results.0.opIndex", "0", "results.0.type", "kv", "results.1", "absent")
		}},
		{section: "3.8", name: "64 operations and no page", items: is(transactions), run: func(p *probe) {
			k := p.gwKey()
			ops := make([]string, 65)
			for i := range ops {
				ops[i] = p.put(fmt.Sprintf("%s%d", k, i), "1", "")
			}
			if r := p.txn("", strings.Join(ops, ",")); r.status != 400 && r.at("success") != "false" {
				if !strings.Contains(p.get(acme, lanes).header.Get("X-Queen-Capabilities"), "txn-kv=") {
					p.errorf("65 operations: %d %.200s", r.status, r.body)
				}
			}
			p.eq(p.txn("", strings.Join(ops[:64], ",")), "success", "true")
			if r := p.txn("", `{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}`); r.status != 400 && r.at("success") != "false" {
				p.errorf("a page: %d %.200s", r.status, r.body)
			}
		}},
		{section: "3.8", name: "produce, consume and read commit; consume alone does not", items: is(scopes, transactions), run: func(p *probe) {
			k := p.gwKey()
			body := `{"operations":[],"kv":[` + p.put(k, "1", "") + `]}`
			p.eq(p.post(acmeTxn, "/api/v1/transaction", body), "success", "true")
			p.refused(p.post(acmeConsume, "/api/v1/transaction", body), 403, "forbidden", "operation not permitted for this credential")
		}},
		{section: "3.8", name: "transactions keep their cluster", items: is(isolation, transactions), run: func(p *probe) {
			q, k := p.name("out"), p.gwKey()
			p.eq(p.txn(rec(q, "0", "1"), p.put(k, "1", "")), "success", "true")
			p.eq(p.fetch(globex, q, "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
			p.eq(p.byIndex(p.want2xx(p.kv(globex, `{"op":"getMany","ns":"queen-kafka","keys":["`+k+`"]}`)), 0), "missing", `["`+k+`"]`)
		}},
	}
}

func (p *probe) txn(items, kv string) reply {
	operations := ""
	if items != "" {
		operations = `{"type":"push","items":[` + items + `]}`
	}
	return p.post(acmeTxn, "/api/v1/transaction", `{"operations":[`+operations+`],"kv":[`+kv+`]}`)
}

func txnCommits(p *probe) {
	q, k := p.name("out"), p.gwKey()
	r := p.txn(rec(q, "0", "1")+","+rec(q, "1", "2"), p.put(k+"a", "1", "")+","+p.put(k+"b", "2", ""))
	p.status(r, 200)
	p.eq(r, "success", "true",
		"results.0.index", "0", "results.0.type", "push", "results.0.success", "true", "results.0.opIndex", "absent",
		"results.1.index", "1", "results.1.type", "push",
		"results.2.index", "2", "results.2.opIndex", "0", "results.2.type", "kv", "results.2.op", "put", "results.2.applied", "true", "results.2.key", k+"a", "results.2.value", "1",
		"results.3.index", "3", "results.3.opIndex", "1", "results.4", "absent")
	if r.at("transactionId") == "absent" {
		p.errorf("no transactionId")
	}
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.records.0.payload", "1", "entries.0.highWatermark", "1")
	p.eq(p.fetch(acme, q, "1", 0), "entries.0.records.0.payload", "2")
	p.eq(p.getMany(k+"a", k+"b"), "rows.0.version", r.at("results.2.version"), "rows.1.version", r.at("results.3.version"))
}

func txnFenced(p *probe) {
	q, k := p.name("out"), p.gwKey()
	version := p.one(p.put(k+"f", `{"state":"open"}`, "")).at("version")
	r := p.txn(rec(q, "0", "1"), p.put(k+"a", "1", "")+","+p.put(k+"f", "1", `,"expect":1,"required":true`))
	p.status(r, 200)
	p.eq(r, "success", "false", "ok", "false", "reason", "kv_precondition", "error", "kv_precondition_failed", "results", "[]",
		"failedIndex", "2", "kvReason", "version", "version", version, "value", `{"state":"open"}`)
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
	p.eq(p.getMany(k+"a"), "missing", `["`+k+`a"]`)
}
