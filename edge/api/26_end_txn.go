package api

// EndTxn (26), versions 0–4 (KIP-98, KIP-360, KIP-588, KIP-890); 5 is the second
// transaction protocol. A commit is one call that writes records, offsets and
// the row with its condition, or nothing. Where its outcome is not known it is
// 15 and everything stays for the retry, which finds out by the commit id that
// the row carries: 0 if it had landed, 90 if somebody else has the id. A commit
// too late is 48, never 0; one of a transaction that an earlier process held is
// 59, which clients answer by aborting. An abort writes a row and no more.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handlers) endTxn(ctx context.Context, call Call, req *kmsg.EndTxnRequest) (*kmsg.EndTxnResponse, error) {
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	if req.TransactionalID == "" || txnKey(req.TransactionalID) == "" {
		resp.ErrorCode = kerr.InvalidTxnState.Code
		return resp, nil
	}
	if h.clustered() { // nothing can be open: there is nothing to commit, and nothing to abort
		if req.Commit {
			resp.ErrorCode = kerr.InvalidTxnState.Code
		}
		return resp, nil
	}
	r := h.cfg.Txns.End(ctx, call.caller(req.TransactionalID, req.ProducerID, req.ProducerEpoch), req.Commit)
	o := endOutcomes.of(r, txnCodes)
	resp.ErrorCode, resp.ThrottleMillis = fencedFrom(firstFencedTxn, req.Version, o.code), o.throttle
	return resp, nil
}
