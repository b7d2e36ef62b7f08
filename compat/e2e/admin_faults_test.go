package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// cellOptions are a queue's options as the cell shows them.
type cellOptions struct {
	RetentionEnabled   bool
	RetentionSeconds   int64
	DedupWindowSeconds int64
}

// adminCellOptions asks the cell itself for a queue's options.
func adminCellOptions(tb testing.TB, r *rig.Rig, key, queue string) cellOptions {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, r.CellURL+"/api/v1/resources/queues", nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key(key))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Queues []struct {
			Name    string
			Options cellOptions
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		tb.Fatal(err)
	}
	for _, q := range list.Queues {
		if q.Name == queue {
			return q.Options
		}
	}
	tb.Fatalf("the cell has no queue %s", queue)
	return cellOptions{}
}

// adminRecord reads a topic's record from the cell; "" is none.
func adminRecord(tb testing.TB, r *rig.Rig, key, topic string) string {
	tb.Helper()
	c, err := proxyclient.New(proxyclient.Config{URL: r.CellURL})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	proof, err := tenancy.NewVerifier[[]proxyclient.Queue](c, tenancy.VerifierConfig{}).Verify(tb.Context(), tenancy.NewClaim(r.Secret(key), ""))
	if err != nil {
		tb.Fatal(err)
	}
	res, err := c.KV(tb.Context(), proof.Scope, []proxyclient.KVOp{{Op: proxyclient.KVGetMany, Keys: []string{"qk:topiccfg:" + topic}}})
	if err != nil {
		tb.Fatal(err)
	}
	if len(res[0].Rows) == 0 {
		return ""
	}
	return string(res[0].Rows[0].Value)
}

// faultyCell stands between gateway and cell and answers chosen requests itself.
type faultyCell struct {
	mu     sync.Mutex // guards refuse
	refuse func(path string, body string) (status int, answer string)
}

func (f *faultyCell) set(refuse func(path, body string) (int, string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

func (f *faultyCell) at(tb testing.TB) func(string) string {
	return func(cellURL string) string {
		target, err := url.Parse(cellURL)
		if err != nil {
			tb.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
			f.mu.Lock()
			refuse := f.refuse
			f.mu.Unlock()
			if refuse != nil {
				if status, answer := refuse(req.Method+" "+req.URL.Path, string(body)); status != 0 {
					if status == 429 {
						w.Header().Set("Retry-After", "3")
					}
					w.WriteHeader(status)
					_, _ = io.WriteString(w, answer)
					return
				}
			}
			proxy.ServeHTTP(w, req)
		}))
		tb.Cleanup(s.Close)
		return s.URL
	}
}

// puts refuses writes of topic records.
func (f *faultyCell) puts(status int) {
	f.set(func(_, body string) (int, string) {
		if strings.Contains(body, `"op":"put"`) && strings.Contains(body, "qk:topiccfg:") {
			return status, `{"error":"kv_unavailable","detail":"not now"}`
		}
		return 0, ""
	})
}

// A change the cell has made and that cannot be recorded: 7, and what was
// recorded before counts no more.
func TestAdminRecordCannotBeWritten(t *testing.T) {
	fault := &faultyCell{}
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = fault.at(t) })
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "plain", -1, "retention.ms=60000")
	adminMade(t, w, "wide", 7, "retention.ms=60000")
	for _, topic := range []string{"plain", "wide"} {
		fault.puts(503)
		got := adminChange(w, topic, "set retention.ms=90000")
		if got.ErrorCode != 7 || !strings.Contains(adminText(got.ErrorMessage), "not now") {
			t.Errorf("%s: %d %s, want 7 with the cell's words", topic, got.ErrorCode, adminText(got.ErrorMessage))
		}
		fault.set(nil)
		if rec := adminRecord(t, r, rig.Acme, topic); rec != "" {
			t.Errorf("%s: the record is still there: %s", topic, rec)
		}
		adminWants(t, topic, adminDescribe(w, topic), "cleanup.policy=delete! min.insync.replicas=1!")
		if got := adminChange(w, topic, "set retention.ms=90000"); got.ErrorCode != 40 {
			t.Errorf("%s altered again: code %d, want 40", topic, got.ErrorCode)
		}
	}

	// One failed write: the width is kept, which others must not lose.
	adminMade(t, w, "kept", 7, "retention.ms=60000")
	var once sync.Once
	fault.set(func(_, body string) (status int, answer string) {
		if strings.Contains(body, `"op":"put"`) {
			once.Do(func() { status, answer = 500, `{"error":"kv_error"}` })
		}
		return status, answer
	})
	if got := adminChange(w, "kept", "set retention.ms=90000"); got.ErrorCode != 7 {
		t.Errorf("code %d, want 7", got.ErrorCode)
	}
	r.StopGateway(t)
	r.StartGateway(t)
	w = r.Login(t, rig.Acme)
	if got := adminWidth(w, "kept"); got != 7 {
		t.Errorf("a width of %d, want 7", got)
	}
	adminWants(t, "kept", adminDescribe(w, "kept"), "cleanup.policy=delete! min.insync.replicas=1!")
}

