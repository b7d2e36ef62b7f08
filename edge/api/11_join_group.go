package api

// JoinGroup (11), versions 0–9 (KIP-62, KIP-345, KIP-394, KIP-814). Waits until
// the group's window closes. A newcomer is told its id first (79) from version 4
// on, unless it is a static member. Metadata is kept byte for byte. A rebalance
// timeout above 30 minutes counts as 30 minutes. The reason of version 8 is not
// kept.

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/group"
)

// First versions of JoinGroup that have a thing.
const (
	joinTellsID = 4
	joinSkips   = 9
)

func (h *Handlers) joinGroup(_ context.Context, call Call, req *kmsg.JoinGroupRequest) (*kmsg.JoinGroupResponse, error) {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	if refusal := h.refuseCoordinated(call, req.Group); refusal != nil {
		resp.ErrorCode, resp.Generation, resp.MemberID = refusal.Code, -1, req.MemberID
		return resp, nil
	}
	protocols := make([]group.Protocol, len(req.Protocols))
	for i, p := range req.Protocols {
		protocols[i] = group.Protocol{Name: p.Name, Metadata: slices.Clone(p.Metadata)}
	}
	h.warnOfJoin(call, req)
	req.Protocols = nil // it may wait for minutes: what it keeps is counted by its group
	call.Conn.park()
	a := h.cfg.Groups.Join(call.Conn.Poll, call.Scope, req.Group, group.JoinRequest{
		MemberID: req.MemberID, InstanceID: textOf(req.InstanceID),
		ClientID: clientName(call), Host: call.Conn.Host,
		Session: millis(req.SessionTimeoutMillis), Rebalance: millis(req.RebalanceTimeoutMillis),
		ProtocolType: req.ProtocolType, Protocols: protocols,
		TellsID: req.Version >= joinTellsID, Skips: req.Version >= joinSkips,
	})
	resp.ErrorCode, resp.Generation = codeOf(a.Code), a.Generation
	resp.LeaderID, resp.MemberID = a.Leader, a.MemberID
	if a.Code != nil {
		return resp, nil
	}
	resp.ProtocolType, resp.Protocol, resp.SkipAssignment = &a.ProtocolType, &a.Protocol, a.SkipAssignment
	resp.Members = make([]kmsg.JoinGroupResponseMember, len(a.Members))
	for i, m := range a.Members {
		resp.Members[i] = kmsg.JoinGroupResponseMember{MemberID: m.ID, InstanceID: textOrNil(m.InstanceID), ProtocolMetadata: m.Metadata}
	}
	return resp, nil
}

// warnOfJoin tells of a member that asks for more than it gets.
func (h *Handlers) warnOfJoin(call Call, req *kmsg.JoinGroupRequest) {
	if asked := millis(req.RebalanceTimeoutMillis); asked > group.MaxRebalance {
		h.sampled.Warn("a member asks for a rebalance timeout that is too long: it counts as the longest there is",
			zap.Stringer("tenant", call.Scope.ID()), zap.Duration("asked", asked), zap.Duration("longest", group.MaxRebalance))
	}
}

func millis(n int32) time.Duration { return time.Duration(n) * time.Millisecond }
