package api

// FindCoordinator (10), versions 0–5 (batched keys since 4, KIP-699). The one
// broker coordinates everything: groups (key type 0) and transactional ids (1). A
// credential that is known to lack consume has no groups (B4).

import (
	"context"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/cluster"
)

const (
	keyTypeGroup       = 0
	keyTypeTransaction = 1
	maxGroupID         = 255 // characters
)

func (h *Handlers) findCoordinator(_ context.Context, call Call, req *kmsg.FindCoordinatorRequest) (*kmsg.FindCoordinatorResponse, error) {
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	nodes := h.nodes(call)
	if req.Version < 4 {
		c := h.coordinator(call, nodes, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage = c.ErrorCode, c.ErrorMessage
		resp.NodeID, resp.Host, resp.Port = c.NodeID, c.Host, c.Port
		return resp, nil
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, h.coordinator(call, nodes, req.CoordinatorType, key))
	}
	return resp, nil
}

func (h *Handlers) coordinator(call Call, nodes *cluster.View, keyType int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = key, -1, -1
	var refusal *kerr.Error
	switch {
	case keyType == keyTypeGroup:
		refusal = refuseGroup(call.Scope, key)
	case keyType != keyTypeTransaction:
		refusal = kerr.InvalidRequest
	case h.clustered():
		refusal = kerr.TransactionalIDAuthorizationFailed
	}
	if refusal == nil && !nodes.Coordinates(h.cfg.Clock()) {
		refusal = kerr.CoordinatorNotAvailable
	}
	if refusal != nil {
		c.ErrorCode = refusal.Code
		c.ErrorMessage = textPtr(coordinatorRefusal(refusal))
		return c
	}
	owner := nodes.Owner(key)
	c.NodeID, c.Host, c.Port = owner.ID, owner.Host, owner.Port
	return c
}

func coordinatorRefusal(e *kerr.Error) string {
	switch e {
	case kerr.InvalidGroupID:
		return "The group id must have 1 to 255 characters."
	case kerr.GroupAuthorizationFailed:
		return "The token has no scope `consume`, which groups need."
	case kerr.CoordinatorNotAvailable:
		return "This node coordinates no groups now; ask again."
	case kerr.TransactionalIDAuthorizationFailed:
		return sayNoTransactions
	}
	return "Unknown coordinator key type."
}

func legalGroupID(id string) bool {
	return id != "" && utf8.RuneCountInString(id) <= maxGroupID
}
