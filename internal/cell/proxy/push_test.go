package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pushed is one verdict of a push.
type pushed struct {
	Index         int    `json:"index"`
	MessageID     string `json:"message_id"`
	TransactionID string `json:"transaction_id"`
	QueueName     string `json:"queueName"`
	Status        string `json:"status"`
	Offset        *int64 `json:"offset"`
}

// TestPush is cell-http §3.4: the answer's shape and the offsets.
func TestPush(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.mustPost(key, "/api/v1/configure", `{"queue":"orders","dedupWindowSeconds":3600}`)

	if got := r.post(key, "/api/v1/push", `{"items":[]}`); got.status != 201 || got.body != `[]` {
		t.Errorf("no items: %d %s", got.status, got.body)
	}

	got := r.post(key, "/api/v1/push", `{"other":[{"x":{}}],"items":[`+
		`{"queue":"orders","partition":"2","payload":{"k":"aWQ=","v":null}},`+
		`{"payload":"x","queue":"orders"},`+
		`{"queue":"orders","partition":"2","payload":[1,2],"extra":{"deep":[{}]}},`+
		`{"queue":"orders","partition":null,"payload":null,"transactionId":null},`+
		`{"queue":"orders","partition":"2","payload":-1.5e3,"transactionId":"once"}]}`)
	if got.status != http.StatusCreated || !strings.HasPrefix(got.body, "[") {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	results := decoded[[]pushed](t, got.body)
	offsets := []int64{0, 0, 1, 1, 2}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	ids := map[string]bool{}
	for i, p := range results {
		if p.Index != i || p.Status != "queued" || p.Offset == nil || *p.Offset != offsets[i] || p.QueueName != "orders" {
			t.Errorf("item %d: %+v", i, p)
		}
		if !uuid.MatchString(p.MessageID) || ids[p.MessageID] {
			t.Errorf("item %d: message id %q is no uuid or used twice", i, p.MessageID)
		}
		ids[p.MessageID] = true
		if want := map[bool]string{true: "once", false: p.MessageID}[i == 4]; p.TransactionID != want {
			t.Errorf("item %d: transaction id %q, want %q", i, p.TransactionID, want)
		}
	}
	if len(results) != 5 {
		t.Fatalf("%d results", len(results))
	}
}

// TestPayloadsComeBackAsTheyWere: the text is not re-serialised.
func TestPayloadsComeBackAsTheyWere(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	payloads := []string{
		`{"k":null,"v":"aGk="}`, `null`, `""`, `0`, `-0.0`, `1e400`, `true`, `[]`, `{}`, `"\u00e9\ud83d\ude00\/"`, `"ü 😀"`,
		`{ "spaced" : [ 1 ,
 2 ] }`, `{"dup":1,"dup":2}`, `123456789012345678901234567890`, `"` + strings.Repeat("x", 300_000) + `"`,
	}
	items := make([]string, len(payloads))
	for i, p := range payloads {
		items[i] = `{"queue":"q","partition":"0","payload":` + p + `}`
	}
	r.mustPost(key, "/api/v1/push", `{"items":[`+strings.Join(items, ",")+`]}`)
	answer := decoded[fetched](t, r.mustPost(key, "/api/v1/fetch", `{"entries":[{"queue":"q","partition":"0","offset":0,"maxBytes":8388608}]}`))
	records := answer.Entries[0].Records
	if len(records) != len(payloads) {
		t.Fatalf("%d records", len(records))
	}
	for i, want := range payloads {
		if got := string(records[i].Payload); got != want {
			t.Errorf("record %d: %.80s, want %.80s", i, got, want)
		}
	}
}

// TestPushRefusals: each refuses the whole body, and nothing is written.
func TestPushRefusals(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	const good = `{"queue":"q","partition":"0","payload":1}`
	for code, bodies := range map[string][]string{
		"bad_body": {
			``, ` `, `{`, `nope`, `{"items":[` + good + `]`, `{"items":[` + good + `,]}`, `{"items":[` + good + `]}}`, `{"items":[` + good + `]} x`,
			`{"items":[{"queue":"q","partition":"0","payload":}]}`, `{"items":[{"queue":"q","partition":"0","payload":tru}]}`,
			`{"items":[{"queue":"q","partition":"0","payload":"a` + "\n" + `b"}]}`, `{"items":[{"queue":"q","partition":"0","payload":"` + "\xff" + `"}]}`,
			`{"items":[{"queue":"q","partition":"0","payload":{"a":1,}}]}`, `{"items":[{"queue":"q","partition":"0","payload":01}]}`,
			`{"items":[{"queue":"q","partition":"0","payload":"\x"}]}`, `{'items':[]}`, `{"items":[` + good + `],"x":[}`,
			`{"items":[` + good + `,{"queue":5,"payload":1},{]}`, "\xef\xbb\xbf" + `{"items":[]}`, `[{}`,
			`{"items":[{"queue":"q","payload":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}]}`,
		},
		"bad_request": {
			`{}`, `[]`, `null`, `"x"`, `7`, `{"items":null}`, `{"items":{}}`, `{"items":"x"}`, `{"Items":[]}`, `{"items":[1]}`, `{"items":[null]}`,
			`{"items":[[]]}`, `{"items":[` + good + `,{}]}`, `{"items":[{"queue":"q","partition":"0"}]}`, `{"items":[{"payload":1}]}`,
			`{"items":[{"queue":"","payload":1}]}`, `{"items":[{"queue":null,"payload":1}]}`, `{"items":[{"queue":5,"payload":1}]}`,
			`{"items":[{"queue":"q","partition":0,"payload":1}]}`, `{"items":[{"queue":"q","partition":"","payload":1}]}`,
			`{"items":[{"queue":"q","partition":["0"],"payload":1}]}`, `{"items":[{"queue":"q","transactionId":1,"payload":1}]}`,
			`{"items":[` + good + `],"items":[` + good + `]}`,
		},
	} {
		for _, body := range bodies {
			got := r.post(key, "/api/v1/push", body)
			var e map[string]string
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != http.StatusBadRequest || e["code"] != code {
				t.Errorf("%.100s: %d %.200s, want 400 %s", body, got.status, got.body, code)
			}
		}
	}
	long := r.post(key, "/api/v1/push", `{"items":[`+good+`,{"queue":"q","partition":"`+strings.Repeat("p", 512)+`","payload":1}]}`)
	isRefusal(t, long, 413, "name_too_long", "name too long")
	if list := r.lanes(key); len(list.Queues) != 0 {
		t.Errorf("a refused push left %+v", list)
	}
}

// TestPushLimits is the 413 rows of cell-http §5.3, with overrides.
func TestPushLimits(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.MaxBodyBytes = 1 << 20 })
	key := r.full("acme")
	if err := r.control.SetPlan("acme", "free"); err != nil {
		t.Fatal(err)
	}
	item := func(payload string) string { return `{"queue":"q","partition":"0","payload":` + payload + `}` }
	batch := func(n int, last string) string {
		return `{"items":[` + strings.Repeat(item("1")+",", n-1) + last + `]}`
	}
	text := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	for _, tc := range []struct {
		name, overrides, body string
		text                  string // empty: accepted
	}{
		{"as many items as the plan has", `{}`, batch(1000, item("1")), ""},
		{"one item more", `{}`, batch(1001, item("1")), "batch of 1001 items exceeds max_batch_items (1000)"},
		{"many more", `{}`, batch(1200, item("1")), "batch of 1200 items exceeds max_batch_items (1000)"},
		{"items override", `{"max_batch_items":2}`, batch(3, item("1")), "batch of 3 items exceeds max_batch_items (2)"},
		{"items override kept", `{"max_batch_items":2}`, batch(2, item("1")), ""},
		{"items unlimited: the ceiling", `{"max_batch_items":null}`, batch(10_001, item("1")), "batch of 10001 items exceeds max_batch_items (10000)"},
		{"items unlimited: up to the ceiling", `{"max_batch_items":null}`, batch(10_000, item("1")), ""},
		{"items above the ceiling", `{"max_batch_items":12000}`, batch(10_001, item("1")), ""},
		{"as large a payload as the plan has", `{}`, batch(3, item(text(262_144))), ""},
		{"one byte more", `{}`, batch(4, item(text(262_145))), "item 3: payload 262145 bytes exceeds max_payload_bytes (262144)"},
		{"the first of several", `{}`, `{"items":[` + item(text(262_146)) + `,` + item(text(262_145)) + `]}`, "item 0: payload 262146 bytes exceeds max_payload_bytes (262144)"},
		{"raw text is what counts", `{"max_payload_bytes":6}`, batch(1, item(`[1, 2,  3]`)), "item 0: payload 10 bytes exceeds max_payload_bytes (6)"},
		{"payload unlimited", `{"max_payload_bytes":null}`, batch(1, item(text(700_000))), ""},
		{"items before payloads", `{"max_batch_items":1}`, batch(2, item(text(262_145))), "batch of 2 items exceeds max_batch_items (1)"},
		{"a limit before the shape", `{"max_batch_items":1}`, `{"items":[{},{}]}`, "batch of 2 items exceeds max_batch_items (1)"},
		{"a payload before the shape", `{"max_payload_bytes":2}`, `{"items":[{"queue":7,"payload":"long"}]}`, "item 0: payload 6 bytes exceeds max_payload_bytes (2)"},
		{"body at the cap", `{"max_payload_bytes":null}`, padded(batch(1, item("1")), 1<<20), ""},
		{"body over the cap", `{"max_payload_bytes":null}`, padded(batch(1, item("1")), 1<<20+1), "request body exceeds cap"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r.override("acme", strings.Replace(`{"max_req_per_sec":null,"max_msgs_per_sec":null,`+tc.overrides[1:], ",}", "}", 1))
			before := r.end(key, "q", "0")
			got := r.post(key, "/api/v1/push", tc.body)
			if tc.text == "" {
				if got.status != http.StatusCreated {
					t.Errorf("got %d %.200s", got.status, got.body)
				}
				return
			}
			isRefusal(t, got, 413, "payload_too_large", tc.text)
			if after := r.end(key, "q", "0"); after != before {
				t.Errorf("%d records were written", after-before)
			}
		})
	}
}

