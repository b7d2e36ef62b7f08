package proxy

import "net/http"

// health answers /healthz, for which nobody needs a credential.
func (p *Proxy) health(c *call) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"status":"healthy"}`)
	a.finish()
}

// me answers /auth/me (cell-http §2.6): who the key is, whatever its scopes
// and whatever its cluster's status. The identity is the cluster's id: never
// the paying tenant's, never the broker tenant.
func (p *Proxy) me(c *call) *refusal {
	if f := p.resolveHost(c); f != nil {
		return f
	}
	if !isKey(bearer(c)) {
		// The dashboard's sessions would be asked for here; there are none.
		return unauthorized("no session")
	}
	if f := p.authenticate(c); f != nil {
		return f
	}
	p.announce(c)
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.identity(c)
	a.finish()
	return nil
}

// identity renders the body of /auth/me for an API key.
func (a *answer) identity(c *call) {
	v, s := c.cluster, c.grant.Scopes
	a.RawStr(`{"user_id":null,"email":null,"tenant_slug":null,` +
		`"is_operator":false,"operator_enabled":false,"operator_live":false,"acting_cluster":{"id":`)
	a.Str(v.ID)
	a.RawStr(`,"slug":`)
	a.Str(v.Slug)
	a.RawStr(`},"clusters":[{"id":`)
	a.Str(v.ID)
	a.RawStr(`,"slug":`)
	a.Str(v.Slug)
	a.RawStr(`,"role":null,"tenant_slug":null,"tenant_id":`)
	a.Str(v.TenantID)
	a.RawStr(`,"status":`)
	a.Str(string(v.Status))
	a.RawStr(`,"cell_slug":null}],"act_cluster_header":"x-queen-act-cluster","role":null,"cluster":`)
	a.Str(v.ID)
	a.RawStr(`,"principal":"api_key","key_id":`)
	a.Str(c.grant.KeyID)
	if ends := c.grant.ExpiresAt; !ends.IsZero() {
		a.RawStr(`,"expires_at":`)
		a.time(ends, millis)
	}
	a.RawStr(`,"scopes":{"produce":`)
	a.Bool(s.Produce)
	a.RawStr(`,"consume":`)
	a.Bool(s.Consume)
	a.RawStr(`,"admin":`)
	a.Bool(s.Admin)
	a.RawStr(`,"read":`)
	a.Bool(s.Read)
	a.RawStr(`}}`)
}

// announce says what this cell can beyond the contract.
func (p *Proxy) announce(c *call) {
	if p.capabilities != "" {
		setHeader(c.w, "X-Queen-Capabilities", p.capabilities)
	}
}

// noSuchRoute is the broker's answer to a path the proxy lets through.
func (p *Proxy) noSuchRoute(c *call) *refusal {
	a := p.newAnswer(c, http.StatusNotFound)
	defer p.release(a)
	a.RawStr(`{"code":"no_such_route","error":"not found","path":`)
	a.Str(c.r.URL.Path)
	a.RawStr(`}`)
	a.finish()
	return nil
}
