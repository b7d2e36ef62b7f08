package api

// Heartbeat (12), versions 0–4 (KIP-345). 27 while the group collects its
// members, 0 while the leader assigns.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handlers) heartbeat(_ context.Context, call Call, req *kmsg.HeartbeatRequest) (*kmsg.HeartbeatResponse, error) {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	refusal := h.refuseCoordinated(call, req.Group)
	if refusal == nil {
		refusal = h.stillHere(req.Group, h.cfg.Groups.Heartbeat(call.Scope, req.Group, req.Generation, req.MemberID, textOf(req.InstanceID)))
	}
	resp.ErrorCode = codeOf(refusal)
	return resp, nil
}
