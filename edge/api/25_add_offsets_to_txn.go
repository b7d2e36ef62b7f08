package api

// AddOffsetsToTxn (25), versions 0–4 (KIP-98, KIP-588, KIP-890). Opens the
// transaction, as AddPartitionsToTxn does: a loop that only consumes is legal. A
// transaction may carry the offsets of several groups, as long as one call takes
// them; then it is 48. An illegal group id is 24.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/txn"
)

func (h *Handlers) addOffsetsToTxn(ctx context.Context, call Call, req *kmsg.AddOffsetsToTxnRequest) (*kmsg.AddOffsetsToTxnResponse, error) {
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	if err := refuseGroup(call.Scope, req.Group); err != nil {
		resp.ErrorCode = err.Code
		return resp, nil
	}
	switch {
	case h.clustered(), req.TransactionalID == "", txnKey(req.TransactionalID) == "", !offsets.GroupFits(req.Group):
		resp.ErrorCode = kerr.InvalidTxnState.Code
		return resp, nil
	}
	r := h.cfg.Txns.AddGroup(ctx, call.caller(req.TransactionalID, req.ProducerID, req.ProducerEpoch),
		txnGroup(req.Group, false, time.Now()), h.cfg.Cell.TxnOps(call.Scope))
	o := addOutcomes.of(r, txnCodes)
	resp.ErrorCode, resp.ThrottleMillis = fencedFrom(firstFencedTxn, req.Version, o.code), o.throttle
	return resp, nil
}

// txnGroup is a group of a transaction with its row of the index. One whose
// members are not known is listed only where it is not yet.
func txnGroup(id string, member bool, now time.Time) txn.Group {
	kind := ""
	if member {
		kind = consumerProtocol
	}
	row := offsets.IndexPut(id, kind, now)
	return txn.Group{ID: id, Index: txn.Put{Key: row.Key, Value: row.Value, IfAbsent: !member}}
}

// consumerProtocol is the protocol type of consumers (KIP-62).
const consumerProtocol = "consumer"
