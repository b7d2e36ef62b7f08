package api

// SyncGroup (14), versions 0–5 (KIP-345, KIP-559). Waits until the leader has
// assigned. From version 5 on the request names protocol type and protocol, and
// gets 23 where the group has others. Assignments are kept byte for byte.

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/group"
)

// syncNamesProtocol is the first version of SyncGroup that must name the
// protocol.
const syncNamesProtocol = 5

func (h *Handlers) syncGroup(_ context.Context, call Call, req *kmsg.SyncGroupRequest) (*kmsg.SyncGroupResponse, error) {
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	refusal := h.refuseCoordinated(call, req.Group)
	if refusal == nil && req.Version >= syncNamesProtocol && (req.ProtocolType == nil || req.Protocol == nil) {
		refusal = kerr.InconsistentGroupProtocol
	}
	if refusal != nil {
		resp.ErrorCode = refusal.Code
		return resp, nil
	}
	assignments := make([]group.Assignment, len(req.GroupAssignment))
	for i, a := range req.GroupAssignment {
		assignments[i] = group.Assignment{MemberID: a.MemberID, Data: slices.Clone(a.MemberAssignment)}
	}
	req.GroupAssignment = nil // see joinGroup
	call.Conn.park()
	a := h.cfg.Groups.Sync(call.Conn.Poll, call.Scope, req.Group, group.SyncRequest{
		Generation: req.Generation, MemberID: req.MemberID, InstanceID: textOf(req.InstanceID),
		ProtocolType: req.ProtocolType, Protocol: req.Protocol, Assignments: assignments,
	})
	resp.ErrorCode = codeOf(h.stillHere(req.Group, a.Code))
	if a.Code == nil {
		resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &a.ProtocolType, &a.Protocol, a.Assignment
	}
	return resp, nil
}
