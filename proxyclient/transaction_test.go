package proxyclient

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func encoded(count int, text string) Items { return Items{Encoded: []byte(text), Count: count} }

var txnOps = []KVOp{
	{Op: KVPut, Key: "qk:txn:t", Value: []byte(`{"s":1}`), Expect: ExpectVersion(512), Required: true},
	{Op: KVPut, Key: "qk:groups:g", Value: []byte(`{}`), Expect: ExpectAbsent()},
}

const txnResults = `{"index":2,"opIndex":0,"type":"kv","op":"put","applied":true,"key":"qk:txn:t","value":{"s":1},"version":640},` +
	`{"index":3,"opIndex":1,"type":"kv","op":"put","applied":false,"reason":"exists","key":"qk:groups:g","value":{"o":1},"version":7}`

// Items and writes are one call; results come in any order.
func TestTransaction(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"transactionId":"x","success":true,"results":[{"index":0,"type":"push","success":true},`+txnResults+
		`,{"index":1,"type":"push","duplicate":true}]}`))
	got, err := c.Transaction(t.Context(), testScope(t), []Items{encoded(0, ""), encoded(1, `,{"a":1}`), encoded(1, `,{"b":2}`)}, txnOps)
	if err != nil {
		t.Fatal(err)
	}
	want := []KVResult{
		{Applied: true, Value: []byte(`{"s":1}`), Version: 640},
		{Reason: "exists", Value: []byte(`{"o":1}`), Version: 7},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	wantBody := `{"operations":[{"type":"push","items":[{"a":1},{"b":2}]}],"kv":[` +
		`{"op":"put","ns":"queen-kafka","key":"qk:txn:t","value":{"s":1},"forever":true,"expect":512,"required":true},` +
		`{"op":"put","ns":"queen-kafka","key":"qk:groups:g","value":{},"forever":true,"expect":0}]}`
	if h := cell.last(t); h.body != wantBody || !json.Valid([]byte(h.body)) || h.uri != "/api/v1/transaction" || h.method != http.MethodPost {
		t.Errorf("%s %s %s", h.method, h.uri, h.body)
	}
}

// Without records there is no push.
func TestTransactionOfOffsetsOnly(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"success":true,"results":[`+txnResults+`]}`))
	if _, err := c.Transaction(t.Context(), testScope(t), nil, txnOps); err != nil {
		t.Fatal(err)
	}
	if body := cell.last(t).body; !strings.HasPrefix(body, `{"operations":[],"kv":[{`) || !json.Valid([]byte(body)) {
		t.Error(body)
	}
}

// A lost condition names its operation, whatever is around it; its verdict may
// lack anything.
func TestTransactionPrecondition(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Error{
		`{"success":false,"ok":false,"reason":"kv_precondition","results":[],"failedIndex":2,"kvReason":"version","version":655,"value":{"w":1}}`: {
			FailedIndex: 1, Reason: "version", Version: 655, Value: []byte(`{"w":1}`),
		},
		`{"success":false,"reason":"kv_precondition","results":null,"failedIndex":1,"version":3}`: {Version: 3},
		`{"success":false,"reason":"kv_precondition"}`:                                            {},
		`{"ok":false,"reason":"kv_precondition"}`:                                                 {},
	} {
		c, cell := talk(t, says(body))
		_, err := c.Transaction(t.Context(), testScope(t), []Items{encoded(1, `,{}`)}, txnOps)
		e := mustError(t, err, KindPrecondition)
		if e.FailedIndex != want.FailedIndex || e.Reason != want.Reason || e.Version != want.Version || string(e.Value) != string(want.Value) || e.Route != RouteTxn {
			t.Errorf("%s: %+v", body, e)
		}
		if n := len(cell.requests()); n != 1 {
			t.Errorf("%d calls", n)
		}
	}
}

// Anything else that is no whole success is a failure of which nobody knows what
// it did; never a success, and never a lost condition.
func TestTransactionFailures(t *testing.T) {
	t.Parallel()
	push := `{"index":0,"type":"push","success":true},`
	for what, answer := range map[string]http.HandlerFunc{
		"refused":                 says(`{"success":false,"reason":"db_error","results":[]}`),
		"refused, no reason":      says(`{"success":false}`),
		"no results":              says(`{"success":true}`),
		"results are null":        says(`{"success":true,"results":null}`),
		"an item is missing":      says(`{"success":true,"results":[` + txnResults + `]}`),
		"an item too many":        says(`{"success":true,"results":[` + push + push + txnResults + `]}`),
		"an item failed":          says(`{"success":true,"results":[{"index":0,"type":"push","success":false},` + txnResults + `]}`),
		"an operation is missing": says(`{"success":true,"results":[` + push + strings.SplitAfter(txnResults, "640}")[0] + `]}`),
		"an operation twice":      says(`{"success":true,"results":[` + push + txnResults + `,` + strings.SplitAfter(txnResults, "640}")[0] + `]}`),
		"an ordinal out of range": says(`{"success":true,"results":[` + push + strings.Replace(txnResults, `"opIndex":1`, `"opIndex":2`, 1) + `]}`),
		"an ordinal of no kv":     says(`{"success":true,"results":[` + push + strings.Replace(txnResults, `"type":"kv"`, `"type":"ack"`, 1) + `]}`),
		"another key":             says(`{"success":true,"results":[` + push + strings.Replace(txnResults, "qk:txn:t", "qk:txn:u", 1) + `]}`),
		"the fence did not apply": says(`{"success":true,"results":[` + push + strings.Replace(txnResults, `"applied":true`, `"applied":false`, 1) + `]}`),
		"results twice":           says(`{"success":true,"results":[` + push + txnResults + `],"results":[]}`),
		"no JSON":                 says(`oops`),
		"cut short":               says(`{"success":true,"results":[` + push + txnResults),
		"503":                     refuses(503, `{"error":"x","code":"retry"}`),
		"429":                     refuses(429, `{"error":"x"}`, "Retry-After", "2"),
		"413":                     refuses(413, `{"error":"x"}`),
	} {
		c, cell := talk(t, answer)
		results, err := c.Transaction(t.Context(), testScope(t), []Items{encoded(1, `,{}`)}, txnOps)
		if err == nil || results != nil {
			t.Errorf("%s: %+v, %v", what, results, err)
		}
		if e, ok := AsError(err); ok && e.Kind == KindPrecondition {
			t.Errorf("%s is taken for a lost condition: %v", what, err)
		}
		if n := len(cell.requests()); n != 1 {
			t.Errorf("%s: %d calls: it may have happened", what, n)
		}
	}
}
