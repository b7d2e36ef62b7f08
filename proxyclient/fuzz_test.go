package proxyclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/tenancy"
)

// wantEnvelope is §3.4's rule written the slow way, over encoding/json.
func wantEnvelope(payload []byte) (r batch.Record, stamped, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return r, false, false
	}
	for name := range members {
		if !strings.Contains("kvht", name) || len(name) != 1 {
			return r, false, false
		}
	}
	var goodKey, goodValue bool
	r.Key, goodKey = wantBytes(members["k"])
	r.Value, goodValue = wantBytes(members["v"])
	if !goodKey || !goodValue {
		return r, false, false
	}
	if t, there := members["t"]; there {
		n, err := strconv.ParseInt(string(t), 10, 64)
		if err != nil {
			return r, false, false
		}
		r.Timestamp, stamped = n, true
	}
	if h, there := members["h"]; there {
		r.Headers, ok = wantHeaders(h)
		return r, stamped, ok
	}
	return r, stamped, true
}

func wantBytes(raw json.RawMessage) ([]byte, bool) {
	var text *string
	if raw == nil || json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	if text == nil {
		return nil, true
	}
	out, err := base64.StdEncoding.Strict().DecodeString(*text)
	if out == nil {
		out = []byte{}
	}
	return out, err == nil && !strings.ContainsAny(*text, "\r\n")
}

func wantHeaders(raw json.RawMessage) ([]batch.Header, bool) {
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, false
	}
	var out []batch.Header
	for _, members := range list {
		var name *string
		value, good := wantBytes(members["v"])
		if len(members) != 2 || !good || json.Unmarshal(members["k"], &name) != nil || name == nil {
			return nil, false
		}
		out = append(out, batch.Header{Key: []byte(*name), Value: value})
	}
	return out, true
}

// repeatsAMember reports whether an object anywhere in valid JSON names a
// member twice: there readers differ, and a cell never stores such a thing.
func repeatsAMember(payload []byte) bool {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	return repeated(d)
}

func repeated(d *json.Decoder) bool {
	token, _ := d.Token()
	names := map[json.Token]bool{}
	for d.More() && (token == json.Delim('{') || token == json.Delim('[')) {
		if token == json.Delim('{') {
			name, _ := d.Token()
			if names[name] {
				return true
			}
			names[name] = true
		}
		if repeated(d) {
			return true
		}
	}
	if token == json.Delim('{') || token == json.Delim('[') {
		_, _ = d.Token()
	}
	return false
}

func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"k":null,"v":"aGk="}`, `{"h":[{"k":"trace","v":"MQ=="},{"k":"trace","v":null}],"k":"aWQtMQ==","t":1790000000123,"v":"eyJhIjoxfQ=="}`,
		`{"k":"","v":""}`, `{"k":"YR==","v":null}`, `{"k":"a\/==","v":"\u0041AAA"}`, `{"k":null,"v":null,"t":5.0}`, `null`, `[1, "x y", {"a":"\\\""}]`,
		`{"h":[],"k":null,"v":null}`, `{"h":[{"k":"\ud83d\ude00\ud800","v":""}],"k":null,"v":null}`, ` { "k" : null , "v" : "` + strings.Repeat("YWJj", 40) + `" } `,
		`-0.5e-7`, `{"k":null,"v":null,"x":{"k":"]"}}`, "\"\x01\"", `{"k":null,"v":nul}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		doc := []byte(`{"ts":"1970-01-01T00:00:00.009Z","offset":3,"payload":` + string(payload) + `}`)
		var d decoder
		err := d.decode(doc)
		if !json.Valid(payload) {
			if err == nil && !json.Valid(doc) {
				t.Fatalf("accepted %q", doc)
			}
			return
		}
		if err != nil {
			t.Fatalf("refused %q: %v", payload, err)
		}
		if !utf8.Valid(payload) || repeatsAMember(payload) {
			return
		}
		want, stamped, ok := wantEnvelope(payload)
		if !ok {
			var compact bytes.Buffer
			_ = json.Compact(&compact, payload)
			want, stamped = batch.Record{Value: compact.Bytes()}, false
		}
		if !stamped {
			want.Timestamp = 9
		}
		want.Offset = 3
		if len(d.record.Headers) == 0 && len(want.Headers) == 0 {
			d.record.Headers, want.Headers = nil, nil
		}
		if !reflect.DeepEqual(d.record, want) {
			t.Fatalf("%q\n got %s %v\nwant %s %v", payload, line(&d.record), d.record.Offset, line(&want), want.Offset)
		}
	})
}

