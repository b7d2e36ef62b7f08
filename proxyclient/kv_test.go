package proxyclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestKVOperations(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"results":[
		{"index":2,"op":"getMany","rows":[{"key":"a","value":{"x":[1]},"version":641,"expiresAt":null,"updatedAt":"t"},{"key":"n","value":null,"version":1}],"missing":["b"],"truncated":true},
		{"index":0,"op":"put","applied":true,"key":"qk:a","value":{"x":1},"version":641},
		{"op":"put","applied":false,"reason":"version","key":"qk:b","value":"other","version":655,"index":1},
		{"index":3,"op":"getPrefix","rows":[{"key":"qk:g:1","value":1,"version":2},{"key":"qk:g:2","version":3}],"truncated":true,"nextAfter":"qk:g:2"},
		{"index":5,"op":"getPrefix","rows":[],"truncated":false,"nextAfter":null},
		{"index":4,"op":"delete","applied":false,"reason":"absent","value":null,"version":0}
	],"more":1}`))
	ops := []KVOp{
		{Op: KVPut, Key: "qk:a", Value: []byte(`{"x":1}`)},
		{Op: KVPut, Key: "qk:b", TTLSeconds: 10, Expect: ExpectVersion(512), Required: true},
		{Op: KVGetMany, Keys: []string{"a", "b", "c", "n", "c", "d\""}},
		{Op: KVGetPrefix, Prefix: "qk:g:", Limit: 2, After: "qk:g:0", KeysOnly: true},
		{Op: KVDelete, NS: "other", Key: "k", Expect: ExpectAbsent()},
		{Op: KVGetPrefix, Prefix: "p"},
	}
	got, err := c.KV(t.Context(), testScope(t), ops)
	if err != nil {
		t.Fatal(err)
	}
	want := []KVResult{
		{Applied: true, Value: []byte(`{"x":1}`), Version: 641},
		{Reason: "version", Value: []byte(`"other"`), Version: 655},
		{
			Rows:    []KVRow{{"a", []byte(`{"x":[1]}`), 641}, {"n", []byte(`null`), 1}},
			Missing: []string{"b"}, Unread: []string{"c", `d"`}, Truncated: true,
		},
		{Rows: []KVRow{{"qk:g:1", []byte(`1`), 2}, {"qk:g:2", nil, 3}}, Truncated: true, NextAfter: "qk:g:2"},
		{Reason: "absent", Value: []byte(`null`)},
		{},
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%d\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
	wantBody := `{"operations":[{"op":"put","ns":"queen-kafka","key":"qk:a","value":{"x":1},"forever":true},` +
		`{"op":"put","ns":"queen-kafka","key":"qk:b","value":null,"ttlSeconds":10,"expect":512,"required":true},` +
		`{"op":"getMany","ns":"queen-kafka","keys":["a","b","c","n","c","d\""]},` +
		`{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:g:","limit":2,"after":"qk:g:0","keysOnly":true},` +
		`{"op":"delete","ns":"other","key":"k","expect":0},{"op":"getPrefix","ns":"queen-kafka","prefix":"p"}]}`
	if h := cell.last(t); h.body != wantBody || !json.Valid([]byte(h.body)) || h.uri != "/api/v1/kv" {
		t.Errorf("%s", h.body)
	}
	if r, err := c.KV(t.Context(), testScope(t), nil); r != nil || err != nil || len(cell.requests()) != 1 {
		t.Error("no operations made a call")
	}
}

func TestKVPrecondition(t *testing.T) {
	t.Parallel()
	ops := []KVOp{{Op: KVPut, Key: "k", Expect: ExpectVersion(3), Required: true}}
	c, _ := talk(t, says(`{"ok":false,"reason":"kv_precondition","failedIndex":1,"kvReason":"version","version":655,"value":{"node":2}}`))
	_, err := c.KV(t.Context(), testScope(t), ops)
	e := mustError(t, err, KindPrecondition)
	if e.FailedIndex != 1 || e.Reason != "version" || e.Version != 655 || string(e.Value) != `{"node":2}` || e.Status != 200 || e.Route != RouteKV || e.RetryAfter != -1 {
		t.Errorf("%+v", e)
	}
	c, _ = talk(t, says(`{"reason":"kv_precondition","ok":false,"results":null,"version":null}`))
	_, err = c.KV(t.Context(), testScope(t), ops)
	if e := mustError(t, err, KindPrecondition); e.FailedIndex != 0 || e.Reason != "" || e.Version != 0 || e.Value != nil {
		t.Errorf("%+v", e)
	}
	c, _ = talk(t, says(`{"ok":false,"reason":"kv_precondition","kvReason":"`+testBearer+strings.Repeat("x", 500)+`"}`))
	_, err = c.KV(t.Context(), testScope(t), ops)
	if e := mustError(t, err, KindPrecondition); len(e.Reason) > maxCode {
		t.Errorf("%+v", e)
	}
	c, _ = talk(t, says(`{"ok":false,"reason":"db_error"}`))
	_, err = c.KV(t.Context(), testScope(t), ops)
	mustError(t, err, KindBody)
	c, _ = talk(t, says(`{"ok":true,"results":[{"index":0,"applied":true}]}`))
	if r, err := c.KV(t.Context(), testScope(t), ops); err != nil || !r[0].Applied {
		t.Error(r, err)
	}
}

