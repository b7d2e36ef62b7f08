package api

// DescribeTransactions (65), version 0 (KIP-664). From the transaction that is
// held here; one that is not, from its row, without taking it over. An id that
// nobody ever used is 105, no id is 42; more rows than 100 in one request are 15. A transaction that ran out of time, or that an earlier
// process held, waits for its producer to abort it: PrepareAbort.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/txn"
)

func (h *Handlers) describeTransactions(ctx context.Context, call Call, req *kmsg.DescribeTransactionsRequest) (*kmsg.DescribeTransactionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	resp.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, 0, len(req.TransactionalIDs))
	reads := 0
	for _, id := range req.TransactionalIDs {
		st := kmsg.NewDescribeTransactionsResponseTransactionState()
		st.TransactionalID = id
		h.describeTransaction(ctx, call, &st, &reads)
		resp.TransactionStates = append(resp.TransactionStates, st)
	}
	return resp, nil
}

// maxDescribedRows bounds the calls of one request.
const maxDescribedRows = 100

func (h *Handlers) describeTransaction(ctx context.Context, call Call, st *kmsg.DescribeTransactionsResponseTransactionState, reads *int) {
	switch {
	case st.TransactionalID == "":
		st.ErrorCode = kerr.InvalidRequest.Code
		return
	case txnKey(st.TransactionalID) == "":
		st.ErrorCode = kerr.TransactionalIDNotFound.Code
		return
	}
	v, found, err := h.cfg.Txns.Find(call.Scope, st.TransactionalID), true, error(nil)
	if !v.Producer.Named() {
		if *reads++; *reads > maxDescribedRows {
			st.ErrorCode = kerr.CoordinatorNotAvailable.Code
			return
		}
		v, found, err = h.cfg.Txns.FindRow(ctx, call.Scope, st.TransactionalID)
	}
	switch {
	case err != nil:
		st.ErrorCode = initCodes.of(err).code
		if st.ErrorCode == kerr.ConcurrentTransactions.Code {
			st.ErrorCode = kerr.CoordinatorNotAvailable.Code
		}
		return
	case !found:
		st.ErrorCode = kerr.TransactionalIDNotFound.Code
		return
	}
	st.State, st.ProducerID, st.ProducerEpoch = txnState(&v), v.Producer.ID, v.Producer.Epoch
	st.TimeoutMillis, st.StartTimestamp = int32(v.Timeout.Milliseconds()), -1
	if v.Started.IsZero() {
		return
	}
	st.StartTimestamp = v.Started.UnixMilli()
	byTopic := map[string]int{}
	for _, p := range v.Partitions {
		i, ok := byTopic[p.Topic]
		if !ok {
			i = len(st.Topics)
			byTopic[p.Topic] = i
			t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			t.Topic = p.Topic
			st.Topics = append(st.Topics, t)
		}
		st.Topics[i].Partitions = append(st.Topics[i].Partitions, p.Index)
	}
}

// txnState is Kafka's name for where a transaction stands.
func txnState(v *txn.View) string {
	switch v.Phase {
	case txn.Open:
		return "Ongoing"
	case txn.Committing:
		return "PrepareCommit"
	case txn.Poisoned, txn.Expired, txn.Lost:
		return "PrepareAbort"
	}
	switch {
	case v.Seq == 0:
		return "Empty"
	case v.Last == txn.RowCommitted:
		return "CompleteCommit"
	}
	return "CompleteAbort"
}