// A topic whose width or configs cannot be recorded is not made; one that says
// nothing is.
func TestAdminCreateWithoutARecord(t *testing.T) {
	fault := &faultyCell{}
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = fault.at(t) })
	w := r.Login(t, rig.Acme)
	fault.puts(503)
	for i, want := range []int16{7, 7, 0} {
		topic := []kmsg.CreateTopicsRequestTopic{adminTopic("wide", 7), adminTopic("set", -1, "segment.ms=5"), adminTopic("plain", -1)}[i]
		if got := adminCreate(w, 6, topic).Topics[0]; got.ErrorCode != want || (adminWidth(w, topic.Topic) != -1) != (want == 0) {
			t.Errorf("%s: %d %s, a width of %d; want %d", topic.Topic, got.ErrorCode, adminText(got.ErrorMessage), adminWidth(w, topic.Topic), want)
		}
	}
	// The queue cannot be made: the record is taken back.
	fault.set(func(path, _ string) (int, string) {
		if path == "POST /api/v1/configure" {
			return 503, `{"error":"later","code":"retry"}`
		}
		return 0, ""
	})
	if got := adminCreate(w, 6, adminTopic("later", 7)).Topics[0]; got.ErrorCode != 7 {
		t.Errorf("code %d, want 7", got.ErrorCode)
	}
	fault.set(nil)
	if rec := adminRecord(t, r, rig.Acme, "later"); rec != "" {
		t.Errorf("the record of a topic that was not made: %s", rec)
	}
	// The queue was made and its record not pinned.
	writes := 0
	fault.set(func(_, body string) (int, string) {
		if strings.Contains(body, `"op":"put"`) && strings.Contains(body, "qk:topiccfg:half") {
			if writes++; writes > 1 {
				return 503, `{"error":"kv_unavailable"}`
			}
		}
		return 0, ""
	})
	if got := adminCreate(w, 6, adminTopic("half", 7)).Topics[0]; got.ErrorCode != 7 {
		t.Errorf("code %d, want 7", got.ErrorCode)
	}
	fault.set(nil)
	if rec := adminRecord(t, r, rig.Acme, "half"); rec != "" {
		t.Errorf("the record of a topic that was half made: %s", rec)
	}
	if got := adminCreate(w, 6, adminTopic("half", 7)).Topics[0]; got.ErrorCode != 36 {
		t.Errorf("made again: code %d, want 36", got.ErrorCode)
	}
}

// What the cell answers, in the terms of each API.
func TestAdminCellFailures(t *testing.T) {
	fault := &faultyCell{}
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = fault.at(t) })
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "t", 3)
	for _, test := range []struct {
		status                                        int
		create5, create6, remove, alter, widen, throt int
	}{
		{401, 29, 29, 29, 29, 29, 0},
		{403, 29, 29, 29, 29, 29, 0},
		{404, -1, -1, -1, 7, 7, 0},
		{408, 7, 7, 7, 7, 7, 0},
		{413, -1, -1, -1, 7, 7, 0},
		{429, 7, 89, 7, 7, 7, 3000},
		{500, -1, -1, -1, 7, 7, 0},
		{502, 7, 7, 7, 7, 7, 0},
		{503, 7, 7, 7, 7, 7, 0},
		{507, -1, -1, -1, 7, 7, 0},
		{200, -1, -1, -1, 7, 7, 0}, // a body that says nothing
	} {
		body := `{"error":"words of the cell","code":"c"}`
		if test.status == 200 {
			body = `[]`
		}
		fault.set(func(path, _ string) (int, string) {
			if path == "POST /api/v1/configure" || strings.HasPrefix(path, "DELETE ") {
				return test.status, body
			}
			return 0, ""
		})
		check := func(what string, code int16, throttle int32, message *string, want int) {
			t.Helper()
			if int(code) != want || int(throttle) != test.throt || (test.status != 200) != strings.Contains(adminText(message), "words of the cell") {
				t.Errorf("%d, %s: code %d, throttle %d, %s; want %d, %d", test.status, what, code, throttle, adminText(message), want, test.throt)
			}
		}
		five := adminCreate(w, 5, adminTopic("new", -1))
		check("create v5", five.Topics[0].ErrorCode, five.ThrottleMillis, five.Topics[0].ErrorMessage, test.create5)
		six := adminCreate(w, 6, adminTopic("new", -1))
		check("create v6", six.Topics[0].ErrorCode, six.ThrottleMillis, six.Topics[0].ErrorMessage, test.create6)
		gone := adminDelete(w, "t")
		check("delete", gone.Topics[0].ErrorCode, gone.ThrottleMillis, gone.Topics[0].ErrorMessage, test.remove)
		changed := w.Ask(adminChangeRequest("t", "set segment.ms=5")).(*kmsg.IncrementalAlterConfigsResponse)
		check("alter", changed.Resources[0].ErrorCode, changed.ThrottleMillis, changed.Resources[0].ErrorMessage, test.alter)
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version, req.Topics = 3, []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 9}}
		widened := w.Ask(req).(*kmsg.CreatePartitionsResponse)
		check("widen", widened.Topics[0].ErrorCode, widened.ThrottleMillis, widened.Topics[0].ErrorMessage, test.widen)
		fault.set(nil)
		if adminWidth(w, "new") != -1 || adminWidth(w, "t") != 3 {
			t.Errorf("%d: widths %d and %d", test.status, adminWidth(w, "new"), adminWidth(w, "t"))
		}
		adminWants(t, "nothing was altered", adminDescribe(w, "t"), adminBase)
	}
}

