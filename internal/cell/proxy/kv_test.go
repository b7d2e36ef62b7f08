package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// TestKafkaKVRule is the rule of cell-http §5.2 on a plan without keys: what a
// gateway's own batch is, and what is not.
func TestKafkaKVRule(t *testing.T) {
	r := newRig(t)
	if err := r.control.SetPlan("acme", control.PlanFree); err != nil {
		t.Fatal(err)
	}
	r.override("acme", `{"max_req_per_sec":null}`)
	consume, produce := r.key("acme", "consume"), r.key("acme", "produce")
	for _, tc := range []struct {
		ops string // the array
		own bool
	}{
		{`[{"op":"put","ns":"queen-kafka","key":"qk:a","value":1,"forever":true}]`, true},
		{`[{"op":"delete","ns":"queen-kafka","key":"qk:a"}]`, true},
		{`[{"op":"getMany","ns":"queen-kafka","keys":["qk:a","qk:b"]}]`, true},
		{`[{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:"}]`, true},
		{`[{"op":"getPrefix","ns":"queen-s3","prefix":"s3:"}]`, true},
		{`[{"op":"put","ns":"queen-kafka","key":"qk:a"}]`, true}, // the broker's to refuse
		{`[{"op":"get","ns":"queen-kafka","key":"qk:a"}]`, false},
		{`[{"op":"putIfAbsent","ns":"queen-kafka","key":"qk:a","value":1,"forever":true}]`, false},
		{`[{"op":"incr","ns":"queen-kafka","key":"qk:a","forever":true}]`, false},
		{`[{"op":"check","ns":"queen-kafka","key":"qk:a","expect":0}]`, false},
		{`[{"op":"delete","ns":"mine","key":"qk:a"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"a"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"s3:a"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"qk:a"},{"op":"delete","ns":"queen-s3","key":"s3:a"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":7}]`, false},
		{`[{"op":"getMany","ns":"queen-kafka","keys":[]}]`, false},
		{`[{"op":"getMany","ns":"queen-kafka","keys":["qk:a",7]}]`, false},
		{`[{"op":"getMany","ns":"queen-kafka","keys":["qk:a","b"]}]`, false},
		{`[{"op":"getMany","ns":"queen-kafka","keys":"qk:a"}]`, false},
		{`[{"op":"getPrefix","ns":"queen-kafka","prefix":"q"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"a","key":"qk:a"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"qk:a","prefix":"x"}]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"qk:a"},7]`, false},
		{`[{"op":"delete","ns":"queen-kafka","key":"qk:a"},{"op":"get","ns":"queen-kafka","key":"qk:a"}]`, false},
		{`[]`, false},
		{`[`, false},
		{`"x"`, false},
	} {
		for _, body := range []string{tc.ops, `{"operations":` + tc.ops + `}`} {
			got := r.post(consume, "/api/v1/kv", body)
			if !tc.own {
				isRefusal(t, got, 403, "feature_gated", "not in your plan")
				continue
			}
			if got.status == 403 {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
			isRefusal(t, r.post(produce, "/api/v1/kv", body), 403, "forbidden", "operation not permitted for this credential")
		}
	}
	twice := `{"operations":[{"op":"get","ns":"mine","key":"a"}],"operations":[{"op":"delete","ns":"queen-kafka","key":"qk:a"}]}`
	isRefusal(t, r.post(consume, "/api/v1/kv", twice), 403, "feature_gated", "not in your plan")
}

func own(ops ...string) string { return `{"operations":[` + strings.Join(ops, ",") + `]}` }

// TestKVShapes is cell-http §4.4.
func TestKVShapes(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	run := func(ops ...string) []map[string]any {
		t.Helper()
		body := decoded[struct{ Results []map[string]any }](t, r.mustPost(key, "/api/v1/kv", own(ops...)))
		byIndex := make([]map[string]any, len(ops))
		for _, res := range body.Results {
			byIndex[int(res["index"].(float64))] = res
		}
		return byIndex
	}
	show := func(res map[string]any, names ...string) string {
		picked := map[string]any{}
		for _, n := range names {
			v, there := res[n]
			if !there {
				v = "ABSENT"
			}
			picked[n] = v
		}
		text, err := json.Marshal(picked)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	put := run(`{"op":"put","ns":"n","key":"a","value":{"x": 1},"forever":true}`, `{"op":"put","ns":"n","key":"b","value":null,"ttlSeconds":60}`)
	if got := show(put[0], "op", "applied", "key", "value", "reason"); got != `{"applied":true,"key":"a","op":"put","reason":"ABSENT","value":{"x":1}}` {
		t.Errorf("put %s", got)
	}
	lost := run(`{"op":"putIfAbsent","ns":"n","key":"a","value":2,"forever":true}`, `{"op":"put","ns":"n","key":"z","value":2,"forever":true,"expect":7}`, `{"op":"delete","ns":"n","key":"y"}`)
	if got := show(lost[0], "op", "applied", "value", "reason"); got != `{"applied":false,"op":"put","reason":"exists","value":{"x":1}}` {
		t.Errorf("putIfAbsent %s", got)
	}
	if got := show(lost[1], "applied", "value", "reason", "version"); got != `{"applied":false,"reason":"absent","value":null,"version":0}` {
		t.Errorf("put expect 7 %s", got)
	}
	if got := show(lost[2], "op", "applied", "reason"); got != `{"applied":false,"op":"delete","reason":"absent"}` {
		t.Errorf("delete %s", got)
	}
	read := run(`{"op":"get","ns":"n","key":"a"}`, `{"op":"get","ns":"n","key":"c"}`, `{"op":"getMany","ns":"n","keys":["c","b","a"]}`,
		`{"op":"getPrefix","ns":"n","prefix":"a"}`, `{"op":"incr","ns":"n","key":"i","by":5,"forever":true}`)
	if got := show(read[0], "found", "key", "value", "expiresAt"); got != `{"expiresAt":null,"found":true,"key":"a","value":{"x":1}}` || read[0]["version"] != put[0]["version"] {
		t.Errorf("get %s", got)
	}
	if at, ok := read[0]["updatedAt"].(string); !ok || !strings.HasSuffix(at, "+00:00") {
		t.Errorf("updatedAt %v", read[0]["updatedAt"])
	}
	if got := show(read[1], "found"); got != `{"found":false}` {
		t.Errorf("get of nothing %s", got)
	}
	rows := read[2]["rows"].([]any)
	if got := show(read[2], "missing", "truncated"); got != `{"missing":["c"],"truncated":false}` || len(rows) != 2 {
		t.Errorf("getMany %s, %d rows", got, len(rows))
	}
	if row := rows[1].(map[string]any); row["key"] != "b" || row["value"] != nil || row["expiresAt"] == nil {
		t.Errorf("row %v", row)
	}
	if got := show(read[3], "truncated", "nextAfter"); got != `{"nextAfter":null,"truncated":false}` {
		t.Errorf("getPrefix %s", got)
	}
	if got := show(read[4], "op", "applied", "value"); got != `{"applied":true,"op":"incr","value":5}` {
		t.Errorf("incr %s", got)
	}
	page := run(`{"op":"getPrefix","ns":"n","prefix":"a","limit":1}`, `{"op":"put","ns":"n","key":"aa","value":1,"forever":true}`, `{"op":"getPrefix","ns":"n","prefix":"a","after":"a","keysOnly":true}`)
	if got := show(page[0], "truncated", "nextAfter"); got != `{"nextAfter":"a","truncated":true}` {
		t.Errorf("page %s", got)
	}
	if rows := page[2]["rows"].([]any); len(rows) != 1 || show(rows[0].(map[string]any), "key", "value") != `{"key":"aa","value":"ABSENT"}` {
		t.Errorf("second page %v", rows)
	}
}

// TestKVRefusals is the envelope of cell-http §4.7: one that no other route has.
func TestKVRefusals(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	put := func(more string) string { return `{"op":"put","ns":"n","key":"a","value":1` + more + `}` }
	many := func(n int, op func(i int) string) string {
		ops := make([]string, n)
		for i := range ops {
			ops[i] = op(i)
		}
		return own(ops...)
	}
	keys := func(n int) string { return `["k"` + strings.Repeat(`,"k"`, n-1) + `]` }
	for _, tc := range []struct {
		name, body string
		status     int
		err        string
		reason     string
	}{
		{"no JSON", `{"operations":[`, 400, "kv_bad_request", "kv_bad_body"},
		{"no batch", `{}`, 400, "kv_bad_request", "kv_bad_body"},
		{"text behind it", `[] x`, 400, "kv_bad_request", "kv_bad_body"},
		{"no operation", own(`7`), 400, "kv_bad_request", "kv_bad_body"},
		{"a flag that is none", own(put(`,"forever":"yes"`)), 400, "kv_bad_request", "kv_bad_body"},
		{"no value", own(`{"op":"put","ns":"n","key":"a","forever":true}`), 400, "kv_bad_request", "kv_bad_body"},
		{"unknown", own(`{"op":"swap","ns":"n","key":"a"}`), 400, "kv_bad_request", "kv_unknown_op"},
		{"namespace", own(`{"op":"get","ns":"No","key":"a"}`), 400, "kv_bad_request", "kv_bad_namespace"},
		{"empty key", own(`{"op":"get","ns":"n","key":""}`), 400, "kv_bad_request", "kv_bad_key"},
		{"zero byte", own(`{"op":"get","ns":"n","key":"a\u0000"}`), 400, "kv_bad_request", "kv_bad_key"},
		{"long key", own(`{"op":"get","ns":"n","key":"` + strings.Repeat("k", 513) + `"}`), 413, "payload_too_large", "kv_key_too_large"},
		{"long value", own(`{"op":"put","ns":"n","key":"a","forever":true,"value":"` + strings.Repeat("v", 65536) + `"}`), 413, "payload_too_large", "kv_value_too_large"},
		{"prefix", own(`{"op":"getPrefix","ns":"n","prefix":""}`), 400, "kv_bad_request", "kv_prefix_required"},
		{"no expiry", own(put("")), 400, "kv_bad_request", "kv_expiry_not_specified"},
		{"forever false", own(put(`,"forever":false`)), 400, "kv_bad_request", "kv_expiry_not_specified"},
		{"two expiries", own(put(`,"forever":true,"ttlSeconds":1`)), 400, "kv_bad_request", "kv_expiry_not_specified"},
		{"ttl 0", own(put(`,"ttlSeconds":0`)), 400, "kv_bad_request", "kv_bad_ttl"},
		{"ttl text", own(put(`,"ttlSeconds":"1"`)), 400, "kv_bad_request", "kv_bad_ttl"},
		{"expect −1", own(put(`,"forever":true,"expect":-1`)), 400, "kv_bad_request", "kv_bad_expect"},
		{"expect null", own(put(`,"forever":true,"expect":null`)), 400, "kv_bad_request", "kv_bad_expect"},
		{"expect text", own(put(`,"forever":true,"expect":"1"`)), 400, "kv_bad_request", "kv_bad_expect"},
		{"a key twice", own(put(`,"forever":true`), put(`,"forever":true`)), 400, "kv_bad_request", "kv_duplicate_key_in_call"},
		{"tenant", own(put(`,"forever":true,"tenant":"x"`)), 400, "kv_bad_request", "kv_tenant_not_an_input"},
		{"operations", many(257, func(i int) string { return fmt.Sprintf(`{"op":"get","ns":"n","key":"k%d"}`, i) }), 400, "kv_bad_request", "kv_too_many_ops"},
		{"many more", many(20_000, func(int) string { return `{"op":"get","ns":"n","key":"k"}` }), 400, "kv_bad_request", "kv_too_many_ops"},
		{"keys", own(`{"op":"getMany","ns":"n","keys":` + keys(1025) + `}`), 400, "kv_bad_request", "kv_too_many_keys"},
		{"keys of pages", own(`{"op":"getPrefix","ns":"n","prefix":"a","limit":5000}`, `{"op":"getPrefix","ns":"n","prefix":"b","limit":25}`), 400, "kv_bad_request", "kv_too_many_keys"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := r.post(key, "/api/v1/kv", tc.body)
			e := decoded[struct{ Error, Reason, Detail string }](t, got.body)
			if got.status != tc.status || e.Error != tc.err || e.Reason != tc.reason || e.Detail == "" {
				t.Errorf("%d %.300s", got.status, got.body)
			}
		})
	}
	if got := r.broker.KVStats(r.tenantOf("acme")); got != (broker.KVUsage{}) {
		t.Errorf("refused batches left %+v", got)
	}
	big := r.post(key, "/api/v1/kv", padded(`[]`, 16<<20+1))
	isRefusal(t, big, 413, "payload_too_large", "request body exceeds cap")
}

func (r *rig) tenantOf(slug string) broker.Tenant {
	r.t.Helper()
	v, ok := r.control.BySlug(slug)
	if !ok {
		r.t.Fatalf("no cluster %s", slug)
	}
	return broker.Tenant(v.BrokerTenant)
}

// TestLostPreconditions: 200, the row that won, and nothing written.
func TestLostPreconditions(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.mustPost(key, "/api/v1/kv", own(`{"op":"put","ns":"n","key":"a","value":{"node":2},"forever":true}`))
	put := func(k string, more string) string {
		return `{"op":"put","ns":"n","key":"` + k + `","value":1,"forever":true` + more + `}`
	}
	type verdict struct {
		Success     *bool
		OK          *bool
		Reason      string
		Error       string
		Results     []any
		FailedIndex int
		KVReason    string
		Version     int64
		Value       json.RawMessage
	}
	v := decoded[verdict](t, r.mustPost(key, "/api/v1/kv", own(put("b", ""), put("a", `,"expect":1000000,"required":true`))))
	if v.OK == nil || *v.OK || v.Success != nil || v.Results != nil || v.Reason != "kv_precondition" ||
		v.FailedIndex != 1 || v.KVReason != "version" || v.Version == 0 || string(v.Value) != `{"node":2}` {
		t.Errorf("batch: %+v", v)
	}
	txn := `{"operations":[{"type":"push",` + onePush("out", "0", "1")[1:] + `],"kv":[` + put("b", "") + `,` + put("a", `,"expect":0,"required":true`) + `]}`
	v = decoded[verdict](t, r.mustPost(key, "/api/v1/transaction", txn))
	if v.OK == nil || *v.OK || v.Success == nil || *v.Success || v.Results == nil || v.Reason != "kv_precondition" || v.Error != "kv_precondition_failed" ||
		v.FailedIndex != 2 || v.KVReason != "exists" || string(v.Value) != `{"node":2}` {
		t.Errorf("transaction: %+v", v)
	}
	if got := r.mustPost(key, "/api/v1/kv", own(`{"op":"getMany","ns":"n","keys":["b"]}`)); !strings.Contains(got, `"missing":["b"]`) {
		t.Errorf("something was written: %s", got)
	}
	if len(r.lanes(key).Queues) != 0 {
		t.Error("a lost transaction made a queue")
	}
}

// TestTransaction is cell-http §3.8: one flat index space, items first.
func TestTransaction(t *testing.T) {
	r := newRig(t)
	key := r.key("acme", "produce", "consume", "read")
	body := `{"operations":[{"items":[{"queue":"out","partition":"0","payload":1},{"queue":"out","partition":"1","payload":2}],"type":"push"},` +
		`{"type":"push","queue":"out","partition":"0","payload":3}],` +
		`"kv":[{"op":"put","ns":"queen-kafka","key":"qk:txn:t","value":{"s":1},"forever":true},{"op":"delete","ns":"queen-kafka","key":"qk:x"}]}`
	type result struct {
		Index   int
		OpIndex *int
		Type    string
		Success *bool
		Op      string
		Applied *bool
		Key     string
		Version int64
	}
	got := decoded[struct {
		TransactionID string
		Success       bool
		Results       []result
	}](t, r.mustPost(key, "/api/v1/transaction", body))
	if !got.Success || len(got.Results) != 5 || len(got.TransactionID) != 36 {
		t.Fatalf("%+v", got)
	}
	for i, res := range got.Results {
		push := i < 3
		if res.Index != i || push != (res.OpIndex == nil) || push != (res.Type == "push") || push && !*res.Success || !push && *res.OpIndex != i-3 {
			t.Errorf("result %d: %+v", i, res)
		}
	}
	if kv := got.Results[3]; kv.Op != "put" || !*kv.Applied || kv.Key != "qk:txn:t" || kv.Version == 0 {
		t.Errorf("%+v", kv)
	}
	if r.end(key, "out", "0") != 2 || r.end(key, "out", "1") != 1 {
		t.Error("the records are not where they belong")
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no JSON":       {`{`, 400, `"bad_body"`},
		"no object":     {`[]`, 400, `"bad_request"`},
		"no type":       {`{"operations":[{"items":[]}]}`, 400, `"bad_request"`},
		"kv no array":   {`{"operations":[],"kv":{}}`, 400, `"bad_request"`},
		"twice":         {`{"operations":[],"operations":[]}`, 400, `"bad_request"`},
		"an item short": {`{"operations":[{"type":"push","items":[{"queue":"q"}]}]}`, 400, `"bad_request"`},
		"half an ack":   {`{"operations":[{"type":"ack","transactionId":"x"}]}`, 400, `"bad_request"`},
		"a lost ack":    {`{"operations":[{"type":"ack","transactionId":"x","partitionId":"y"}]}`, 200, `"reason":"ack_rejected"`},
		"a timer":       {`{"operations":[{"type":"timer"}]}`, 200, `"reason":"bad_request"`},
		"a page":        {`{"kv":[{"op":"getPrefix","ns":"n","prefix":"a"}]}`, 400, `kv_`},
		"65 keys":       {`{"kv":[` + strings.TrimSuffix(strings.Repeat(`{"op":"get","ns":"n","key":"k"},`, 65), ",") + `]}`, 400, `"kv_too_many_ops"`},
	} {
		if got := r.post(key, "/api/v1/transaction", tc.body); got.status != tc.status || !strings.Contains(got.body, tc.want) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestGroups is cell-http §3.10, as far as the proxy renders it.
func TestGroups(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":1},{"queue":"orders","partition":"0","payload":2}]}`)
	r.mustPost(key, "/api/v1/kv", own(`{"op":"put","ns":"queen-kafka","key":"qk:group:a%3Ab:orders:0","value":{"offset":1,"metadata":"","ts":1},"forever":true}`))
	got := r.get(key, "/api/v1/consumer-groups")
	want := `[{"name":"a:b","queueName":"orders","topics":["orders"],"members":1,"partitionCursors":1,"totalLag":1,"partitionsWithLag":1,` +
		`"storage":"segments","subscriptionMode":null,"subscriptionTimestamp":null,"subscriptionCreatedAt":null,"conflation":false,"kind":"kafka"}]`
	if got.status != 200 || got.body != want {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.get(r.full("rival"), "/api/v1/consumer-groups"); got.body != `[]` {
		t.Errorf("the rival sees %s", got.body)
	}
}
