package proxy

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// checkRefusal: a decoder's refusal is the client's fault, and says so.
func checkRefusal(t *testing.T, f *refusal, body []byte) {
	t.Helper()
	if f.status != http.StatusBadRequest && f.status != http.StatusRequestEntityTooLarge || f.code == "" || f.text == "" {
		t.Fatalf("%q: refused with %+v", body, f)
	}
	if f.code == "bad_request" && !json.Valid(body) {
		// A shape is complained about early, where nothing was kept.
		return
	}
	if f.code == "bad_body" && json.Valid(body) && len(body) < 1000 {
		checkKnownDifference(t, body)
	}
}

// checkKnownDifference: encoding/json accepts text that is not UTF-8; nothing
// else may be valid there and broken here.
func checkKnownDifference(t *testing.T, body []byte) {
	t.Helper()
	if string(body) == string([]rune(string(body))) {
		t.Fatalf("%q is valid JSON and was refused as none", body)
	}
}

func FuzzPushBody(f *testing.F) {
	for _, seed := range []string{
		`{"items":[]}`,
		`{"items":[{"queue":"orders","partition":"2","payload":{"k":"aWQtMQ==","v":"eyJhIjoxfQ==","t":1790000000123}}]}`,
		`{"items":[{"queue":"o","payload":{"h":[{"k":"a","v":null}],"k":null,"v":""}},{"queue":"o","partition":"0","payload":null,"transactionId":"x"}]}`,
		`{"items":[{"queue":"\u00e9\n","partition":null,"payload":[1,-2.5e10,"x"]}],"extra":{"a":[true,false]}}`,
		`{"items":[{"queue":5}],"items":{}}`, `[]`, `{`, `{"items":[{"queue":"q","payload":1},]}`, " {\t}\r\n",
	} {
		f.Add([]byte(seed))
	}
	in := new(pushBody)
	limits := control.Limits{MaxBatchItems: control.AtMost(4), MaxPayloadBytes: control.AtMost(64)}
	f.Fuzz(func(t *testing.T, body []byte) {
		if refused := in.decode(body, limits); refused != nil {
			checkRefusal(t, refused, body)
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON and was accepted", body)
		}
		for i, item := range in.items {
			if item.Queue == "" || item.Partition == "" || !json.Valid(item.Payload) || len(item.Payload) > 64 || i >= 4 {
				t.Fatalf("%q: item %d is %+v", body, i, item)
			}
		}
	})
}

func FuzzFetchBody(f *testing.F) {
	for _, seed := range []string{
		`{"entries":[{"queue":"orders","partition":"2","offset":40,"maxBytes":1048576}],"maxWaitMs":500,"minBytes":1}`,
		`{"entries":[{"queue":"orders","partition":2,"offset":9223372036854775807,"maxBytes":1}],"maxWaitMs":0,"minBytes":0}`,
		`{"entries":[{"queue":"orders","partition":"2","timestamp":1790000000000},{"queue":"o","timestamp":"2026-10-02T09:00:00.004211Z"}]}`,
		`{"entries":[{"queue":"q","offset":-1}]}`, `{"entries":null,"minBytes":-9223372036854775808}`, `{`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	in := new(fetchBody)
	f.Fuzz(func(t *testing.T, body []byte) {
		if refused := in.decodeFetch(body); refused != nil {
			checkRefusal(t, refused, body)
		} else {
			checkFetch(t, in, body)
		}
		if refused := in.decodeTimes(body); refused != nil {
			checkRefusal(t, refused, body)
			return
		}
		for _, q := range in.times {
			if q.Queue == "" || q.Partition == "" || q.Time.UnixMilli() < 0 || len(in.times) > maxEntries {
				t.Fatalf("%q: %+v", body, q)
			}
		}
	})
}

func checkFetch(t *testing.T, in *fetchBody, body []byte) {
	t.Helper()
	if !json.Valid(body) {
		t.Fatalf("%q is no JSON and was accepted", body)
	}
	if in.maxWait < 0 || in.maxWait.Milliseconds() > ceilingMaxWait || in.min < 0 || len(in.entries) > maxEntries {
		t.Fatalf("%q: wait %v, at least %d bytes, %d entries", body, in.maxWait, in.min, len(in.entries))
	}
	for _, e := range in.entries {
		if e.Queue == "" || e.Partition == "" || e.Offset < 0 || e.MaxBytes < 1 || e.MaxBytes > ceilingMaxBytes {
			t.Fatalf("%q: %+v", body, e)
		}
	}
}

func FuzzConfigureBody(f *testing.F) {
	for _, seed := range []string{
		`{"queue":"orders","dedupWindowSeconds":0,"retentionEnabled":true,"retentionSeconds":86400}`,
		`{"queue":"orders","mode":"replace","options":{"leaseTime":null,"namespace":"n","deadLetterQueue":false}}`,
		`{"queue":"orders","mode":"append"}`, `{"queue":"","ttl":-1}`, `{"queue":"q","options":[],"ttl":1e3}`, `{`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in configureBody
		if refused := in.decode(body); refused != nil {
			checkRefusal(t, refused, body)
			return
		}
		if !json.Valid(body) || in.queue == "" || len(in.settings) > maxSettings {
			t.Fatalf("%q: %+v", body, in)
		}
		o := broker.DefaultOptions()
		if err := in.change(&o); err != nil {
			t.Fatal(err)
		}
		if o.MinPopWaitTime < 0 || o.MinPopWaitTime > 60_000 || o.RetentionSinkHoldMaxSeconds < 60 || o.RetentionSeconds < 0 {
			t.Fatalf("%q: %+v", body, o)
		}
	})
}