// Keys without admin are told 29 in the cell's own words; the record APIs alone
// would let a consumer's key widen a topic.
func TestAdminRights(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "t", 3)
	for _, key := range []string{rig.Consume, rig.Produce} {
		other := r.Login(t, key)
		made := adminCreate(other, 6, adminTopic("new", 5), adminTopic("plain", -1), adminTopic("t", 5))
		for i, want := range []int16{29, 29, 36} {
			if got := made.Topics[i]; got.ErrorCode != want || want == 29 && !strings.Contains(adminText(got.ErrorMessage), "403") {
				t.Errorf("%s creates: %+v %s, want %d", key, got, adminText(got.ErrorMessage), want)
			}
		}
		if rec := adminRecord(t, r, rig.Acme, "new"); rec != "" {
			t.Errorf("%s has left a record: %s", key, rec)
		}
		if got := adminDelete(other, "t").Topics[0]; got.ErrorCode != 29 || !strings.Contains(adminText(got.ErrorMessage), "not permitted") {
			t.Errorf("%s deletes: code %d %s", key, got.ErrorCode, adminText(got.ErrorMessage))
		}
		if got := adminChange(other, "t", "set segment.ms=5"); got.ErrorCode != 29 {
			t.Errorf("%s alters: code %d", key, got.ErrorCode)
		}
		if got := adminWiden(other, "t", 9); got.ErrorCode != 29 {
			t.Errorf("%s widens: code %d", key, got.ErrorCode)
		}
		if got := adminDescribed(other, "t"); got.ErrorCode != 0 {
			t.Errorf("%s describes: code %d", key, got.ErrorCode)
		}
	}
	if adminWidth(w, "new") != -1 || adminWidth(w, "plain") != -1 || adminWidth(w, "t") != 3 {
		t.Error("something was done")
	}
	adminWants(t, "nothing was altered", adminDescribe(w, "t"), adminBase)
}

// Two tenants, one name: each has its own width, configs and end. Restarts of
// either side change nothing of it.
func TestAdminTenantsAndRestarts(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) { o.Dir = t.TempDir() })
	acme, globex := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	adminMade(t, acme, "orders", 7, "retention.ms=60000", "segment.ms=5")
	adminMade(t, globex, "orders", 2, "cleanup.policy=compact")
	check := func(when string) {
		t.Helper()
		acme, globex = r.Login(t, rig.Acme), r.Login(t, rig.Globex)
		adminWants(t, when+", acme", adminDescribe(acme, "orders"), "cleanup.policy=delete min.insync.replicas=1 retention.ms=60000* segment.ms=5*")
		adminWants(t, when+", globex", adminDescribe(globex, "orders"), "cleanup.policy=compact* min.insync.replicas=1 retention.ms=-1")
		if a, g := adminWidth(acme, "orders"), adminWidth(globex, "orders"); a != 7 || g != 2 {
			t.Errorf("%s: widths of %d and %d", when, a, g)
		}
	}
	check("at first")
	r.StopGateway(t)
	r.StartGateway(t)
	check("another gateway")
	r.StopGateway(t)
	r.StopCell(t)
	r.StartCell(t)
	r.StartGateway(t)
	check("another cell")
	if got := adminWiden(globex, "orders", 3); got.ErrorCode != 0 {
		t.Errorf("widen: code %d", got.ErrorCode)
	}
	adminDelete(acme, "orders")
	if adminWidth(acme, "orders") != -1 || adminWidth(globex, "orders") != 3 {
		t.Error("one tenant's deletion is another's")
	}
	for _, alien := range []*kmsg.DeleteTopicsResponse{adminDelete(acme, "orders")} {
		if alien.Topics[0].ErrorCode != 3 {
			t.Errorf("another tenant's topic is deleted with code %d", alien.Topics[0].ErrorCode)
		}
	}
}

