package api

import (
	"context"
	"strings"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// unknownCredential is the one sentence for a bad token, a key of another
// cluster and a name that no cluster has, so that nothing can be enumerated
// (B4).
const unknownCredential = "Authentication failed: the password is not a valid token for this address " +
	"(unknown, revoked or malformed; HTTP 401). Use the token verbatim as the SASL password."

// Refuses reports whether an error of the login check is the cell's verdict on
// the credential. Anything else is "could not be checked".
func Refuses(err error) bool {
	e, ok := proxyclient.AsError(err)
	if !ok || e.Kind != proxyclient.KindStatus {
		return false
	}
	return e.Status == 401 || e.Status == 403 || e.Status == 421
}

// refusalSentence chooses what a refused client is told. What concerns a cluster
// (a missing scope, a suspension) is told to a key that the cell knows, and to
// nobody else: on a dedicated name the cell says "suspended" before it looks at
// the key.
func (h *Handlers) refusalSentence(ctx context.Context, claim tenancy.Claim, err error) string {
	e, _ := proxyclient.AsError(err)
	if e.Status != 403 || strings.Contains(e.Text, "key/cluster mismatch") {
		return unknownCredential
	}
	if !h.cfg.Verify.Proven(ctx, claim) {
		return unknownCredential
	}
	if e.Code == "cluster_suspended" {
		return "Authentication failed: the cluster of this token is suspended. " + e.WireText()
	}
	return "Authentication failed: the token lacks a SCOPE, it is not a bad password. Listing topics (Metadata) " +
		"needs the scope `read`. " + e.WireText()
}
