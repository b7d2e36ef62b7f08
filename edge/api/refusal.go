package api

import (
	"context"
	"strings"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// unknownCredential is the one sentence for a bad token, a key of another
// cluster and a name that no cluster has, so that nothing can be enumerated
// (B4).
func unknownCredential(m sasl.Mechanism) *refusedLogin {
	carrier := "the password"
	if m == sasl.OAuthBearer {
		carrier = "the bearer"
	}
	return &refusedLogin{LoginUnknown, "Authentication failed: " + carrier + " is not a valid token for this address " +
		"(unknown, revoked or malformed; HTTP 401). Use the token verbatim as " + carrier + ".", statusUnknown}
}

// Refuses reports whether an error of the login check is the cell's verdict on
// the credential. Anything else is "could not be checked".
func Refuses(err error) bool {
	e, ok := proxyclient.AsError(err)
	if !ok || e.Kind != proxyclient.KindStatus {
		return false
	}
	return e.Status == 401 || e.Status == 403 || e.Status == 421
}

// What a challenge says of a refusal (RFC 7628 §3.2.2, RFC 6750 §3.1).
const (
	statusMalformed = "invalid_request"
	statusUnknown   = "invalid_token"
	statusScope     = "insufficient_scope"
)

// refusalOf chooses what a refused client is told. What concerns a cluster
// (a missing scope, a suspension) is told to a key that the cell knows, and to
// nobody else: on a dedicated name the cell says "suspended" before it looks at
// the key.
func (h *Handlers) refusalOf(ctx context.Context, m sasl.Mechanism, claim tenancy.Claim, err error) *refusedLogin {
	e, _ := proxyclient.AsError(err)
	if e.Status != 403 || strings.Contains(e.Text, "key/cluster mismatch") {
		return unknownCredential(m)
	}
	if !h.cfg.Verify.Proven(ctx, claim) {
		return unknownCredential(m)
	}
	if e.Code == "cluster_suspended" {
		return &refusedLogin{LoginSuspended, "Authentication failed: the cluster of this token is suspended. " + e.WireText(), statusUnknown}
	}
	return &refusedLogin{LoginNoScope, "Authentication failed: the token lacks a SCOPE, it is not a bad password. Listing topics (Metadata) " +
		"needs the scope `read`. " + e.WireText(), statusScope}
}
