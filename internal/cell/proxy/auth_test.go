package proxy

import (
	"net/http"
	"strings"
	"testing"
)

const listPath = "/api/v1/resources/queues?stats=lanes"

// TestHosts is the table of cell-http §2.4, on each kind of listener.
func TestHosts(t *testing.T) {
	shared := newRig(t)
	strict := newRig(t, dedicated)
	fallback := newRig(t, dedicated, func(cfg *Config) { cfg.DefaultCluster = "acme" })

	const (
		none    = ""
		own     = "own"
		other   = "other"
		unknown = "Bearer qk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		session = "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"
	)
	const (
		unauth  = "unauthorized"
		missing = "missing bearer credential"
		revoked = "unknown or revoked api key"
		invalid = "invalid credential"
		nobody  = "no cluster for this host"
		foreign = "key/cluster mismatch"
	)
	for _, tc := range []struct {
		name   string
		rig    *rig
		host   string
		cred   string // own and other: a key of acme and of rival
		status int    // 200: proceeds
		code   string
		text   string
	}{
		{"dedicated host, key of that cluster", strict, "acme.eu1.example.cloud", own, 200, "", ""},
		{"dedicated host beside shared ones", shared, "acme.eu1.example.cloud", own, 200, "", ""},
		{"dedicated host, port", strict, "acme.eu1.example.cloud:443", own, 200, "", ""},
		{"dedicated host, trailing dots", strict, "acme.eu1.example.cloud..", own, 200, "", ""},
		{"dedicated host, upper case", strict, "ACME.Eu1.Example.Cloud.:6711", own, 200, "", ""},
		{"dedicated host, one label", strict, "acme", own, 200, "", ""},
		{"dedicated host, key of another cluster", strict, "acme.example.cloud", other, 403, "forbidden", foreign},
		{"dedicated host beside shared ones, key of another", shared, "acme.example.cloud", other, 403, "forbidden", foreign},
		{"dedicated host, no credential", strict, "acme.example.cloud", none, 401, unauth, missing},
		{"shared host, no credential", shared, "127.0.0.1", none, 401, unauth, missing},
		{"dedicated host, unknown key", strict, "acme.example.cloud", unknown, 401, unauth, revoked},
		{"shared host, unknown key", shared, "127.0.0.1", unknown, 401, unauth, revoked},
		{"dedicated host, no key", strict, "acme.example.cloud", session, 401, unauth, invalid},
		{"shared host, no key", shared, "127.0.0.1:6711", session, 401, unauth, invalid},
		{"shared host, valid key", shared, "127.0.0.1", own, 200, "", ""},
		{"shared host, valid key of another", shared, "127.0.0.1:9", other, 200, "", ""},
		{"unknown host, no shared names", strict, "127.0.0.1", own, 421, "cluster_unknown", nobody},
		{"unknown host, no shared names, no credential", strict, "nope.example.cloud", none, 421, "cluster_unknown", nobody},
		{"unknown host, no shared names, unknown key", strict, "nope.example.cloud", unknown, 421, "cluster_unknown", nobody},
		{"unknown host beside shared names, valid key", shared, "nope.example.cloud", own, 421, "cluster_unknown", nobody},
		{"unknown host beside shared names, unknown key", shared, "nope.example.cloud", unknown, 401, unauth, revoked},
		{"unknown host beside shared names, no key", shared, "nope.example.cloud", session, 401, unauth, invalid},
		{"unknown host beside shared names, no credential", shared, "nope.example.cloud", none, 401, unauth, missing},
		{"a slug in the second label is none", strict, "x.acme.example.cloud", own, 421, "cluster_unknown", nobody},
		{"a port that is none stays in the name", shared, "127.0.0.1:x", own, 421, "cluster_unknown", nobody},
		{"unknown host, default cluster", fallback, "nope.example.cloud", own, 200, "", ""},
		{"unknown host, default cluster, key of another", fallback, "nope.example.cloud", other, 403, "forbidden", foreign},
		{"known host beside a default cluster", fallback, "rival.example.cloud", other, 200, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			auth := tc.cred
			switch tc.cred {
			case own:
				auth = "Bearer " + tc.rig.key("acme", "read")
			case other:
				auth = "Bearer " + tc.rig.key("rival", "read")
			}
			got := tc.rig.do(request{path: listPath, host: tc.host, auth: auth})
			if tc.code == "" {
				if got.status != tc.status {
					t.Errorf("got %d %s", got.status, got.body)
				}
				return
			}
			isRefusal(t, got, tc.status, tc.code, tc.text)
		})
	}
}

