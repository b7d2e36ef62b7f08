package proxyclient

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestListQueues(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]Queue{
		`{"queues":[]}`: {},
		`{"queues":[{"id":"7b1f","name":"orders","queue":"orders","partitions":3,"createdAt":"2026-10-02T08:00:00.000Z"}],"stats":"lanes"}`: {{"7b1f", "orders", 3}},
		`{"kvRows":1,"queues":[{"partitions":null,"id":null,"messages":{"total":1},"name":"a/b"},{"name":"c"}]}`:                            {{"", "a/b", 0}, {"", "c", 0}},
		` { "queues" : [ {"name":"\u00e9\/\"" , "partitions" : 0} ] } `:                                                                     {{"", "é/\"", 0}},
	} {
		c, _ := talk(t, says(body))
		got, err := c.ListQueues(t.Context(), testScope(t))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"queues":null}`, `{"queues":{}}`, `{"queues":[{"id":"x"}]}`, `{"queues":[{"name":""}]}`, `{"queues":[{"name":7}]}`,
		`{"queues":[{"name":"a","partitions":"3"}]}`, `{"queues":[{"name":"a","partitions":-1}]}`, `{"queues":[{"name":"a","partitions":3000000000}]}`,
		`{"queues":["a"]}`, `{"queues":[]`, `{"queues":[]}x`, `null`,
	} {
		c, _ := talk(t, says(body))
		got, err := c.ListQueues(t.Context(), testScope(t))
		mustError(t, err, KindBody)
		if got != nil {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// The client is what Verify asks.
func TestTheClientProvesAClaim(t *testing.T) {
	t.Parallel()
	var _ tenancy.Cell[[]Queue] = (*Client)(nil)
	c, cell := talk(t, says(`{"queues":[{"name":"orders"}],"acting_cluster":{"id":"c-1"}}`))
	v := tenancy.NewVerifier[[]Queue](c, tenancy.VerifierConfig{})
	proof, err := v.Verify(t.Context(), tenancy.NewClaim(tenancy.NewSecret(testBearer), "acme.example.cloud"))
	if err != nil || proof.Scope.ID().String() != "c-1" || len(proof.Listing) != 1 {
		t.Fatal(proof, err)
	}
	for _, h := range cell.requests() {
		if h.host != "acme.example.cloud" || h.header.Get("Authorization") != "Bearer "+testBearer {
			t.Errorf("%+v", h)
		}
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"configured":true,"queueId":"7b1f","partitionId":null,"error":null,"options":{"leaseTime":300}}`))
	options := map[string]any{"dedupWindowSeconds": 0, "retentionEnabled": true, "queue": "evil"}
	id, err := c.Configure(t.Context(), testScope(t), "orders", options)
	if err != nil || id != "7b1f" || options["queue"] != "evil" {
		t.Fatal(id, err, options)
	}
	var sent map[string]any
	if err := json.Unmarshal([]byte(cell.last(t).body), &sent); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, map[string]any{"queue": "orders", "dedupWindowSeconds": 0.0, "retentionEnabled": true}) {
		t.Errorf("%v", sent)
	}
	if _, err := c.Configure(t.Context(), testScope(t), "q", map[string]any{"x": func() {}}); err == nil {
		t.Error("options that are no JSON were sent")
	}
	for _, body := range []string{
		`{}`, `{"configured":false}`, `{"configured":1}`, `{"configured":true,"error":{"message":"` + testBearer + `"}}`,
		`{"error":"no","configured":true}`, `{"configured":true,"queueId":7}`, `[]`, ``,
	} {
		c, _ := talk(t, says(body))
		_, err := c.Configure(t.Context(), testScope(t), "q", nil)
		mustError(t, err, KindBody)
	}
	c, _ = talk(t, says(`{"configured":true}`))
	if id, err := c.Configure(t.Context(), testScope(t), "q", nil); id != "" || err != nil {
		t.Error(id, err)
	}
}

