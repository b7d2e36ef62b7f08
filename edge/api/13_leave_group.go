package api

// LeaveGroup (13), versions 0–5 (KIP-345). From version 3 on several members may
// leave at once, each with its own code; a static one may be named by its
// instance alone. The reasons of version 5 are not kept.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/group"
)

// leaveBatch is the first version of LeaveGroup that names several members.
const leaveBatch = 3

func (h *Handlers) leaveGroup(_ context.Context, call Call, req *kmsg.LeaveGroupRequest) (*kmsg.LeaveGroupResponse, error) {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	if refusal := h.refuseCoordinated(call, req.Group); refusal != nil {
		resp.ErrorCode = refusal.Code
		return resp, nil
	}
	if req.Version < leaveBatch {
		codes := h.cfg.Groups.Leave(call.Scope, req.Group, []group.Leaver{{MemberID: req.MemberID}})
		resp.ErrorCode = codeOf(codes[0])
		return resp, nil
	}
	leavers := make([]group.Leaver, len(req.Members))
	for i, m := range req.Members {
		leavers[i] = group.Leaver{MemberID: m.MemberID, InstanceID: textOf(m.InstanceID)}
	}
	resp.Members = leaveResults(req.Members, h.cfg.Groups.Leave(call.Scope, req.Group, leavers))
	return resp, nil
}

func leaveResults(asked []kmsg.LeaveGroupRequestMember, codes []*kerr.Error) []kmsg.LeaveGroupResponseMember {
	out := make([]kmsg.LeaveGroupResponseMember, len(asked))
	for i, m := range asked {
		out[i] = kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ErrorCode: codeOf(codes[i])}
	}
	return out
}
