package proxy

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// queueRow is a queue as listings show it.
type queueRow struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Queue         string          `json:"queue"`
	Partitions    json.RawMessage `json:"partitions"`
	CreatedAt     string          `json:"createdAt"`
	Namespace     *string         `json:"namespace"`
	Task          *string         `json:"task"`
	Storage       string          `json:"storage"`
	RetainedBytes *int64          `json:"retainedBytes"`
	Messages      map[string]int64
	Options       map[string]any
}

type queueList struct {
	Queues []queueRow
	Stats  string
	KVRows *int64 `json:"kvRows"`
}

func (r *rig) lanes(key string) queueList {
	r.t.Helper()
	return decoded[queueList](r.t, r.get(key, listPath).body)
}

// TestListing is cell-http §3.1.
func TestListing(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")

	if got := r.get(key, listPath); got.status != 200 || got.body != `{"queues":[],"stats":"lanes"}` {
		t.Errorf("empty tenant: %d %s", got.status, got.body)
	}

	r.mustPost(key, "/api/v1/configure", `{"queue":"orders"}`)
	list := r.lanes(key)
	if len(list.Queues) != 1 || list.Queues[0].Name != "orders" || list.Queues[0].Queue != "orders" || string(list.Queues[0].Partitions) != "0" {
		t.Fatalf("a new queue is listed as %+v", list)
	}
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(list.Queues[0].CreatedAt) {
		t.Errorf("createdAt %q", list.Queues[0].CreatedAt)
	}

	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":1},{"queue":"orders","partition":"7","payload":"four"}]}`)
	if got := string(r.lanes(key).Queues[0].Partitions); got != "2" {
		t.Errorf("pushed on 0 and 7: %s partitions", got)
	}

	for _, path := range []string{"/api/v1/resources/queues", "/api/v1/resources/queues?stats=cached"} {
		full := decoded[queueList](t, r.get(key, path).body)
		if len(full.Queues) != 1 || full.KVRows == nil {
			t.Fatalf("%s: %+v", path, full)
		}
		q := full.Queues[0]
		if q.Storage != "segments" || q.Namespace == nil || q.Task == nil || q.RetainedBytes == nil || *q.RetainedBytes != 7 ||
			string(q.Partitions) != "2" || q.Messages["total"] != 2 || q.Options["leaseTime"] != 300.0 || q.Options["maxQueueSize"] != 0.0 {
			t.Errorf("%s: %+v", path, q)
		}
	}

	one := r.get(key, "/api/v1/resources/queues/orders")
	q := decoded[queueRow](t, one.body)
	if one.status != 200 || q.Name != "orders" || string(q.Partitions) != `[{"name":"0","retainedBytes":1},{"name":"7","retainedBytes":6}]` {
		t.Errorf("one queue: %d %s", one.status, one.body)
	}
	if got := r.get(key, "/api/v1/resources/queues/orders/sizes"); got.status != 200 || got.body != `{"queue":"orders","partitions":{"0":1,"7":6}}` {
		t.Errorf("sizes: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/api/v1/resources/queues/nope", "/api/v1/resources/queues/nope/sizes"} {
		isRefusal(t, r.get(key, path), 404, "not_found", "Queue not found")
	}
}

func TestQueueNamesInPaths(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	for name, escaped := range map[string]string{
		"a/b": "a%2Fb", "a b": "a%20b", "ü%": "%C3%BC%25", "sizes": "sizes", "..": "%2E%2E", `q"\`: "q%22%5C",
	} {
		body, err := json.Marshal(map[string]string{"queue": name})
		if err != nil {
			t.Fatal(err)
		}
		r.mustPost(key, "/api/v1/configure", string(body))
		got := r.get(key, "/api/v1/resources/queues/"+escaped+"/sizes")
		if got.status != 200 || decoded[queueRow](t, got.body).Queue != name {
			t.Errorf("%q: %d %s", name, got.status, got.body)
		}
		deleted := r.do(request{method: "DELETE", path: "/api/v1/resources/queues/" + escaped, auth: "Bearer " + key})
		if !strings.HasPrefix(deleted.body, `{"deleted":true,`) {
			t.Errorf("deleting %q: %s", name, deleted.body)
		}
	}
	for _, path := range []string{"/api/v1/resources/queues/", "/api/v1/resources/queues/a/b"} {
		got := r.do(request{method: "DELETE", path: path, auth: "Bearer " + key})
		if got.status != 404 || !strings.Contains(got.body, "no_such_route") {
			t.Errorf("DELETE %s: %d %s", path, got.status, got.body)
		}
	}
}

// configured is the answer of a configure.
type configured struct {
	Configured  bool
	QueueID     string           `json:"queueId"`
	PartitionID *json.RawMessage `json:"partitionId"`
	Queue       string
	Namespace   string
	Task        string
	Storage     string
	Error       any
	Options     map[string]any
}

// TestConfigure is cell-http §3.2: merge, replace, nulls, both places.
func TestConfigure(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	set := func(body string) configured {
		t.Helper()
		return decoded[configured](t, r.mustPost(key, "/api/v1/configure", body))
	}

	first := set(`{"queue":"orders","dedupWindowSeconds":0,"retentionEnabled":true,"retentionSeconds":86400,"unknown":{"a":[1]}}`)
	if !first.Configured || first.QueueID == "" || first.Queue != "orders" || first.Storage != "segments" || first.Error != nil {
		t.Errorf("answer %+v", first)
	}
	want := map[string]any{
		"namespace": "", "task": "", "priority": 0.0, "leaseTime": 300.0, "retryLimit": 3.0, "retryDelay": 1000.0, "ttl": 3600.0,
		"maxSize": 0.0, "maxQueueSize": 0.0, "deadLetterQueue": true, "dlqAfterMaxRetries": true, "delayedProcessing": 0.0,
		"windowBuffer": 0.0, "retentionSeconds": 86400.0, "completedRetentionSeconds": 0.0, "retentionEnabled": true,
		"encryptionEnabled": false, "maxWaitTimeSeconds": 0.0, "minPopWaitTime": 0.0, "dedupWindowSeconds": 0.0,
		"retentionSinkHold": "", "retentionSinkHoldMaxSeconds": 604800.0,
	}
	same := func(got configured, what string) {
		t.Helper()
		for name, value := range want {
			if got.Options[name] != value {
				t.Errorf("%s: %s is %v, want %v", what, name, got.Options[name], value)
			}
		}
		if len(got.Options) != len(want) {
			t.Errorf("%s: %d options, want %d", what, len(got.Options), len(want))
		}
		if got.QueueID != first.QueueID {
			t.Errorf("%s: the id changed", what)
		}
	}
	same(first, "created")

	want["leaseTime"], want["namespace"] = 60.0, "billing"
	merged := set(`{"queue":"orders","options":{"leaseTime":60,"namespace":"billing"}}`)
	same(merged, "merged from options")
	if merged.Namespace != "billing" {
		t.Errorf("namespace %q beside the options", merged.Namespace)
	}
	want["maxSize"], want["maxQueueSize"], want["deadLetterQueue"] = 5.0, 5.0, false
	same(set(`{"queue":"orders","mode":"merge","maxSize":5,"options":{"deadLetterQueue":false}}`), "merged from both places")
	same(set(`{"queue":"orders","mode":null,"options":null}`), "nothing named")
	want["leaseTime"], want["deadLetterQueue"], want["namespace"] = 300.0, true, ""
	same(set(`{"queue":"orders","leaseTime":null,"deadLetterQueue":null,"namespace":null}`), "nulls")
	for name, value := range map[string]any{
		"retentionEnabled": false, "retentionSeconds": 0.0, "dedupWindowSeconds": 3600.0,
		"maxSize": 0.0, "maxQueueSize": 0.0, "task": "t",
	} {
		want[name] = value
	}
	same(set(`{"queue":"orders","mode":"replace","task":"t"}`), "replaced")
	want["retentionSeconds"] = float64(9223372036854775)
	same(set(`{"queue":"orders","retentionSeconds":9223372036854775}`), "the longest retention a Kafka client can say")

	if list := r.lanes(key); len(list.Queues) != 1 || list.Queues[0].ID != first.QueueID {
		t.Errorf("listed as %+v", list)
	}
}

// TestConfigureRefusals: each is 400, and makes no queue.
func TestConfigureRefusals(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	bodies := map[string][]string{
		"bad_body": {
			``, `{`, `{"queue":"q"`, `{"queue":"q"}x`, `{"queue":"q"} {}`, `{"queue":"q",}`, `nope`, "{\"queue\":\"\xff\"}",
			`{"queue":"q","leaseTime":01}`, `{"queue":"q","options":{`, `{"queue":"q","mode":}`,
		},
		"bad_request": {
			`{}`, `[]`, `"q"`, `null`, `{"queue":""}`, `{"queue":null}`, `{"queue":5}`, `{"queue":["q"]}`,
			`{"queue":"q","mode":"append"}`, `{"queue":"q","mode":1}`, `{"queue":"q","options":[]}`, `{"queue":"q","options":"x"}`,
			`{"queue":"q","minPopWaitTime":60001}`, `{"queue":"q","minPopWaitTime":-1}`,
			`{"queue":"q","retentionSinkHoldMaxSeconds":59}`, `{"queue":"q","retentionSinkHoldMaxSeconds":31536001}`,
			`{"queue":"q","retentionSeconds":-1}`, `{"queue":"q","ttl":9223372036854775808}`,
			`{"queue":"q"` + strings.Repeat(`,"ttl":1`, maxSettings+1) + `}`,
		},
	}
	for _, name := range optionNames() {
		switch name {
		case "namespace", "task", "retentionSinkHold":
			bodies["bad_request"] = append(bodies["bad_request"], `{"queue":"q","`+name+`":1}`, `{"queue":"q","options":{"`+name+`":{}}}`)
		case "deadLetterQueue", "dlqAfterMaxRetries", "retentionEnabled", "encryptionEnabled":
			bodies["bad_request"] = append(bodies["bad_request"], `{"queue":"q","`+name+`":1}`, `{"queue":"q","`+name+`":"true"}`)
		default:
			bodies["bad_request"] = append(bodies["bad_request"],
				`{"queue":"q","`+name+`":"100"}`, `{"queue":"q","`+name+`":100.5}`, `{"queue":"q","`+name+`":1e3}`, `{"queue":"q","`+name+`":true}`)
		}
	}
	for code, list := range bodies {
		for _, body := range list {
			got := r.post(key, "/api/v1/configure", body)
			var e map[string]string
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != http.StatusBadRequest || e["code"] != code {
				t.Errorf("%.80s: %d %s, want 400 %s", body, got.status, got.body, code)
			}
		}
	}
	got := r.post(key, "/api/v1/configure", `{"queue":"q","mode":"append"}`)
	isRefusal(t, got, 400, "bad_request", `mode must be "merge" or "replace", got "append"`)
	long := r.post(key, "/api/v1/configure", `{"queue":"`+strings.Repeat("q", 512)+`"}`)
	isRefusal(t, long, 413, "name_too_long", "name too long")
	if list := r.lanes(key); len(list.Queues) != 0 {
		t.Errorf("a refused configure left %+v", list)
	}
}

// TestDelete is cell-http §3.3.
func TestDelete(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	del := func() reply {
		return r.do(request{method: "DELETE", path: "/api/v1/resources/queues/orders", auth: "Bearer " + key})
	}
	const absent = `{"deleted":false,"existed":false,"queue":"orders","message":"Queue not found, nothing was deleted"}`
	if got := del(); got.status != 200 || got.body != absent {
		t.Errorf("absent: %d %s", got.status, got.body)
	}
	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":1},{"queue":"orders","partition":"0","payload":2}]}`)
	before := r.lanes(key).Queues[0].ID
	if got := del(); got.status != 200 || got.body != `{"deleted":true,"existed":true,"queue":"orders"}` {
		t.Errorf("present: %d %s", got.status, got.body)
	}
	if list := r.lanes(key); len(list.Queues) != 0 {
		t.Errorf("listed after its deletion: %+v", list)
	}
	gone := r.mustPost(key, "/api/v1/fetch", `{"entries":[{"queue":"orders","partition":"0","offset":0}]}`)
	if !strings.Contains(gone, `"error":"UNKNOWN_TOPIC_OR_PARTITION"`) {
		t.Errorf("fetched after its deletion: %s", gone)
	}
	again := r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":3}]}`)
	if !strings.Contains(again, `"offset":0`) {
		t.Errorf("recreated: %s", again)
	}
	if list := r.lanes(key); list.Queues[0].ID == before {
		t.Error("the recreated queue has the old id")
	}
}