// padded brings a body to a size with space.
func padded(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }

// end is a partition's high watermark.
func (r *rig) end(key, queue, partition string) int64 {
	r.t.Helper()
	body := fmt.Sprintf(`{"entries":[{"queue":%q,"partition":%q,"offset":9223372036854775807,"maxBytes":1}],"minBytes":0}`, queue, partition)
	return decoded[fetched](r.t, r.mustPost(key, "/api/v1/fetch", body)).Entries[0].HighWatermark
}

// TestBodyCapOnEveryRoute: announced or not, a body over the cap is 413.
func TestBodyCapOnEveryRoute(t *testing.T) {
	small := newRig(t, func(cfg *Config) { cfg.MaxBodyBytes = 100_000 })
	full := newRig(t)
	for _, tc := range []struct {
		rig  *rig
		path string
		size int
	}{
		{full, "/api/v1/push", DefaultMaxBodyBytes + 1},
		{small, "/api/v1/push", 100_001},
		{small, "/api/v1/fetch", 100_001},
		{small, "/api/v1/fetch/offsets", 100_001},
		{small, "/api/v1/configure", 100_001},
	} {
		key := tc.rig.full("acme")
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %d announced=%v", tc.path, tc.size, announced), func(t *testing.T) {
				req, err := http.NewRequest(http.MethodPost, tc.rig.server.URL+tc.path, strings.NewReader(padded(`{}`, tc.size)))
				if err != nil {
					t.Fatal(err)
				}
				if !announced {
					req.ContentLength = -1
				}
				req.Header.Set("Authorization", "Bearer "+key)
				isRefusal(t, tc.rig.send(req), 413, "payload_too_large", "request body exceeds cap")
			})
		}
	}
}

