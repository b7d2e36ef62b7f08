package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// fetched is the answer of a fetch.
type fetched struct {
	Entries []struct {
		Queue, Partition string
		Records          []struct {
			Offset        int64
			TransactionID string `json:"transactionId"`
			Payload       json.RawMessage
			TS            string `json:"ts"`
		}
		HighWatermark  int64
		LogStartOffset int64
		Error          *string
	}
}

// TestFetch is cell-http §3.5.
func TestFetch(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"bare"}`)
	first := decoded[[]pushed](t, r.mustPost(key, "/api/v1/push", `{"items":[`+
		`{"queue":"orders","partition":"2","payload":{"v":"one"}},`+
		`{"queue":"orders","partition":"2","payload":{"v":"two"},"transactionId":"tx"},`+
		`{"queue":"orders","payload":"default"}]}`))

	const empty = `"records":[],"highWatermark":0,"logStartOffset":0`
	for _, tc := range []struct{ name, body, want string }{
		{"no entries", `{"entries":[]}`, `{"entries":[]}`},
		{"entries absent", `{}`, `{"entries":[]}`},
		{"entries null", `{"entries":null}`, `{"entries":[]}`},
		{"at the end", `{"entries":[{"queue":"orders","partition":"2","offset":2}]}`, `"records":[],"highWatermark":2,"logStartOffset":0}]}`},
		{"past the end", `{"entries":[{"queue":"orders","partition":"2","offset":3}]}`, `"records":[],"highWatermark":2,"logStartOffset":0,"error":"OFFSET_OUT_OF_RANGE"}]}`},
		{
			"bounds probe", `{"entries":[{"queue":"orders","partition":"2","offset":9223372036854775807,"maxBytes":1}],"maxWaitMs":0,"minBytes":0}`,
			`"records":[],"highWatermark":2,"logStartOffset":0,"error":"OFFSET_OUT_OF_RANGE"}]}`,
		},
		{"unknown queue", `{"entries":[{"queue":"nope","partition":"2","offset":0}]}`, empty + `,"error":"UNKNOWN_TOPIC_OR_PARTITION"}]}`},
		{"unwritten partition", `{"entries":[{"queue":"bare","partition":"2","offset":0}]}`, empty + `}]}`},
		{"unwritten partition past its end", `{"entries":[{"queue":"bare","partition":"2","offset":5}]}`, empty + `,"error":"OFFSET_OUT_OF_RANGE"}]}`},
		{"partition as a number", `{"entries":[{"queue":"bare","partition":2,"offset":0}]}`, `{"entries":[{"queue":"bare","partition":"2",` + empty + `}]}`},
		{"default partition", `{"entries":[{"queue":"bare","offset":0}]}`, `{"entries":[{"queue":"bare","partition":"Default",` + empty + `}]}`},
		{"null partition", `{"entries":[{"queue":"bare","partition":null,"offset":0,"maxBytes":null}],"maxWaitMs":null,"minBytes":null}`, `"partition":"Default",` + empty},
		{"clamped bounds", `{"entries":[{"queue":"bare","partition":"0","offset":0,"maxBytes":-5}],"maxWaitMs":-1,"minBytes":-1}`, empty},
		{"huge bounds", `{"entries":[{"queue":"orders","partition":"2","offset":1,"maxBytes":9223372036854775807}],"maxWaitMs":9223372036854775807,"minBytes":1}`, `"payload":{"v":"two"}`},
		{"name echoed exactly", `{"entries":[{"queue":"no\"\\\u00fc","partition":"a/\tb","offset":0}]}`, `{"queue":"no\"\\ü","partition":"a/\tb",`},
		{"unknown members", `{"x":[{}],"entries":[{"queue":"bare","partition":"0","offset":0,"y":{"z":1}}]}`, empty},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := r.post(key, "/api/v1/fetch", tc.body); got.status != 200 || !strings.Contains(got.body, tc.want) {
				t.Errorf("got %d %s, want it to have %s", got.status, got.body, tc.want)
			}
		})
	}

	answer := decoded[fetched](t, r.mustPost(key, "/api/v1/fetch",
		`{"entries":[{"queue":"orders","offset":0},{"queue":"orders","partition":"2","offset":0},{"queue":"orders","partition":"2","offset":1}]}`))
	if len(answer.Entries) != 3 {
		t.Fatalf("%d entries", len(answer.Entries))
	}
	both := answer.Entries[1]
	if both.Queue != "orders" || both.Partition != "2" || len(both.Records) != 2 || both.Error != nil || both.HighWatermark != 2 {
		t.Fatalf("got %+v", both)
	}
	for i, want := range []string{`{"v":"one"}`, `{"v":"two"}`} {
		record := both.Records[i]
		if record.Offset != int64(i) || string(record.Payload) != want {
			t.Errorf("record %d: %+v", i, record)
		}
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(record.TS) {
			t.Errorf("record %d: ts %q", i, record.TS)
		}
	}
	if both.Records[0].TransactionID != first[0].MessageID || both.Records[1].TransactionID != "tx" {
		t.Errorf("transaction ids %q and %q", both.Records[0].TransactionID, both.Records[1].TransactionID)
	}
	if len(answer.Entries[0].Records) != 1 || len(answer.Entries[2].Records) != 1 || answer.Entries[2].Records[0].Offset != 1 {
		t.Errorf("got %+v", answer.Entries)
	}
}

// TestFetchRefusals: one wrong entry refuses the whole call.
func TestFetchRefusals(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	entries := func(n int, entry string) string {
		return `{"entries":[` + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + `]}`
	}
	const good = `{"queue":"q","partition":"0","offset":0,"timestamp":0}`
	shapes := []string{
		`{"entries":{}}`, `{"entries":"x"}`, `{"entries":[1]}`, `{"entries":[null]}`, `[]`, `null`, `{"entries":[{}]}`,
		`{"entries":[{"queue":5,"offset":0,"timestamp":0}]}`, `{"entries":[{"queue":"","offset":0,"timestamp":0}]}`,
		`{"entries":[{"queue":"q","partition":true,"offset":0,"timestamp":0}]}`, `{"entries":[{"queue":"q","partition":1.5,"offset":0,"timestamp":0}]}`,
		`{"entries":[{"queue":"q","partition":"","offset":0,"timestamp":0}]}`, entries(1025, good),
	}
	broken := []string{``, `{`, `{"entries":[` + good + `]`, `{"entries":[` + good + `,]}`, `{"entries":[]}x`, "{\"entries\":[],\"\xff\":1}", `{"entries":[{"queue":"q",]}`}
	for _, path := range []string{"/api/v1/fetch", "/api/v1/fetch/offsets"} {
		for code, bodies := range map[string][]string{"bad_request": shapes, "bad_body": broken} {
			for _, body := range bodies {
				got := r.post(key, path, body)
				var e map[string]string
				if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != http.StatusBadRequest || e["code"] != code {
					t.Errorf("%s %.100s: %d %.200s, want 400 %s", path, body, got.status, got.body, code)
				}
			}
		}
		isRefusal(t, r.post(key, path, entries(1025, good)), 400, "bad_request", "too many entries")
		if got := r.post(key, path, entries(1024, good)); got.status != 200 {
			t.Errorf("%s with 1024 entries: %d %.200s", path, got.status, got.body)
		}
	}
	for _, body := range []string{
		`{"entries":[` + good + `,{"queue":"q","partition":"0","offset":-1}]}`, `{"entries":[{"queue":"q","partition":"0"}]}`,
		`{"entries":[{"queue":"q","partition":"0","offset":null}]}`, `{"entries":[{"queue":"q","partition":"0","offset":"0"}]}`,
		`{"entries":[{"queue":"q","partition":"0","offset":1.0}]}`, `{"entries":[{"queue":"q","partition":"0","offset":9223372036854775808}]}`,
		`{"entries":[{"queue":"q","partition":"0","offset":0,"maxBytes":"1"}]}`, `{"entries":[],"maxWaitMs":"1"}`, `{"entries":[],"minBytes":1.5}`,
	} {
		if got := r.post(key, "/api/v1/fetch", body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// TestOffsetsForTimes is cell-http §3.6.
func TestOffsetsForTimes(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"bare"}`)
	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"q","partition":"0","payload":1},{"queue":"q","partition":"0","payload":2}]}`)
	ask := func(entry string) reply {
		return r.post(key, "/api/v1/fetch/offsets", `{"entries":[`+entry+`]}`)
	}
	const none = `"offset":null,"ts":null`
	const bad = "timestamp must be a non-negative number of epoch milliseconds or an ISO-8601 time"
	found := regexp.MustCompile(`^\{"entries":\[\{"queue":"q","partition":"0","offset":0,"ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z","highWatermark":2,"logStartOffset":0\}\]\}$`)
	for _, at := range []string{`0`, `1`, `"1999-12-31T23:59:59Z"`, `"2001-01-01T00:00:00.5+02:00"`} {
		if got := ask(`{"queue":"q","partition":"0","timestamp":` + at + `}`); got.status != 200 || !found.MatchString(got.body) {
			t.Errorf("%s: %d %s", at, got.status, got.body)
		}
	}
	for _, at := range []string{`99999999999999`, `9223372036854775807`, `"9999-12-31T23:59:59Z"`} {
		want := `{"entries":[{"queue":"q","partition":"0",` + none + `,"highWatermark":2,"logStartOffset":0}]}`
		if got := ask(`{"queue":"q","partition":"0","timestamp":` + at + `}`); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s", at, got.status, got.body)
		}
	}
	for _, at := range []string{`-1`, `"-1"`, `1.5`, `1e12`, `null`, `true`, `"yesterday"`, `"1969-12-31T23:59:59Z"`, `{}`, `9223372036854775808`} {
		isRefusal(t, ask(`{"queue":"q","partition":"0","timestamp":`+at+`}`), 400, "bad_request", bad)
	}
	isRefusal(t, ask(`{"queue":"q"}`), 400, "bad_request", bad)
	for name, tc := range map[string][2]string{
		"no entries":          {``, `{"entries":[]}`},
		"unknown queue":       {`{"queue":"no","partition":"0","timestamp":0}`, none + `,"highWatermark":0,"logStartOffset":0,"error":"UNKNOWN_TOPIC_OR_PARTITION"}`},
		"unwritten partition": {`{"queue":"bare","timestamp":0}`, `{"queue":"bare","partition":"Default",` + none + `,"highWatermark":0,"logStartOffset":0}]}`},
	} {
		if got := ask(tc[0]); got.status != 200 || !strings.Contains(got.body, tc[1]) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// watchedBroker says when a fetch has come to it and how it ended.
type watchedBroker struct {
	Broker
	parked chan broker.FetchRequest
	ended  chan error
}

func (w *watchedBroker) Fetch(ctx context.Context, t broker.Tenant, r broker.FetchRequest) ([]broker.FetchResult, error) {
	if r.MaxWait == 0 {
		return w.Broker.Fetch(ctx, t, r)
	}
	w.parked <- r
	results, err := w.Broker.Fetch(ctx, t, r)
	w.ended <- err
	return results, err
}

// watch wraps the broker of a rig under construction.
func watch(w *watchedBroker) rigOption {
	w.parked, w.ended = make(chan broker.FetchRequest, 1), make(chan error, 1)
	return func(cfg *Config) {
		w.Broker = cfg.Broker
		cfg.Broker = w
	}
}

// outcome is what a call beside the test came to.
type outcome struct {
	reply reply
	err   error
}

// poll starts a parked fetch of q-0 and returns when it is at the broker.
func (r *rig) poll(ctx context.Context, w *watchedBroker, key string) <-chan outcome {
	done := make(chan outcome, 1)
	go r.pollInto(ctx, key, done)
	asked := <-w.parked
	if asked.MaxWait != 30*time.Second {
		r.t.Errorf("parked for %v", asked.MaxWait)
	}
	return done
}

func (r *rig) pollInto(ctx context.Context, key string, done chan<- outcome) {
	body := `{"entries":[{"queue":"q","partition":"0","offset":0}],"maxWaitMs":999999,"minBytes":1}`
	got, err := r.try(ctx, request{path: "/api/v1/fetch", auth: "Bearer " + key, body: body})
	done <- outcome{got, err}
}

func TestALongPollIsWokenByAPush(t *testing.T) {
	var w watchedBroker
	r := newRig(t, watch(&w))
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"q"}`)
	start := time.Now()
	done := r.poll(t.Context(), &w, key)
	if got := r.proxy.Counters().Of(RouteFetch); got != 1 {
		t.Errorf("a parked fetch is counted %d times", got)
	}
	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"q","partition":"0","payload":"here"}]}`)
	got := <-done
	if got.err != nil || !strings.Contains(got.reply.body, `"payload":"here"`) {
		t.Fatalf("%v %s", got.err, got.reply.body)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("woken after %v", took)
	}
}

func TestALongPollEndsWhenItsCallerLeaves(t *testing.T) {
	var w watchedBroker
	r := newRig(t, watch(&w))
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"q"}`)
	ctx, leave := context.WithCancel(t.Context())
	done := r.poll(ctx, &w, key)
	leave()
	if err := <-w.ended; err == nil {
		t.Error("the broker's poll ended without an error")
	}
	if got := <-done; got.err == nil {
		t.Errorf("a caller that left got %d", got.reply.status)
	}
}

