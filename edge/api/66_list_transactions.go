package api

// ListTransactions (66), versions 0–1 (KIP-664, KIP-994). The transactional ids
// of the tenant that this gateway holds; those nobody has used since it started
// are described (DescribeTransactions) and not listed. Filters of states and of
// producer ids, and from version 1 on of a transaction's age; a state that there
// is not is named back.

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/txn"
)

func (h *Handlers) listTransactions(_ context.Context, call Call, req *kmsg.ListTransactionsRequest) (*kmsg.ListTransactionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	for _, state := range req.StateFilters {
		if !slices.Contains(txnStates(), state) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, state)
		}
	}
	now := time.Now()
	views := h.cfg.Txns.List(call.Scope)
	for i := range views {
		if !listed(req, &views[i], now) {
			continue
		}
		st := kmsg.NewListTransactionsResponseTransactionState()
		st.TransactionalID, st.ProducerID, st.TransactionState = views[i].ID, views[i].Producer.ID, txnState(&views[i])
		resp.TransactionStates = append(resp.TransactionStates, st)
	}
	return resp, nil
}

func listed(req *kmsg.ListTransactionsRequest, v *txn.View, now time.Time) bool {
	switch {
	case len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, txnState(v)):
		return false
	case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, v.Producer.ID):
		return false
	case req.Version < 1 || req.DurationFilterMillis < 0:
		return true
	}
	return !v.Started.IsZero() && now.Sub(v.Started).Milliseconds() > req.DurationFilterMillis
}

// txnStates are Kafka's states of a transaction.
func txnStates() []string {
	return []string{
		"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
	}
}