func TestKVAnswersThatDoNotLineUp(t *testing.T) {
	t.Parallel()
	put, many, prefix := KVOp{Op: KVPut, Key: "k"}, KVOp{Op: KVGetMany, Keys: []string{"k"}}, KVOp{Op: KVGetPrefix, Prefix: "qk:"}
	for _, x := range []struct {
		op   KVOp
		body string
	}{
		{put, ``},
		{put, `[]`},
		{put, `{}`},
		{put, `{"results":null}`},
		{put, `{"results":[]}`},
		{put, `{"results":{}}`},
		{put, `{"ok":"no"}`},
		{put, `{"results":[{"index":1,"applied":true}]}`},
		{put, `{"results":[{"index":-1,"applied":true}]}`},
		{put, `{"results":[{"applied":true}]}`},
		{put, `{"results":[{"index":0,"applied":true},{"index":0,"applied":true}]}`},
		{put, `{"results":[{"index":0,"applied":true}],"results":[{"index":0,"applied":true}]}`},
		{put, `{"results":[{"index":0}]}`},
		{put, `{"results":[{"index":0,"applied":1}]}`},
		{put, `{"results":[{"index":0,"applied":true,"key":"other"}]}`},
		{put, `{"results":[{"index":0,"applied":true}]} x`},
		{put, `{"results":[{"index":0,"applied":true}`},
		{put, `{"results":[7]}`},
		{many, `{"results":[{"index":0,"applied":true}]}`},
		{many, `{"results":[{"index":0,"rows":null}]}`},
		{many, `{"results":[{"index":0,"rows":[{"key":"x","value":1}]}]}`},
		{many, `{"results":[{"index":0,"rows":[],"missing":["x"]}]}`},
		{many, `{"results":[{"index":0,"rows":[{"key":7}]}]}`},
		{many, `{"results":[{"index":0,"rows":[],"missing":[1]}]}`},
		{prefix, `{"results":[{"index":0,"missing":[]}]}`},
		{prefix, `{"results":[{"index":0,"rows":[{"key":"x","value":1}]}]}`},
		{prefix, `{"results":[{"index":0,"rows":[],"truncated":1}]}`},
		{prefix, `{"results":[{"index":0,"rows":[{"value":1}]}]}`},
	} {
		c, _ := talk(t, says(x.body))
		got, err := c.KV(t.Context(), testScope(t), []KVOp{x.op})
		mustError(t, err, KindBody)
		if got != nil {
			t.Errorf("%s: %v", x.body, got)
		}
	}
}

// The answer's memory is its own: a later call must not change a row.
func TestKVRowsOutliveTheCall(t *testing.T) {
	t.Parallel()
	n := 0
	c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprintf(w, `{"results":[{"index":0,"rows":[{"key":"k","value":"%s","version":1}]}]}`, strings.Repeat(string(rune('a'+n)), 3000))
	})
	ops := []KVOp{{Op: KVGetMany, Keys: []string{"k"}}}
	var rows [][]byte
	for range 5 {
		r, err := c.KV(t.Context(), testScope(t), ops)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r[0].Rows[0].Value)
	}
	for i, row := range rows {
		if string(row) != `"`+strings.Repeat(string(rune('b'+i)), 3000)+`"` || cap(row) != len(row) {
			t.Errorf("row %d is %.20s… (cap %d, len %d)", i, row, cap(row), len(row))
		}
	}
}

func TestKindWords(t *testing.T) {
	t.Parallel()
	for k, want := range map[Kind]string{KindTransport: "transport", KindStatus: "status", KindBody: "body", KindPrecondition: "precondition", 0: "unknown"} {
		if k.String() != want {
			t.Error(k.String())
		}
	}
	if KVKind(9).String() != "unknown" {
		t.Error("KVKind")
	}
	for kind, want := range map[Kind]string{KindBody: "the cell's answer could not be read", KindPrecondition: "a conditional write lost"} {
		e := &Error{Kind: kind, Route: RouteKV}
		if e.WireText() != want || !strings.Contains(e.Error(), RouteKV) {
			t.Error(e.WireText(), e)
		}
	}
}