// Many alter one topic at once, over two gateways' worth of connections: none of
// the changes is lost.
func TestAdminConcurrentAlters(t *testing.T) {
	r := rig.Start(t)
	adminMade(t, r.Login(t, rig.Acme), "t", 1)
	keys := []string{"segment.bytes", "segment.ms", "max.message.bytes", "delete.retention.ms"}
	var wg sync.WaitGroup
	for i, key := range keys {
		w := r.Login(t, []string{rig.Acme, rig.Acme2}[i%2])
		wg.Go(func() {
			for n := range 5 {
				for { // 7 is what clients ask again for
					req := adminChangeRequest("t", fmt.Sprintf("set %s=%d", key, 100+n))
					if code := w.Ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode; code == 0 {
						break
					} else if code != 7 {
						t.Errorf("%s: code %d", key, code)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	w := r.Login(t, rig.Acme)
	adminWants(t, "all of it", adminDescribe(w, "t", keys...),
		"segment.bytes=104* segment.ms=104* max.message.bytes=104* delete.retention.ms=104*")
}

// Two create one topic at once: one does, the other is told that it is there.
func TestAdminConcurrentCreates(t *testing.T) {
	r := rig.Start(t)
	for round := range 5 {
		name := fmt.Sprintf("t%d", round)
		codes := make(chan int16, 4)
		var wg sync.WaitGroup
		for i := range 4 {
			w := r.Login(t, []string{rig.Acme, rig.Acme2}[i%2])
			wg.Go(func() {
				codes <- adminCreate(w, 6, adminTopic(name, int32(3+i), "retention.ms=60000")).Topics[0].ErrorCode
			})
		}
		wg.Wait()
		close(codes)
		made := 0
		for code := range codes {
			switch code {
			case 0:
				made++
			case 36:
			default:
				t.Errorf("code %d", code)
			}
		}
		if made != 1 {
			t.Errorf("%d made it", made)
		}
	}
}

// With the window off, topics have none, and altering leaves it so.
func TestAdminDedupWindowOff(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) { o.Config = func(c *config.Config) { c.DedupWindow = 0 } })
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "made", 1)
	wireMustStore(t, w, "auto", 0, wireBatch{values: []string{"x"}})
	for _, topic := range []string{"made", "auto"} {
		adminChange(w, topic, "set retention.ms=60000")
		if o := adminCellOptions(t, r, rig.Acme, topic); o.DedupWindowSeconds != 0 || o.RetentionSeconds != 60 {
			t.Errorf("%s: %+v", topic, o)
		}
	}
}

// A topic that somebody made without a gateway is described read-only, and
// refuses to be altered with the reason.
func TestAdminForeignTopic(t *testing.T) {
	r := rig.Start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.CellURL+"/api/v1/configure", strings.NewReader(`{"queue":"native","retentionEnabled":true,"retentionSeconds":77}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key(rig.Acme))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	w := r.Login(t, rig.Acme)
	adminWants(t, "native", adminDescribe(w, "native"), "cleanup.policy=delete! min.insync.replicas=1!")
	for what, got := range map[string]kmsg.IncrementalAlterConfigsResponseResource{
		"alter":    adminChange(w, "native", "set retention.ms=5000"),
		"no alter": adminChange(w, "native"),
	} {
		if got.ErrorCode != 40 || !strings.Contains(adminText(got.ErrorMessage), "not created through this service") {
			t.Errorf("%s: %d %s", what, got.ErrorCode, adminText(got.ErrorMessage))
		}
	}
	if got := adminWiden(w, "native", 9); got.ErrorCode != 37 || !strings.Contains(adminText(got.ErrorMessage), "QUEEN_KAFKA_DEFAULT_PARTITIONS") {
		t.Errorf("widen: %d %s", got.ErrorCode, adminText(got.ErrorMessage))
	}
	if o := adminCellOptions(t, r, rig.Acme, "native"); o.RetentionSeconds != 77 {
		t.Errorf("%+v", o)
	}
	if got := adminCreate(w, 6, adminTopic("native", 1)).Topics[0].ErrorCode; got != 36 {
		t.Errorf("create: code %d, want 36", got)
	}
}
