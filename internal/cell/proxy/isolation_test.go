package proxy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEqualNamesNeverMeet: two clusters use the same names for everything.
func TestEqualNamesNeverMeet(t *testing.T) {
	r := newRig(t)
	acme, rival := r.full("acme"), r.full("rival")
	const (
		one  = `{"entries":[{"queue":"orders","partition":"0","offset":0}]}`
		when = `{"entries":[{"queue":"orders","partition":"0","timestamp":0}]}`
	)
	r.mustPost(acme, "/api/v1/configure", `{"queue":"orders","leaseTime":7}`)
	r.mustPost(acme, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":"acme's","transactionId":"t"}]}`)

	if list := r.lanes(rival); len(list.Queues) != 0 {
		t.Errorf("the rival lists %+v", list)
	}
	for _, path := range []string{"/api/v1/fetch", "/api/v1/fetch/offsets"} {
		body := map[string]string{"/api/v1/fetch": one, "/api/v1/fetch/offsets": when}[path]
		if got := r.mustPost(rival, path, body); !strings.Contains(got, "UNKNOWN_TOPIC_OR_PARTITION") || strings.Contains(got, "acme") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/api/v1/resources/queues/orders", "/api/v1/resources/queues/orders/sizes"} {
		if got := r.get(rival, path); got.status != 404 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.do(request{method: "DELETE", path: "/api/v1/resources/queues/orders", auth: "Bearer " + rival}); !strings.Contains(got.body, `"existed":false`) {
		t.Errorf("the rival deleted: %s", got.body)
	}

	created := decoded[configured](t, r.mustPost(rival, "/api/v1/configure", `{"queue":"orders"}`))
	if created.Options["leaseTime"] != 300.0 || created.QueueID == r.lanes(acme).Queues[0].ID {
		t.Errorf("the rival's queue is %+v", created)
	}
	pushedTo := decoded[[]pushed](t, r.mustPost(rival, "/api/v1/push", `{"items":[{"queue":"orders","partition":"0","payload":"rival's","transactionId":"t"}]}`))
	if pushedTo[0].Status != "queued" || *pushedTo[0].Offset != 0 {
		t.Errorf("the rival's push is %+v", pushedTo)
	}
	for key, want := range map[string]string{acme: `"acme's"`, rival: `"rival's"`} {
		records := decoded[fetched](t, r.mustPost(key, "/api/v1/fetch", one)).Entries[0].Records
		if len(records) != 1 || string(records[0].Payload) != want {
			t.Errorf("want %s alone, got %+v", want, records)
		}
	}
	r.do(request{method: "DELETE", path: "/api/v1/resources/queues/orders", auth: "Bearer " + rival})
	if got := r.end(acme, "orders", "0"); got != 1 {
		t.Errorf("after the rival's delete acme has %d records", got)
	}
}

// TestATenantHeaderIsNotHonoured: no header moves a request into another
// cluster, whichever identifier it names.
func TestATenantHeaderIsNotHonoured(t *testing.T) {
	r := newRig(t)
	acme, rival := r.full("acme"), r.full("rival")
	r.mustPost(acme, "/api/v1/configure", `{"queue":"secret"}`)
	victim := r.control.Clusters()[0]
	for _, id := range []string{victim.BrokerTenant.String(), victim.ID.String(), victim.TenantID.String(), victim.Slug} {
		for _, name := range []string{"x-queen-tenant", "X-Queen-Cluster", "x-tenant", "x-forwarded-host"} {
			got := r.do(request{path: listPath, auth: "Bearer " + rival, header: map[string]string{name: id}})
			if got.status != 200 || strings.Contains(got.body, "secret") {
				t.Errorf("%s: %s gave %d %s", name, id, got.status, got.body)
			}
		}
	}
}

// TestNoKeyTextAnywhere: neither in the data folder nor in a log at debug
// level, whatever a client puts where.
func TestNoKeyTextAnywhere(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	secret := strings.TrimPrefix(key, "qk_live_")
	unknown := "qk_live_" + strings.Repeat("Z", 43)
	r.mustPost(key, "/api/v1/push", `{"items":[{"queue":"q","partition":"0","payload":1}]}`)
	r.get(key, "/auth/me")
	r.get(key, "/api/v1/"+key)
	r.get(key, listPath+"&key="+key)
	r.get(unknown, listPath)
	r.post(key, "/api/v1/push", `{`)
	r.do(request{path: listPath, host: key + ".example", auth: "Bearer " + key})
	r.do(request{path: listPath, auth: "Bearer " + key, header: map[string]string{"x-queen-act-cluster": key}})

	files := 0
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), secret) {
			t.Errorf("%s holds a key's text", path)
		}
		return err
	})
	if err != nil || files < 2 {
		t.Fatalf("%d files, %v", files, err)
	}
	log := r.log.String()
	if !strings.Contains(log, `"route":"push"`) {
		t.Errorf("the debug log has no requests: %.300s", log)
	}
	if strings.Contains(log, secret) || strings.Contains(log, strings.Repeat("Z", 43)) {
		t.Error("the log holds a key's text")
	}
}

func TestARequestHasAnID(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	first, second := r.get(key, listPath).header.Get("X-Queen-Request-Id"), r.get("", listPath).header.Get("X-Queen-Request-Id")
	if first == "" || second == "" || first == second {
		t.Errorf("ids %q and %q", first, second)
	}
}