func TestDeleteQueue(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"deleted":true,"existed":true,"queue":"orders"}`: true,
		`{"deleted":false,"message":"Queue not found"}`:    false,
		`{}`:             false,
		`{"error":null}`: false,
	} {
		c, cell := talk(t, says(body))
		got, err := c.DeleteQueue(t.Context(), testScope(t), "a b/ü~%._-+?#")
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
		h := cell.last(t)
		if h.method != "DELETE" || h.uri != "/api/v1/resources/queues/a%20b%2F%C3%BC~%25._-%2B%3F%23" || h.body != "" {
			t.Errorf("%+v", h)
		}
	}
	for _, body := range []string{`{"deleted":true,"error":"x"}`, `{"deleted":"true"}`, `true`, ``} {
		c, _ := talk(t, says(body))
		got, err := c.DeleteQueue(t.Context(), testScope(t), "q")
		mustError(t, err, KindBody)
		if got {
			t.Error("deleted beside an error")
		}
	}
	c, cell := talk(t, says(`{"deleted":true}`))
	for _, queue := range []string{"", ".", ".."} { // would name the collection or its parent
		_, err := c.DeleteQueue(t.Context(), testScope(t), queue)
		mustError(t, err, KindBody)
	}
	if len(cell.requests()) != 0 {
		t.Error("sent")
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	all := tenancy.Rights{Known: true, Produce: true, Consume: true, Read: true}
	for body, want := range map[string]tenancy.Identity{
		`{"user_id":null,"acting_cluster":{"id":"5f0c-A_z.:","slug":"acme"},"clusters":[{"id":"x"}],"scopes":{"produce":true,"consume":true,"admin":false,"read":true,"new":1}}`: {ClusterID: "5f0c-A_z.:", Rights: all},
		`{"acting_cluster":{"id":"  c  "},"expires_at":"2026-10-02T08:00:00+02:00"}`:                                                                                             {ClusterID: "c", ExpiresAt: time.Date(2026, 10, 2, 6, 0, 0, 0, time.UTC)},
		`{"acting_cluster":{"id":"c"},"expires_at":1790000000123}`:                                                                                                               {ClusterID: "c", ExpiresAt: time.UnixMilli(1790000000123)},
		`{"acting_cluster":{"id":"c"},"expires_at":null,"scopes":null}`:                                                                                                          {ClusterID: "c"},
		`{"acting_cluster":{"id":"c"},"expires_at":"soon","scopes":["read"]}`:                                                                                                    {ClusterID: "c"},
		`{"acting_cluster":{"id":"c"},"expires_at":-5,"scopes":{"produce":true}}`:                                                                                                {ClusterID: "c"},
		`{"acting_cluster":{"id":"c"},"scopes":{"produce":1,"consume":1,"admin":1,"read":1}}`:                                                                                    {ClusterID: "c"},
		`{"acting_cluster":{"id":"c"},"expires_at":0,"scopes":{}}`:                                                                                                               {ClusterID: "c"},
		`{"acting_cluster":{"id":"` + strings.Repeat("a", 128) + `"}}`:                                                                                                           {ClusterID: strings.Repeat("a", 128)},
		`{"acting_cluster":{"id":"` + strings.Repeat("a", 129) + `"}}`:                                                                                                           {},
		`{"acting_cluster":{"id":"a b"}}`:                                                                                                                                        {},
		`{"acting_cluster":{"id":"é"}}`:                                                                                                                                          {},
		`{"acting_cluster":{"id":""}}`:                                                                                                                                           {},
		`{"acting_cluster":{"id":7}}`:                                                                                                                                            {},
		`{"acting_cluster":"c"}`:                                                                                                                                                 {},
		`{"acting_cluster":null,"scopes":{"produce":true,"consume":true,"admin":false,"read":true}}`:                                                                             {Rights: all},
		`{}`:                              {},
		`[]`:                              {},
		`not json`:                        {},
		``:                                {},
		`{"acting_cluster":{"id":"c"}} x`: {},
	} {
		c, cell := talk(t, says(body))
		got, err := c.Identify(t.Context(), testClaim())
		if err != nil || got.ClusterID != want.ClusterID || got.Rights != want.Rights || !got.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
		if h := cell.last(t); h.uri != "/auth/me" || h.method != "GET" {
			t.Errorf("%+v", h)
		}
	}
	for _, status := range []int{401, 403, 404, 405} {
		c, _ := talk(t, refuses(status, `{"acting_cluster":{"id":"c"}}`))
		if got, err := c.Identify(t.Context(), testClaim()); err != nil || got != (tenancy.Identity{}) {
			t.Errorf("%d: %v, %v", status, got, err)
		}
	}
	for _, status := range []int{302, 400, 408, 421, 429, 500, 503} {
		c, _ := talk(t, refuses(status, ``))
		_, err := c.Identify(t.Context(), testClaim())
		mustError(t, err, KindStatus)
	}
	c := newTestClient(t, "http://127.0.0.1:1")
	_, err := c.Identify(t.Context(), testClaim())
	mustError(t, err, KindTransport)
}