func FuzzFetchAnswer(f *testing.F) {
	entries := []FetchEntry{{"orders", 2, 40, 1}, {"é", 0, 0, 1}}
	f.Add([]byte(`{"entries":[{"queue":"orders","partition":"2","records":[{"offset":40,"transactionId":"0190","payload":{"k":null,"v":"aGk="},"ts":"2026-10-02T09:00:00.123Z"}],"highWatermark":42,"logStartOffset":0},{"queue":"\u00e9","partition":"0","error":"OFFSET_OUT_OF_RANGE","records":[],"highWatermark":0,"logStartOffset":0}]}`))
	f.Add([]byte(` { "x" : [ { } ] , "entries" : [ {"highWatermark":1,"records":[{"ts":null,"payload":[1,2],"offset":41},{"offset":43}],"logStartOffset":0,"partition":"2","queue":"orders"} , {"partition":"0","queue":"é","records":null,"error":"NEW","logStartOffset":0,"highWatermark":9223372036854775807} ] } `))
	f.Add([]byte(`{"entries":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var one, two []got
		results, err := readFetch(bytes.NewReader(body), entries, collect(&one))
		again, err2 := readFetch(iotest.OneByteReader(bytes.NewReader(body)), entries, collect(&two))
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(one, two) {
			t.Fatalf("split: %v, %v\n%v\n%v", err, err2, one, two)
		}
		if err != nil {
			return
		}
		if !json.Valid(body) || len(results) != len(entries) || !reflect.DeepEqual(results, again) {
			t.Fatalf("accepted %q: %v", body, results)
		}
	})
}

func FuzzPushAnswer(f *testing.F) {
	f.Add([]byte(`[{"index":0,"message_id":"0190","transaction_id":"0190","queueName":"orders","status":"queued","offset":41},{"index":1,"status":"duplicate"}]`))
	f.Add([]byte(`[{"index":1,"status":"buffered","offset":null},{"index":0,"status":"failed","x":[{}]}] `))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		results := make([]PushResult, 2)
		if err := decodePush(bytes.NewReader(body), results); err != nil {
			if decodePush(iotest.OneByteReader(bytes.NewReader(body)), results) == nil {
				t.Fatalf("%q: %v, but a byte at a time it is good", body, err)
			}
			return
		}
		again := make([]PushResult, 2) // a byte at a time, so by the long way
		if err := decodePush(iotest.OneByteReader(bytes.NewReader(body)), again); err != nil || !reflect.DeepEqual(results, again) {
			t.Fatalf("%q: %v, a byte at a time %v, %v", body, results, again, err)
		}
		var rows []map[string]json.RawMessage
		if err := json.Unmarshal(body, &rows); err != nil || len(rows) != 2 {
			t.Fatalf("accepted %q", body)
		}
		for _, r := range results {
			if r.Status > PushFailed || r.Offset < -1 {
				t.Fatalf("%q: %v", body, r)
			}
		}
	})
}

func FuzzListing(f *testing.F) {
	f.Add([]byte(`{"queues":[{"id":"7b1f","name":"orders","queue":"orders","partitions":3,"createdAt":"2026-10-02T08:00:00.000Z"}],"stats":"lanes"}`))
	f.Add([]byte(`{"queues":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		queues, err := decodeListing(body)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted %q", body)
		}
		for _, q := range queues {
			if q.Name == "" || q.Partitions < 0 {
				t.Fatalf("%q: %v", body, q)
			}
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte(`{"user_id":null,"acting_cluster":{"id":"5f0c7c1e-9a55","slug":"acme-prod"},"clusters":[{"id":"5f0c","role":null}],"scopes":{"produce":true,"consume":true,"admin":false,"read":true}}`))
	f.Add([]byte(`{"acting_cluster":{"id":"local"},"expires_at":"2026-10-02T08:00:00Z"}`))
	f.Add([]byte(`{"expires_at":1790000000123}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		who := decodeIdentity(body)
		if who != (tenancy.Identity{}) && !json.Valid(body) {
			t.Fatalf("believed %q", body)
		}
		if len(who.ClusterID) > maxClusterID || strings.ContainsFunc(who.ClusterID, notInID) {
			t.Fatalf("%q", who.ClusterID)
		}
	})
}

func FuzzKV(f *testing.F) {
	f.Add([]byte(`{"results":[{"index":0,"op":"put","applied":true,"key":"a","value":{"x":1},"version":641},{"index":1,"op":"getMany","rows":[{"key":"b","value":1,"version":2}],"missing":["c"],"truncated":true},{"index":2,"op":"getPrefix","rows":[{"key":"qk:1","value":null,"version":2}],"truncated":true,"nextAfter":"qk:1"}]}`))
	f.Add([]byte(`{"ok":false,"reason":"kv_precondition","failedIndex":0,"kvReason":"version","version":655,"value":{"node":2}}`))
	ops := []KVOp{{Op: KVPut, Key: "a"}, {Op: KVGetMany, Keys: []string{"b", "c", "d"}}, {Op: KVGetPrefix, Prefix: "qk:"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		results, err := decodeKV(body, ops)
		if err != nil {
			return
		}
		if !json.Valid(body) || len(results) != len(ops) {
			t.Fatalf("accepted %q", body)
		}
		if m := results[1]; len(m.Rows) == 0 && len(m.Missing) == 0 && len(m.Unread) != 3 {
			t.Fatalf("keys lost: %+v", m)
		}
	})
}

func FuzzTimes(f *testing.F) {
	f.Add([]byte(`{"entries":[{"queue":"orders","partition":"2","offset":17,"ts":"2026-10-02T09:00:00.004211Z","highWatermark":42,"logStartOffset":0}]}`))
	f.Add([]byte(`{"entries":[{"offset":null,"ts":null,"error":"UNKNOWN_TOPIC_OR_PARTITION"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		answers, err := decodeTimes(body, 1)
		if err == nil && (!json.Valid(body) || len(answers) != 1 || answers[0].Offset < -1 || answers[0].Timestamp < -1) {
			t.Fatalf("%q: %v", body, answers)
		}
	})
}

// What a producer writes must come out as JSON whatever its bytes are.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"orders", "a\"b\\c\n\x00\x1f", "é\u2028😀", "\xff\xc3\xed\xa0\x80\xf0\x9f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		out := appendString(nil, []byte(s))
		slow, _ := json.Marshal(s)
		if json.Unmarshal(out, &got) != nil || !utf8.Valid(out) {
			t.Fatalf("%q became %q", s, out)
		}
		if _ = json.Unmarshal(slow, &want); got != want {
			t.Fatalf("%q became %q, not %q", s, got, want)
		}
	})
}

func FuzzWireText(f *testing.F) {
	f.Add("a\x1b[31mred\x1b[0m\r\n", 403)
	f.Add("\x1b]0;title\x07\x9b1m", 500)
	f.Fuzz(func(t *testing.T, text string, status int) {
		e := &Error{Kind: KindStatus, Status: status, Text: strings.ToValidUTF8(text, "\uFFFD"), RetryAfter: -1}
		out := e.WireText()
		if strings.ContainsFunc(out, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) || utf8.RuneCountInString(out) > wireChars+1 {
			t.Fatalf("%q", out)
		}
	})
}

// FuzzSizes: whatever a cell says of sizes, no partition is negative, nor has a
// negative size.
func FuzzSizes(f *testing.F) {
	for _, seed := range []string{
		`{"queue":"orders","partitions":{"0":1204,"2":88},"truncated":true}`, `{"partitions":{"Default":1}}`, `{}`,
		`{"partitions":[{"name":"0","retainedBytes":7}]}`, `{"partitions":[{"retainedBytes":7}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, decode := range []func([]byte) ([]PartitionSize, error){decodeSizes, decodeQueueSizes} {
			sizes, err := decode(body)
			for _, s := range sizes {
				if err == nil && (s.Partition < 0 || s.Bytes < 0) {
					t.Errorf("%s: %+v", body, s)
				}
			}
		}
	})
}

// FuzzRecordInOnePass holds the two ways of reading a record against each other:
// what is read out of bytes that go on is what is read once its end is known,
// and no beginning of a record is one.
func FuzzRecordInOnePass(f *testing.F) {
	for _, seed := range []string{
		`{"offset":40,"transactionId":"0190","payload":{"k":null,"v":"aGk="},"ts":"2026-10-02T09:00:00.123Z"}`,
		`{"ts":null,"payload":[1,"]}",2],"offset":41}`, ` {"offset" : 9 }`, `{"offset":12`, `{"off\u0073et":7,"payload":{"t":-12,"k":"","v":null}}`,
		`{"a name that is longer than any that means something":{"x":[{}]},"offset":1}`, `{"offset":1,"payload":12e3}`, `{"offset":1,"payload":"}`,
		`{"offset":-1}`, `{"offset":1.0}`, `{"offset":1,"h":[}`, `{"offset" 1}`, `{"x":-,"offset":1}`,
	} {
		f.Add([]byte(seed), []byte(`,{"offset":42}]`))
	}
	f.Fuzz(func(t *testing.T, record, behind []byte) {
		var one, two decoder
		all := append(bytes.Clone(record), behind...)
		n := one.whole(all)
		if n == 0 {
			return
		}
		var s valueScan
		start := len(all) - len(bytes.TrimLeft(all, " \t\r\n"))
		if !s.run(all[start:]) || start+s.pos != n {
			t.Fatalf("%q ends at %d, not %d", all, start+s.pos, n)
		}
		if err := two.decode(all[:n]); err != nil || line(&one.record) != line(&two.record) || one.appended != two.appended {
			t.Fatalf("%q: %s, and then %s (%v)", all[:n], line(&one.record), line(&two.record), err)
		}
		for cut := range n {
			if m := two.whole(all[:cut:cut]); m != 0 {
				t.Fatalf("%q is a record of %d bytes", all[:cut], m)
			}
		}
	})
}
