package check

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// keysAndValues takes the step kv.
func (r *run) keysAndValues(ctx context.Context, answers []answer) {
	i := slices.IndexFunc(answers, func(a answer) bool { return a.says == accepted })
	if i < 0 {
		r.report.Skip("the token was not taken", kvStep)
		return
	}
	r.report.Add(kvStep, r.tryWrite(ctx, answers[i].scope))
}

// neverThere is a version that a row would need for the write to happen. The
// key is random, so there is no row, and a write that expects a version never
// makes one (cell-http §4.3): grant, scope and quota are asked about as for any
// write, and nothing is written.
const neverThere = 1

// tryWrite asks for a write that cannot win, and reads the same key.
func (r *run) tryWrite(ctx context.Context, s tenancy.Scope) steps.Finding {
	key := "qk:check:" + strings.ToLower(rand.Text())
	results, err := r.client.KV(ctx, s, []proxyclient.KVOp{
		{Op: proxyclient.KVPut, Key: key, Value: []byte("null"), TTLSeconds: 1, Expect: proxyclient.ExpectVersion(neverThere)},
		{Op: proxyclient.KVGetMany, Keys: []string{key}},
	})
	if err != nil {
		return r.writeRefused(err)
	}
	if results[0].Applied || len(results[1].Rows) > 0 {
		return failed(causeWrote, "the cell wrote a row under a condition that could not hold; it ends by itself within a second",
			"this cell does not keep conditions: commits and transactions are not safe on it; report it to who runs it")
	}
	return fine("granted: a write whose condition could not hold was judged by the condition, and nothing was written")
}

func (r *run) writeRefused(err error) steps.Finding {
	e, ok := proxyclient.AsError(err)
	if !ok || e.Kind != proxyclient.KindStatus {
		return r.unsureFinding(err)
	}
	switch {
	case e.Code == "feature_gated", e.Status == http.StatusNotFound:
		return failed(causeNotGranted, "the cell grants this cluster no keys and values: "+e.WireText(),
			"have whoever runs the cell grant them (a row in its kv_quota); without it records go through, and every group, commit and transaction fails")
	case e.Code == "kv_quota_exceeded":
		return failed(causeFull, "the cluster's key space is full: "+e.WireText(), "delete groups that nobody uses any more, or have the quota raised; until then no offset is committed")
	case e.Status == http.StatusForbidden:
		return failed(causeMissingScope, "the token may not ask: "+e.WireText(), "give this command a token that has the scope consume: one without it cannot show whether consumers will work")
	}
	return r.unsureFinding(err)
}
