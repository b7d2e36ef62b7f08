package contract

import (
	"net/http"
	"regexp"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

const (
	lanes  = "/api/v1/resources/queues?stats=lanes"
	nobody = "qk_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// accessCases are cell-http §2: credentials, Host, identity.
func accessCases() []kase {
	return []kase{
		{section: "2.3", name: "a key is qk_<env>_<43 base64url characters>", items: is(isolation), run: keyForm},
		{section: "2.3", name: "the scheme may be left out", run: func(p *probe) {
			p.status(p.send("GET", lanes, "", map[string]string{"Authorization": p.key(acme)}), 200)
		}},
		{section: "2.3", name: "a key in a cookie is no credential", run: func(p *probe) {
			p.refused(p.send("GET", lanes, "", map[string]string{"Cookie": "session=" + p.key(acme)}), 401, "unauthorized", "missing bearer credential")
		}},
		{section: "2.4", name: "no credential", items: is(isolation), run: func(p *probe) {
			p.refused(p.get("", lanes), 401, "unauthorized", "missing bearer credential")
		}},
		{section: "2.4", name: "an unknown key", items: is(isolation), run: func(p *probe) {
			p.refused(p.get(nobody, lanes), 401, "unauthorized", "unknown or revoked api key")
		}},
		{section: "2.4", name: "a bearer that is no key", run: func(p *probe) {
			p.refused(p.get("eyJhbGciOiJub25lIn0.e30.", lanes), 401, "unauthorized", "")
		}},
		{section: "2.4", name: "a key with x-queen-act-cluster", items: is(isolation), run: func(p *probe) {
			p.refused(p.send("GET", lanes, "", map[string]string{"Authorization": "Bearer " + p.key(acme), "x-queen-act-cluster": "x"}),
				403, "forbidden", "api keys are bound to their own cluster; x-queen-act-cluster is not honoured for them")
		}},
		{section: "2.4", name: "dedicated names", items: is(isolation), own: true, run: dedicatedNames},
		{section: "2.5", name: "a client's tenant header moves nothing", items: is(isolation), run: tenantHeader},
		{section: "2.5", name: "an answer carries a request id", run: func(p *probe) {
			if r := p.get(acme, lanes); r.header.Get("X-Queen-Request-Id") == "" {
				p.errorf("none")
			}
		}},
		{section: "2.6", name: "/auth/me names the cluster", items: is(routes, isolation), run: whoAmI},
		{section: "2.6", name: "/auth/me for a key of no scopes", items: is(routes), own: true, run: func(p *probe) {
			p.status(p.get(p.cluster("local", "{}").scoped(), "/auth/me"), 200)
		}},
		{section: "2.6", name: "/auth/me for an unknown key", run: func(p *probe) {
			p.refused(p.get(nobody, "/auth/me"), 401, "unauthorized", "unknown or revoked api key")
		}},
		{section: "2.6", name: "/auth/me without a key", run: func(p *probe) {
			p.refused(p.get("", "/auth/me"), 401, "unauthorized", "no session")
		}},
		{section: "2.6", name: "/auth/me while suspended, and over the rate", sure: inferred, own: true, run: func(p *probe) {
			t := p.cluster("free", `{"max_req_per_sec":0,"req_burst":0}`)
			t.status(control.Suspended)
			r := p.get(t.key, "/auth/me")
			p.status(r, 200)
			p.eq(r, "clusters.0.status", "suspended")
		}},
		{section: "2.6", name: "/auth/me says when a key ends", own: true, run: keyEnds},
		{section: "2.7", name: "a login is a listing: a key without read fails it", items: is(scopes), run: func(p *probe) {
			p.refused(p.get(acmeNoRead, lanes), 403, "forbidden", "operation not permitted for this credential")
			p.status(p.get(acmeConsume, lanes), 200)
		}},
		{section: "2.3", name: "a revoked key is unknown to the next call", items: is(revocation), own: true, run: revoked},
		{section: "5.7", name: "/healthz needs no credential", items: is(routes), run: func(p *probe) {
			p.status(p.get("", "/healthz"), 200)
		}},
	}
}

func keyForm(p *probe) {
	if !regexp.MustCompile(`^qk_[a-z0-9]+_[A-Za-z0-9_-]{43}$`).MatchString(p.key(acme)) {
		p.errorf("a key has another form")
	}
}

func dedicatedNames(p *probe) {
	one, two := p.cluster("local", "{}"), p.cluster("local", "{}")
	at := func(host, key string) reply {
		return p.send("GET", lanes, "", map[string]string{"Host": host, "Authorization": "Bearer " + key})
	}
	for _, host := range []string{one.slug + ".eu1.example", one.slug + ".EU1.example.:443", one.slug} {
		p.status(at(host, one.key), 200)
		p.refused(at(host, two.key), 403, "forbidden", "key/cluster mismatch")
		p.refused(at(host, nobody), 401, "unauthorized", "unknown or revoked api key")
		p.refused(p.send("GET", lanes, "", map[string]string{"Host": host}), 401, "unauthorized", "missing bearer credential")
	}
	p.refused(at("nowhere.example", one.key), 421, "cluster_unknown", "no cluster for this host")
	p.refused(at("nowhere.example", nobody), 401, "unauthorized", "unknown or revoked api key")
	p.refused(p.send("GET", "/auth/me", "", map[string]string{"Host": one.slug, "Authorization": "Bearer " + two.key}), 403, "forbidden", "key/cluster mismatch")
}

func tenantHeader(p *probe) {
	q := p.name("q")
	p.want2xx(p.post(globex, "/api/v1/configure", `{"queue":"`+q+`"}`))
	id := p.get(globex, "/auth/me").at("acting_cluster.id")
	for _, claimed := range []string{id, "00000000-0000-0000-0000-000000000001"} {
		r := p.send("GET", "/api/v1/resources/queues/"+q, "", map[string]string{"Authorization": "Bearer " + p.key(acme), "x-queen-tenant": claimed})
		p.status(r, 404)
	}
}

func whoAmI(p *probe) {
	r := p.want2xx(p.get(acme, "/auth/me"))
	id := r.at("acting_cluster.id")
	if !regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`).MatchString(id) {
		p.errorf("acting_cluster.id is %q", id)
	}
	p.eq(r, "cluster", id, "clusters.0.id", id, "clusters.0.status", "active", "principal", "api_key",
		"act_cluster_header", "x-queen-act-cluster", "role", "null", "is_operator", "false",
		"scopes.produce", "true", "scopes.consume", "true", "scopes.admin", "true", "scopes.read", "true")
	for _, member := range []string{"user_id", "email", "tenant_slug", "operator_live", "clusters.0.tenant_id", "clusters.0.cell_slug", "key_id"} {
		if r.at(member) == "absent" {
			p.errorf("%s is absent", member)
		}
	}
	if tenant := r.at("clusters.0.tenant_id"); tenant == id {
		p.errorf("the paying tenant's id is the cluster's")
	}
	p.eq(p.get(acme2, "/auth/me"), "acting_cluster.id", id)
	if other := p.get(globex, "/auth/me").at("acting_cluster.id"); other == id {
		p.errorf("two clusters have one id")
	}
}

func keyEnds(p *probe) {
	t := p.cluster("local", "{}")
	ends := p.cell.Control().Clusters()[0].CreatedAt.AddDate(1, 0, 0)
	text, _, err := p.cell.Control().CreateKey(control.NewKey{Cluster: t.slug, ExpiresAt: ends})
	p.must(err)
	r := p.want2xx(p.get(text, "/auth/me"))
	p.eq(r, "expires_at", ends.UTC().Format("2006-01-02T15:04:05.000Z"))
	p.eq(p.get(t.key, "/auth/me"), "expires_at", "absent")
	text, _, err = p.cell.Control().CreateKey(control.NewKey{Cluster: t.slug, ExpiresAt: p.cell.Control().Clusters()[0].CreatedAt})
	p.must(err)
	p.refused(p.get(text, "/auth/me"), http.StatusUnauthorized, "unauthorized", "unknown or revoked api key")
}

func revoked(p *probe) {
	t := p.cluster("local", "{}")
	text, key, err := p.cell.Control().CreateKey(control.NewKey{Cluster: t.slug, Scopes: control.AllScopes()})
	p.must(err)
	p.status(p.get(text, lanes), 200)
	p.must(p.cell.Control().RevokeKey(key.ID))
	for _, path := range []string{lanes, "/auth/me"} {
		p.refused(p.get(text, path), 401, "unauthorized", "unknown or revoked api key")
	}
	p.refused(p.push(text, rec("q", "0", "1")), 401, "unauthorized", "unknown or revoked api key")
	p.status(p.get(t.key, lanes), 200)
}
