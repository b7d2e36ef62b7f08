package api

// InitProducerId (22), versions 0–5 (KIP-98, KIP-360). Without a transactional
// id: a random 62-bit id at epoch 0, or the given id one epoch on; an id without
// an epoch, or the other way round, is 42. A null and an empty transactional id are the same (brod sends ""). Nothing is kept and no
// call is made. Gap: a transactional id is refused with 53 until transactions
// are there.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/txn"
)

// none is no producer id, and no epoch.
const none = -1

func (h *Handlers) initProducerID(_ context.Context, _ Call, req *kmsg.InitProducerIDRequest) (*kmsg.InitProducerIDResponse, error) {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	if req.TransactionalID != nil && *req.TransactionalID != "" {
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		resp.ProducerID, resp.ProducerEpoch = none, none
		return resp, nil
	}
	if (req.ProducerID == none) != (req.ProducerEpoch == none) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		resp.ProducerID, resp.ProducerEpoch = none, none
		return resp, nil
	}
	if req.ProducerID < 0 || req.ProducerEpoch < 0 {
		resp.ProducerID, resp.ProducerEpoch = txn.NewProducerID(), 0
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = txn.Bump(req.ProducerID, req.ProducerEpoch)
	return resp, nil
}
