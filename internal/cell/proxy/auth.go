package proxy

import (
	"strings"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// actClusterHeader lets a dashboard session act for a cluster; with an API key
// it is refused.
const actClusterHeader = "X-Queen-Act-Cluster"

// bearer reads the credential out of the Authorization header
// (cell-http §2.3). A key in a cookie is no credential.
func bearer(c *call) string {
	return strings.TrimSpace(strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer "))
}

// isKey tells an API key from a session.
func isKey(text string) bool { return strings.HasPrefix(text, control.KeyPrefix) }

// authenticate proves the credential and settles the cluster: the key's, which
// on a dedicated host must be the host's.
func (p *Proxy) authenticate(c *call) *refusal {
	text := bearer(c)
	if text == "" {
		return unauthorized("missing bearer credential")
	}
	if !isKey(text) {
		return unauthorized("invalid credential")
	}
	grant, ok := p.control.Authenticate(text)
	if !ok {
		return unauthorized("unknown or revoked api key")
	}
	if len(c.r.Header.Values(actClusterHeader)) > 0 {
		return forbidden("api keys are bound to their own cluster; x-queen-act-cluster is not honoured for them")
	}
	switch {
	case c.cluster != nil && c.cluster.ID != grant.Cluster.ID:
		return forbidden("key/cluster mismatch")
	case c.cluster == nil && !c.sharedHost:
		return clusterUnknown()
	}
	c.grant, c.cluster = grant, grant.Cluster
	return nil
}

// authorize holds the key's scopes against the route's class.
func (p *Proxy) authorize(c *call) *refusal {
	if !c.target.class.permits(c.grant.Scopes) {
		return forbidden("operation not permitted for this credential")
	}
	return nil
}
