package api

// ListGroups (16), versions 0–5 (KIP-518, KIP-848). The groups of the tenant,
// sorted by id, at most 10,000; 15 where there is no memory for the answer now. The letters of a states filter (4) and of a
// types filter (5) may be large or small: every group here is of type classic.

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/group"
)

const (
	maxListGroups = 10_000
	groupType     = "classic"
)

func (h *Handlers) listGroups(ctx context.Context, call Call, req *kmsg.ListGroupsRequest) (*kmsg.ListGroupsResponse, error) {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	refusal := refuseConsumer(call.Scope)
	var groups []group.Listing
	if refusal == nil {
		groups, refusal = h.allGroups(ctx, call.Scope)
	}
	if refusal != nil {
		resp.ErrorCode = refusal.Code
		return resp, nil
	}
	groups = wantedGroups(req, groups)
	if len(groups) > maxListGroups {
		h.sampled.Warn("a tenant has more groups than one answer lists", zap.Stringer("tenant", call.Scope.ID()))
		groups = groups[:maxListGroups]
	}
	if !call.Conn.answer.cover(listedBytes(groups)) {
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code // admin clients ask again
		return resp, nil
	}
	resp.Groups = make([]kmsg.ListGroupsResponseGroup, len(groups))
	for i, g := range groups {
		resp.Groups[i] = kmsg.ListGroupsResponseGroup{
			Group: g.ID, ProtocolType: g.ProtocolType, GroupState: g.State.String(), GroupType: groupType,
		}
	}
	return resp, nil
}

// listedGroupBytes is what a group takes in an answer and its encoding beside its
// id.
const listedGroupBytes = 256

func listedBytes(groups []group.Listing) int64 {
	n := int64(0)
	for _, g := range groups {
		n += listedGroupBytes + 2*int64(len(g.ID)+len(g.ProtocolType))
	}
	return n
}

// wantedGroups applies the filters; an empty one lets everything through. They
// may be long, and are looked through once for each state, not for each group.
func wantedGroups(req *kmsg.ListGroupsRequest, groups []group.Listing) []group.Listing {
	var wanted [group.Unknown + 1]bool
	if lets(req.TypesFilter, groupType) {
		for p := range group.Unknown + 1 {
			wanted[p] = lets(req.StatesFilter, p.String())
		}
	}
	return slices.DeleteFunc(groups, func(g group.Listing) bool { return !wanted[g.State] })
}

func lets(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
}
