package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// faulty is a system whose cell is made to fail.
func faulty(t *testing.T) (*rig.Rig, *cellFaults) {
	t.Helper()
	f := &cellFaults{}
	return rig.Start(t, func(o *rig.Options) { o.CellAt = f.at(t) }), f
}

// What a failing cell becomes, for commits and reads alike (cell-http §6), and
// that nothing throttles: a sleeping commit is a sleeping poll.
func TestCommitFailures(t *testing.T) {
	r, f := faulty(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	mustCommit(t, w, "g", at{topic: "orders", offset: 7})
	for status, code := range map[int]int16{
		-1: 15, 400: -1, 401: 30, 403: 30, 404: -1, 408: 15, 413: -1, 421: -1, 429: 15, 500: -1, 502: 15, 503: 15, 504: 15, 507: -1,
	} {
		f.set(func(f *cellFaults) { f.refuse = refusing("/api/v1/kv", "", status) })
		resp := w.Ask(commitRequest(8, "g", at{topic: "orders", offset: 8}, at{topic: "orders", partition: -1})).(*kmsg.OffsetCommitResponse)
		if p := resp.Topics[0].Partitions; p[0].ErrorCode != code || p[1].ErrorCode != 3 || resp.ThrottleMillis != 0 {
			t.Errorf("%d: codes %d and %d, throttle %d, want %d and 3", status, p[0].ErrorCode, p[1].ErrorCode, resp.ThrottleMillis, code)
		}
		if code == 15 { // what passes, in the words that every consumer asks again after
			code = 14
		}
		want := []string{fmt.Sprintf("code %d", code), "orders/0=-1", "orders/1=-1", "orders/2=-1"}
		if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, want) {
			t.Errorf("%d: read %v, want %v", status, got, want)
		}
		if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, want[:1]) {
			t.Errorf("%d: all are %v, want %v", status, got, want[:1])
		}
		want = []string{fmt.Sprintf("orders/0=-1 code %d", code), fmt.Sprintf("orders/1=-1 code %d", code), fmt.Sprintf("orders/2=-1 code %d", code)}
		if got := committed(t, w, offsetRequest(1, "g", "orders")); !slices.Equal(got, want) {
			t.Errorf("%d: v1 reads %v, want %v", status, got, want)
		}
	}
	f.set(func(f *cellFaults) { f.refuse = nil })
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"orders/0=7"}) {
		t.Errorf("afterwards %v", got)
	}
}

// A cell that leaves a key out of its answer has not said that it is absent.
func TestCommitUnreadIsNotAbsent(t *testing.T) {
	r, f := faulty(t)
	w := r.Login(t, rig.Acme)
	mustCommit(t, w, "g", at{topic: "t", offset: 7}, at{topic: "t", partition: 1, offset: 8})
	without := func(list any, key string) any {
		rows, _ := list.([]any)
		return slices.DeleteFunc(rows, func(row any) bool {
			m, ok := row.(map[string]any)
			return ok && m["key"] == key || row == key
		})
	}
	for _, key := range []string{"qk:group:g:t:0", "qk:group:g:t:2"} { // there, and not there
		f.set(func(f *cellFaults) {
			f.change = func(path, _ string, answer map[string]any) {
				if results, ok := answer["results"].([]any); ok && path == "/api/v1/kv" {
					for _, r := range results {
						r := r.(map[string]any)
						r["rows"], r["missing"], r["truncated"] = without(r["rows"], key), without(r["missing"], key), true
					}
				}
			}
		})
		want := []string{"code 14", "t/0=-1", "t/1=-1", "t/2=-1"}
		if got := committed(t, w, offsetRequest(7, "g", "t")); !slices.Equal(got, want) {
			t.Errorf("without %s: %v, want %v", key, got, want)
		}
		want = []string{"t/0=-1 code 14", "t/1=-1 code 14", "t/2=-1 code 14"}
		if got := committed(t, w, offsetRequest(1, "g", "t")); !slices.Equal(got, want) {
			t.Errorf("without %s, v1: %v, want %v", key, got, want)
		}
	}
	// A page that says there is more and not where to go on.
	f.set(func(f *cellFaults) {
		f.change = func(_, body string, answer map[string]any) {
			if results, ok := answer["results"].([]any); ok && strings.Contains(body, "getPrefix") {
				results[0].(map[string]any)["truncated"] = true
			}
		}
	})
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"code 14"}) {
		t.Errorf("a page that does not end: %v", got)
	}
}

