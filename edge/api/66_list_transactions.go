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
	states := txnStates()
	for _, state := range req.StateFilters {
		if !slices.Contains(states, state) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, state)
		}
	}
	for _, v := range wantedTxns(req, h.cfg.Txns.List(call.Scope), time.Now()) {
		st := kmsg.NewListTransactionsResponseTransactionState()
		st.TransactionalID, st.ProducerID, st.TransactionState = v.ID, v.Producer.ID, txnState(&v)
		resp.TransactionStates = append(resp.TransactionStates, st)
	}
	return resp, nil
}

// wantedTxns applies the filters; an empty one lets everything through. They may
// be long, and are looked through once, not for each transaction.
func wantedTxns(req *kmsg.ListTransactionsRequest, views []txn.View, now time.Time) []txn.View {
	states, producers := setOf(req.StateFilters), setOf(req.ProducerIDFilters)
	return slices.DeleteFunc(views, func(v txn.View) bool {
		switch {
		case len(states) > 0 && !states[txnState(&v)]:
			return true
		case len(producers) > 0 && !producers[v.Producer.ID]:
			return true
		case req.Version < 1 || req.DurationFilterMillis < 0:
			return false
		}
		return v.Started.IsZero() || now.Sub(v.Started).Milliseconds() <= req.DurationFilterMillis
	})
}

func setOf[T comparable](items []T) map[T]bool {
	set := make(map[T]bool, len(items))
	for _, item := range items {
		set[item] = true
	}
	return set
}

// txnStates are Kafka's states of a transaction.
func txnStates() []string {
	return []string{
		"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
	}
}