// TestALengthThatIsNoneAllocatesNothing: memory follows the bytes that came.
func TestALengthThatIsNoneAllocatesNothing(t *testing.T) {
	r := newRig(t)
	buf := new(bodyBuffer)
	req, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = DefaultMaxBodyBytes
	if err := r.proxy.fill(&call{w: discard{}, r: req}, buf); err != nil {
		t.Fatal(err)
	}
	if cap(buf.b) > trustedBodyBytes {
		t.Errorf("%d bytes were taken for a body of 2", cap(buf.b))
	}
}

// TestABodyThatDoesNotCome: neither a proved client nor a stranger holds a
// connection by announcing a body.
func TestABodyThatDoesNotCome(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.BodyTimeout = 50 * time.Millisecond })
	for name, tc := range map[string]struct {
		auth   string
		status int
	}{
		"proved":   {"Authorization: Bearer " + r.full("acme") + "\r\n", http.StatusRequestTimeout},
		"stranger": {"", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST /api/v1/push HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: 1000\r\n\r\n{", tc.auth)
			if err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status {
				t.Errorf("got %d, want %d", resp.StatusCode, tc.status)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if _, err := reader.ReadByte(); err != io.EOF {
				t.Errorf("the connection was not closed: %v", err)
			}
		})
	}
}
