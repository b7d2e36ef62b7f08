package proxy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// naivelyPrivate is the rule of cell-http §5.2 once more, by another decoder.
func naivelyPrivate(body []byte) bool {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	if object, ok := v.(map[string]any); ok {
		v = object["operations"]
	}
	ops, ok := v.([]any)
	if !ok || len(ops) == 0 {
		return false
	}
	first, _ := ops[0].(map[string]any)
	prefix := map[any]string{"queen-kafka": "qk:", "queen-s3": "s3:"}[first["ns"]]
	return prefix != "" && !slices.ContainsFunc(ops, func(op any) bool { return !naivelyOwn(op, first["ns"], prefix) })
}

func naivelyOwn(v, ns any, prefix string) bool {
	op, ok := v.(map[string]any)
	if !ok || op["ns"] != ns || !slices.Contains([]any{"put", "delete", "getMany", "getPrefix"}, op["op"]) {
		return false
	}
	var named []any
	for _, member := range []string{"key", "prefix"} {
		if key, there := op[member]; there {
			named = append(named, key)
		}
	}
	if list, there := op["keys"]; there {
		keys, ok := list.([]any)
		if !ok {
			return false
		}
		named = append(named, keys...)
	}
	return len(named) > 0 && !slices.ContainsFunc(named, func(key any) bool {
		text, ok := key.(string)
		return !ok || !strings.HasPrefix(text, prefix)
	})
}

func FuzzKVBody(f *testing.F) {
	for _, seed := range []string{
		`{"operations":[{"op":"put","ns":"queen-kafka","key":"qk:group:g:t:0","value":{"offset":9},"forever":true,"expect":0,"required":true}]}`,
		`[{"op":"getMany","ns":"queen-kafka","keys":["qk:a","qk:b"]},{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:","limit":1,"after":"qk:a","keysOnly":true}]`,
		`[{"op":"delete","ns":"queen-s3","key":"s3:a"}]`, `[{"op":"get","ns":"n","key":"a"}]`,
		`[{"op":"incr","ns":"n","key":"a","by":-1,"min":0,"max":9,"ttlSeconds":5}]`,
		`[{"op":"delete","ns":"queen-kafka","key":"a","key":"qk:a"}]`, `[{"op":"delete","ns":"queen-kafka","key":"qk:\u0000"}]`,
		`{"operations":[],"operations":[{}]}`, `[7]`, `[`, ``, `{"operations":null}`, `[{"op":"put","tenant":"x","expect":null,"after":null}]`,
	} {
		f.Add([]byte(seed))
	}
	in := new(kvBody)
	f.Fuzz(func(t *testing.T, body []byte) {
		in.decode(body)
		if in.private && !naivelyPrivate(body) {
			t.Fatalf("%q passes for a gateway's own batch", body)
		}
		if in.private && in.broken || in.broken && (in.grows || in.wrong == nil) {
			t.Fatalf("%q: %+v", body, in)
		}
		if in.wrong != nil {
			if in.wrong.status != 400 || in.wrong.err != string(broker.KVBadRequest) || in.wrong.reason == "" || in.wrong.detail == "" {
				t.Fatalf("%q: %+v", body, in.wrong)
			}
			return
		}
		if !json.Valid(body) || in.count < len(in.ops) {
			t.Fatalf("%q: accepted with %d operations", body, in.count)
		}
		for _, op := range in.ops {
			if op.Value != nil && !json.Valid(op.Value) {
				t.Fatalf("%q: %+v", body, op)
			}
		}
	})
}

func FuzzTxnBody(f *testing.F) {
	for _, seed := range []string{
		`{"operations":[{"type":"push","items":[{"queue":"out","partition":"0","payload":{"k":null,"v":"eA=="}}]}],"kv":[{"op":"put","ns":"queen-kafka","key":"qk:txn:t","value":1,"forever":true,"expect":5,"required":true}]}`,
		`{"operations":[{"queue":"q","payload":1,"type":"push"},{"type":"ack","transactionId":"x"}]}`,
		`{"operations":null,"kv":null}`, `{}`, `[]`, `{`, `{"operations":[{}],"kv":[[]]}`, `{"kv":[],"kv":[{}]}`,
	} {
		f.Add([]byte(seed))
	}
	in := txnBody{push: new(pushBody), kv: new(kvBody)}
	limits := control.Limits{MaxBatchItems: control.AtMost(4), MaxPayloadBytes: control.AtMost(64)}
	f.Fuzz(func(t *testing.T, body []byte) {
		in.others = ""
		if refused := in.decode(body, limits); refused != nil {
			checkRefusal(t, refused, body)
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON and was accepted", body)
		}
		for i, item := range in.push.items {
			if item.Queue == "" || item.Partition == "" || !json.Valid(item.Payload) || len(item.Payload) > 64 || i >= 4 {
				t.Fatalf("%q: item %d is %+v", body, i, item)
			}
		}
	})
}
