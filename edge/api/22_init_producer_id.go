package api

// InitProducerId (22), versions 0–5 (KIP-98, KIP-360). Without a transactional
// id: a random 62-bit id at epoch 0, or the given id one epoch on; an id without
// an epoch, or the other way round, is 42. A null and an empty transactional id
// are the same (brod sends ""). Nothing is kept and no call is made.
//
// With one: the row of the transactional id is raised by one epoch, which fences
// every producer before. One that names itself must be the row's producer, or
// the one that was raised to it (its answer was lost): else it is 90, so that a
// fenced producer cannot bump its way back. A timeout above
// QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS is 50, never shortened; an id too long for the
// cell is 42; a token that may not both produce and consume is 53, and so is every
// transactional id at a gateway that is one of several nodes.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/txn"
)

// none is no producer id, and no epoch.
const none = -1

// firstFencedInit is the version from which a client knows 90 (KIP-588).
const firstFencedInit = 4

func (h *Handlers) initProducerID(ctx context.Context, call Call, req *kmsg.InitProducerIDRequest) (*kmsg.InitProducerIDResponse, error) {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = none, none
	transactional := req.TransactionalID != nil && *req.TransactionalID != ""
	switch {
	case (req.ProducerID == none) != (req.ProducerEpoch == none):
		resp.ErrorCode = kerr.InvalidRequest.Code
	case transactional:
		h.initTransactional(ctx, call, req, resp)
	case req.ProducerID < 0 || req.ProducerEpoch < 0:
		resp.ProducerID, resp.ProducerEpoch = txn.NewProducerID(), 0
	default:
		resp.ProducerID, resp.ProducerEpoch = txn.Bump(req.ProducerID, req.ProducerEpoch)
	}
	return resp, nil
}

func (h *Handlers) initTransactional(ctx context.Context, call Call, req *kmsg.InitProducerIDRequest, resp *kmsg.InitProducerIDResponse) {
	if h.clustered() { // decided by the configuration, whoever is there
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return
	}
	timeout := time.Duration(req.TransactionTimeoutMillis) * time.Millisecond
	if txnKey(*req.TransactionalID) == "" {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return
	}
	if timeout <= 0 || timeout > h.cfg.TxnMaxTimeout {
		resp.ErrorCode = kerr.InvalidTransactionTimeout.Code
		return
	}
	if r := call.Scope.Rights(); r.Known && !(r.Produce && r.Consume) { // its commit could never be written
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return
	}
	r := h.cfg.Txns.Init(ctx, call.caller(*req.TransactionalID, req.ProducerID, req.ProducerEpoch), timeout)
	o := initOutcomes.of(r, initCodes)
	resp.ErrorCode = fencedFrom(firstFencedInit, req.Version, o.code)
	resp.ThrottleMillis = o.throttle
	if o.code == 0 {
		resp.ProducerID, resp.ProducerEpoch = r.Producer.ID, r.Producer.Epoch
	}
}
