package api

// DescribeGroups (15), versions 0–6 (KIP-345, KIP-1043). A group that only has
// committed offsets is Empty. One that nobody knows is Dead without an error,
// from version 6 on 69 with a message. At most 1,000 groups, and as many bytes as
// one answer may have: the rest get 15. Authorized operations stay at "omitted".

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/group"
)

const (
	describeUnknown   = 6        // first version that calls an unknown group an error
	maxDescribeGroups = 1000     // of one request
	maxDescribeBytes  = 64 << 20 // of members, in one answer
)

func (h *Handlers) describeGroups(ctx context.Context, call Call, req *kmsg.DescribeGroupsRequest) (*kmsg.DescribeGroupsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(req.Groups))
	d := describing{room: &call.Conn.answer}
	var unknown []int
	for i, id := range req.Groups {
		g := &resp.Groups[i]
		*g = kmsg.NewDescribeGroupsResponseGroup()
		g.Group = id
		refusal := h.refuseCoordinated(call, id)
		if refusal == nil && i >= maxDescribeGroups {
			refusal = kerr.CoordinatorNotAvailable
		}
		if refusal != nil {
			g.ErrorCode = refusal.Code
			continue
		}
		live, found := h.cfg.Groups.Describe(call.Scope, id)
		if !found {
			unknown = append(unknown, i)
			continue
		}
		g.ErrorCode = codeOf(d.fill(g, live))
	}
	h.describeIndexed(ctx, call, resp, unknown)
	return resp, nil
}

// describing is one DescribeGroups on its way.
type describing struct {
	room  *lease // for the answer
	bytes int
}

// fill describes a live group; a code is why it does not.
func (d *describing) fill(g *kmsg.DescribeGroupsResponseGroup, live group.Description) *kerr.Error {
	size := 0
	for _, m := range live.Members {
		const fixed = 256
		size += fixed + len(m.Metadata) + len(m.Assignment)
	}
	if d.bytes += size; d.bytes > maxDescribeBytes && size < d.bytes || !d.room.cover(int64(d.bytes)) {
		return kerr.CoordinatorNotAvailable
	}
	g.State, g.ProtocolType, g.Protocol = live.State.String(), live.ProtocolType, live.Protocol
	g.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(live.Members))
	for i, m := range live.Members {
		g.Members[i] = kmsg.DescribeGroupsResponseGroupMember{
			MemberID: m.ID, InstanceID: textOrNil(m.InstanceID), ClientID: m.ClientID, ClientHost: m.Host,
			ProtocolMetadata: m.Metadata, MemberAssignment: m.Assignment,
		}
	}
	return nil
}

// describeIndexed describes the groups that are not live.
func (h *Handlers) describeIndexed(ctx context.Context, call Call, resp *kmsg.DescribeGroupsResponse, which []int) {
	if len(which) == 0 {
		return
	}
	ids := make([]string, len(which))
	for i, at := range which {
		ids[i] = resp.Groups[at].Group
	}
	known, refusal := h.indexedGroups(ctx, call.Scope, ids)
	for i, at := range which {
		g := &resp.Groups[at]
		switch {
		case refusal != nil:
			g.ErrorCode = refusal.Code
		case known[i].found:
			g.State, g.ProtocolType = group.Empty.String(), known[i].protocolType
		default:
			describeDead(g, resp.Version)
		}
	}
}

func describeDead(g *kmsg.DescribeGroupsResponseGroup, version int16) {
	g.State = group.Dead.String()
	if version >= describeUnknown {
		g.ErrorCode = kerr.GroupIDNotFound.Code
		g.ErrorMessage = textPtr("Group " + g.Group + " not found.")
	}
}