func TestADrainAnswersParkedPolls(t *testing.T) {
	var w watchedBroker
	r := newRig(t, watch(&w))
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"q"}`)
	done := r.poll(t.Context(), &w, key)
	r.proxy.Drain()
	<-w.ended
	const want = `{"entries":[{"queue":"q","partition":"0","records":[],"highWatermark":0,"logStartOffset":0}]}`
	if got := <-done; got.err != nil || got.reply.status != 200 || got.reply.body != want {
		t.Errorf("%v %d %s", got.err, got.reply.status, got.reply.body)
	}
	// And polls that come later do not park.
	after := r.poll(t.Context(), &w, key)
	<-w.ended
	if got := <-after; got.err != nil || got.reply.body != want {
		t.Errorf("%v %s", got.err, got.reply.body)
	}
}

// brokenBroker fails every call in one way.
type brokenBroker struct {
	Broker
	err error
}

func (b *brokenBroker) Push(context.Context, broker.Tenant, []broker.PushItem, []broker.PushResult) ([]broker.PushResult, error) {
	return nil, b.err
}

func (b *brokenBroker) Fetch(context.Context, broker.Tenant, broker.FetchRequest) ([]broker.FetchResult, error) {
	return nil, b.err
}

func (b *brokenBroker) Configure(context.Context, broker.Tenant, string, func(*broker.Options) error) (broker.Queue, error) {
	return broker.Queue{}, b.err
}

// TestBrokerErrors is cell-http §3.13.
func TestBrokerErrors(t *testing.T) {
	var b brokenBroker
	r := newRig(t, func(cfg *Config) {
		b.Broker = cfg.Broker
		cfg.Broker = &b
	})
	key := r.full("acme")
	for _, tc := range []struct {
		err        error
		status     int
		code, text string
	}{
		{broker.ErrStorageFull, 507, "storage_full", "storage full"},
		{broker.ErrNameTooLong, 413, "name_too_long", "name too long"},
		{broker.ErrTooMany, 400, "bad_request", "too many entries"},
		{broker.ErrBadRequest, 400, "bad_request", "bad request"},
		{broker.ErrClosed, 503, "retry", "the cell is shutting down"},
		{context.Canceled, 503, "retry", "the request was given up"},
		{fmt.Errorf("secret detail %s", key), 500, "internal", "internal error"},
	} {
		b.err = fmt.Errorf("%w", tc.err)
		isRefusal(t, r.post(key, "/api/v1/push", `{"items":[{"queue":"q","payload":1}]}`), tc.status, tc.code, tc.text)
		isRefusal(t, r.post(key, "/api/v1/fetch", `{"entries":[{"queue":"q","offset":0}]}`), tc.status, tc.code, tc.text)
		isRefusal(t, r.post(key, "/api/v1/configure", `{"queue":"q"}`), tc.status, tc.code, tc.text)
	}
}

// TestLongAnswersAreStreamed: an answer over several flushes is whole.
func TestLongAnswersAreStreamed(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	small, large := strings.Repeat("s", 1000), strings.Repeat("l", directBytes+1)
	var items []string
	for i := range 2000 {
		text := small
		if i%100 == 50 {
			text = large
		}
		items = append(items, fmt.Sprintf(`{"queue":"q","partition":"0","payload":"%d%s"}`, i, text))
	}
	r.mustPost(key, "/api/v1/push", `{"items":[`+strings.Join(items, ",")+`]}`)
	answer := decoded[fetched](t, r.mustPost(key, "/api/v1/fetch", `{"entries":[{"queue":"q","partition":"0","offset":0,"maxBytes":8388608}]}`))
	records := answer.Entries[0].Records
	if len(records) != 2000 {
		t.Fatalf("%d records", len(records))
	}
	for i, record := range records {
		if !strings.HasPrefix(string(record.Payload), fmt.Sprintf(`"%d`, i)) || record.Offset != int64(i) {
			t.Fatalf("record %d: %.20s at %d", i, record.Payload, record.Offset)
		}
	}
}
