package api

// DeleteGroups (42), versions 0–2 (KIP-229, KIP-482). A group with members is 68
// and untouched; one that nobody knows is 69. Otherwise its offsets go, then its
// row of the index, so that what failed halfway can be repeated. At most 100
// groups in one request: the rest get 15.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const maxDeleteGroups = 100 // of one request

func (h *Handlers) deleteGroups(ctx context.Context, call Call, req *kmsg.DeleteGroupsRequest) (*kmsg.DeleteGroupsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	ctx, cancel := context.WithTimeout(ctx, offsetPatience)
	defer cancel()
	for i, id := range req.Groups {
		g := &resp.Groups[i]
		g.Default()
		g.Group = id
		if i >= maxDeleteGroups {
			g.ErrorCode = kerr.CoordinatorNotAvailable.Code
			continue
		}
		g.ErrorCode = h.deleteGroup(ctx, call, id)
	}
	return resp, nil
}

// deleteGroup deletes one group and returns its code. The live group goes first:
// a group that somebody is in keeps its offsets.
func (h *Handlers) deleteGroup(ctx context.Context, call Call, id string) int16 {
	if e := h.refuseCoordinated(call, id); e != nil {
		return e.Code
	}
	live, refusal := false, (*kerr.Error)(nil)
	stored, err := h.cfg.Offsets.DeleteGroup(ctx, call.Scope, id, func() error {
		if live, refusal = h.cfg.Groups.Delete(call.Scope, id); refusal != nil {
			return refusal
		}
		return nil
	})
	switch {
	case refusal != nil:
		return refusal.Code
	case err != nil:
		return writeCode(err)
	case !live && !stored:
		return kerr.GroupIDNotFound.Code
	}
	return 0
}