// TestCredentialForms is cell-http §2.3: how the header is read.
func TestCredentialForms(t *testing.T) {
	r := newRig(t)
	key := r.key("acme", "read")
	for _, tc := range []struct {
		name, auth string
		header     map[string]string
		status     int
		code, text string
	}{
		{name: "bearer", auth: "Bearer " + key, status: 200},
		{name: "spaces around", auth: "Bearer   " + key + "  ", status: 200},
		{name: "no scheme", auth: key, status: 200},
		{name: "lower-case scheme", auth: "bearer " + key, status: 401, code: "unauthorized", text: "invalid credential"},
		{name: "empty bearer", auth: "Bearer", status: 401, code: "unauthorized", text: "invalid credential"},
		{
			name: "key in a cookie", header: map[string]string{"Cookie": "session=" + key},
			status: 401, code: "unauthorized", text: "missing bearer credential",
		},
		{name: "key text cut short", auth: "Bearer " + key[:len(key)-1], status: 401, code: "unauthorized", text: "unknown or revoked api key"},
		{
			name: "acting for a cluster", auth: "Bearer " + key, header: map[string]string{"x-queen-act-cluster": "rival"},
			status: 403, code: "forbidden",
			text: "api keys are bound to their own cluster; x-queen-act-cluster is not honoured for them",
		},
		{
			name: "acting for a cluster, unknown key", auth: "Bearer " + key + "x", header: map[string]string{"x-queen-act-cluster": "rival"},
			status: 401, code: "unauthorized", text: "unknown or revoked api key",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := r.do(request{path: listPath, auth: tc.auth, header: tc.header})
			if tc.code != "" {
				isRefusal(t, got, tc.status, tc.code, tc.text)
			} else if got.status != tc.status {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}

func TestRevocationBitesAtOnce(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	if got := r.get(key, listPath); got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	keys := r.control.Keys("acme")
	if err := r.control.RevokeKey(keys[len(keys)-1].ID); err != nil {
		t.Fatal(err)
	}
	isRefusal(t, r.get(key, listPath), 401, "unauthorized", "unknown or revoked api key")
	isRefusal(t, r.get(key, "/auth/me"), 401, "unauthorized", "unknown or revoked api key")
}

// TestMe is cell-http §2.6.
func TestMe(t *testing.T) {
	r := newRig(t)
	strict := newRig(t, dedicated)
	cluster := r.control.Clusters()[0]

	key := r.key("acme", "produce", "consume", "read")
	keys := r.control.Keys("acme")
	want := `{"user_id":null,"email":null,"tenant_slug":null,` +
		`"is_operator":false,"operator_enabled":false,"operator_live":false,` +
		`"acting_cluster":{"id":"` + cluster.ID.String() + `","slug":"acme"},` +
		`"clusters":[{"id":"` + cluster.ID.String() + `","slug":"acme","role":null,` +
		`"tenant_slug":null,"tenant_id":"` + cluster.TenantID.String() + `",` +
		`"status":"active","cell_slug":null}],` +
		`"act_cluster_header":"x-queen-act-cluster","role":null,` +
		`"cluster":"` + cluster.ID.String() + `",` +
		`"principal":"api_key","key_id":"` + keys[0].ID.String() + `",` +
		`"scopes":{"produce":true,"consume":true,"admin":false,"read":true}}`
	if got := r.get(key, "/auth/me"); got.status != 200 || got.body != want {
		t.Errorf("got %d\n%s\nwant\n%s", got.status, got.body, want)
	}
	if strings.Contains(want, cluster.BrokerTenant.String()) {
		t.Error("the broker tenant is shown")
	}

	bare := r.key("acme")
	if got := r.get(bare, "/auth/me"); got.status != 200 || !strings.Contains(got.body, cluster.ID.String()) {
		t.Errorf("a key without scopes: %d %s", got.status, got.body)
	}

	acme, rival := strict.full("acme"), strict.full("rival")
	for _, tc := range []struct {
		name       string
		rig        *rig
		host, auth string
		status     int
		code, text string
	}{
		{"unknown key", r, "", "Bearer qk_live_x", 401, "unauthorized", "unknown or revoked api key"},
		{"no credential", r, "", "", 401, "unauthorized", "no session"},
		{"no key", r, "", "Bearer eyJ", 401, "unauthorized", "no session"},
		{"dedicated host, no credential", strict, "acme.example", "", 401, "unauthorized", "no session"},
		{"dedicated host, key of another", strict, "acme.example", "Bearer " + rival, 403, "forbidden", "key/cluster mismatch"},
		{"unknown host", strict, "nope.example", "Bearer " + acme, 421, "cluster_unknown", "no cluster for this host"},
		{"unknown host beside shared names", r, "nope.example", "Bearer " + key, 421, "cluster_unknown", "no cluster for this host"},
		{"unknown host beside shared names, unknown key", r, "nope.example", "Bearer qk_live_x", 401, "unauthorized", "unknown or revoked api key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			isRefusal(t, tc.rig.do(request{path: "/auth/me", host: tc.host, auth: tc.auth}), tc.status, tc.code, tc.text)
		})
	}

	if got := strict.do(request{path: "/auth/me", host: "acme.example", auth: "Bearer " + acme}); got.status != 200 {
		t.Errorf("dedicated host, key of that cluster: %d %s", got.status, got.body)
	}
	if err := r.control.SetStatus("acme", "suspended"); err != nil {
		t.Fatal(err)
	}
	if got := r.get(key, "/auth/me"); got.status != 200 || !strings.Contains(got.body, `"status":"suspended"`) {
		t.Errorf("suspended cluster: %d %s", got.status, got.body)
	}
}

func TestTwoKeysOfAClusterAreOneIdentity(t *testing.T) {
	r := newRig(t)
	identity := func(key string) string {
		type me struct {
			Acting struct{ ID string } `json:"acting_cluster"`
		}
		return decoded[me](t, r.get(key, "/auth/me").body).Acting.ID
	}
	first, second, rival := identity(r.full("acme")), identity(r.key("acme", "read")), identity(r.full("rival"))
	if first == "" || first != second || first == rival {
		t.Errorf("acme %s and %s, rival %s", first, second, rival)
	}
}

func TestHealthNeedsNothing(t *testing.T) {
	r := newRig(t, dedicated)
	if got := r.do(request{path: "/healthz", host: "nope.example"}); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