// An offset belongs to the queue it was committed for. A topic that was deleted
// and made again starts anew, one that is gone has none, and who cannot read the
// listing says neither.
func TestCommitOfAnEarlierTopic(t *testing.T) {
	r, f := faulty(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders", "stays")
	mustCommit(t, w, "g", at{topic: "orders", offset: 7}, at{topic: "stays", offset: 3})
	before := []string{"orders/0=7", "orders/1=-1", "orders/2=-1"}
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, before) {
		t.Errorf("read %v, want %v", got, before)
	}
	cellAsk(t, r, http.MethodDelete, "/api/v1/resources/queues/orders", "")
	none := []string{"orders/0=-1", "orders/1=-1", "orders/2=-1"}

	// The listing cannot be read: an answer would be a guess.
	r.StopGateway(t)
	r.StartGateway(t)
	w = r.Login(t, rig.Acme)
	f.set(func(f *cellFaults) { f.refuse = refusing("/api/v1/resources/queues", "", 503) })
	want := []string{"code 14", none[0], none[1], none[2]}
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, want) {
		t.Errorf("without a listing: %v, want %v", got, want)
	}
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"code 14"}) {
		t.Errorf("all without a listing: %v", got)
	}
	if got := committed(t, w, offsetRequest(7, "nobody", "orders")); !slices.Equal(got, none) {
		t.Errorf("what was never committed needs no listing: %v", got)
	}
	f.set(func(f *cellFaults) { f.refuse = nil })
	rig.Eventually(t, "the failure is forgotten", func() bool {
		return !slices.Contains(committed(t, w, offsetRequest(7, "g", "orders")), "code 14")
	})
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, none) {
		t.Errorf("of a topic that is gone: %v, want %v", got, none)
	}
	makeTopic(t, r, rig.Acme, "orders")
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, none) {
		t.Errorf("of a topic that was made again: %v, want %v", got, none)
	}
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"stays/0=3"}) {
		t.Errorf("all: %v", got)
	}
	mustCommit(t, w, "g", at{topic: "orders", offset: 1})
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, []string{"orders/0=1", none[1], none[2]}) {
		t.Errorf("committed again: %v", got)
	}
}

// An offset that another gateway has committed for a topic that it has just made
// is not lost to a listing of a moment ago.
func TestCommitNewerThanTheListing(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "other")
	var made struct{ QueueID string } // not through this gateway
	if err := json.Unmarshal(cellAsk(t, r, http.MethodPost, "/api/v1/configure", `{"queue":"orders"}`), &made); err != nil || made.QueueID == "" {
		t.Fatal(made, err)
	}
	store := func(value string) {
		cellAsk(t, r, http.MethodPost, "/api/v1/kv",
			`{"operations":[{"op":"put","ns":"queen-kafka","key":"qk:group:g:orders:0","forever":true,"value":`+value+`}]}`)
	}
	store(fmt.Sprintf(`{"offset":4,"metadata":"","ts":1,"qid":%q}`, made.QueueID))
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"orders/0=4"}) {
		t.Errorf("read %v", got)
	}
	store(`{"offset":5,"metadata":"x","ts":1}`)
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{`orders/0=5 "x"`}) {
		t.Errorf("without a queue id it is read as it is: %v", got)
	}
	store(`{"offset":5,"qid":"another"}`)
	if got := committed(t, w, offsetRequest(7, "g", "orders")); !slices.Equal(got, []string{"orders/0=-1", "orders/1=-1", "orders/2=-1"}) {
		t.Errorf("of another queue: %v", got)
	}
}

// Offsets are the cell's: neither a new gateway nor a new cell loses them, and
// people see them there.
func TestCommitsSurvive(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	for i := range 5 {
		wireMustStore(t, w, "orders", 0, wireBatch{values: []string{fmt.Sprint(i)}})
	}
	mustCommit(t, w, "a:g", at{"orders", 0, 3, kmsg.StringPtr("m")})
	want := []string{`orders/0=3 "m"`}
	check := func(when string) {
		t.Helper()
		if got := committed(t, r.Login(t, rig.Acme), offsetRequest(7, "a:g")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	r.StopGateway(t)
	r.StartGateway(t)
	check("another gateway")
	r.StopCell(t)
	r.StartCell(t)
	check("the cell again")
	var rows []struct {
		Name, QueueName, Kind string
		TotalLag              int
	}
	if err := json.Unmarshal(cellAsk(t, r, http.MethodGet, "/api/v1/consumer-groups", ""), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Name != "a:g" || rows[0].QueueName != "orders" || rows[0].Kind != "kafka" || rows[0].TotalLag != 2 {
		t.Errorf("the cell lists %+v", rows)
	}
}

// A commit in a gateway that has just started is one call and the index; the
// next ones are one call each, and 300 partitions are two.
func TestCommitCalls(t *testing.T) {
	r, f := faulty(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "t")
	mustCommit(t, w, "h", at{topic: "t", offset: 1})
	wide := make([]at, 300)
	for i := range wide {
		wide[i] = at{topic: "t", partition: int32(i), offset: 1}
	}
	f.took("")
	mustCommit(t, w, "g", at{topic: "t", offset: 1})
	if n := f.took("/api/v1/kv"); n != 2 {
		t.Errorf("the first commit made %d calls, want 2", n)
	}
	mustCommit(t, w, "g", at{topic: "t", offset: 2})
	if n := f.took("/api/v1/kv"); n != 1 {
		t.Errorf("the second commit made %d calls, want 1", n)
	}
	mustCommit(t, w, "g", wide...)
	if n := f.took("/api/v1/kv"); n != 2 {
		t.Errorf("300 partitions made %d calls, want 2", n)
	}
	producer := r.Login(t, rig.Produce)
	f.took("")
	commitCodes(t, producer, commitRequest(8, "g", at{topic: "t", offset: 2}))
	committed(t, producer, offsetRequest(7, "g"))
	if n := f.took("/api/v1/kv"); n != 0 {
		t.Errorf("who may not consume made %d calls", n)
	}
}
