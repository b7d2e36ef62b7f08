package api

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/tenancy"
)

// indexedGroup is what the cell remembers of a group: that it has committed.
type indexedGroup struct {
	found        bool
	protocolType string
}

// indexedGroups asks for groups that are not live, in the order of the ids. An
// index that cannot be read is a refusal: "there is no such group" would be a
// guess.
func (h *Handlers) indexedGroups(ctx context.Context, s tenancy.Scope, ids []string) ([]indexedGroup, *kerr.Error) {
	ctx, cancel := context.WithTimeout(ctx, offsetPatience)
	defer cancel()
	known, err := h.cfg.Offsets.Look(ctx, s, ids)
	if err != nil {
		return nil, groupCodes[kindOf(err)]
	}
	out := make([]indexedGroup, len(ids))
	for i, k := range known {
		out[i] = indexedGroup{found: k.Exists, protocolType: k.ProtocolType}
	}
	return out, nil
}

// allGroups is every group of a tenant, sorted by id: the live ones, and those
// that have committed, which are Empty and have the protocol type they had. An
// index that cannot be read leaves the live ones, unless the credential may not
// read it.
func (h *Handlers) allGroups(ctx context.Context, s tenancy.Scope) ([]group.Listing, *kerr.Error) {
	ctx, cancel := context.WithTimeout(ctx, offsetPatience)
	defer cancel()
	live := h.cfg.Groups.List(s)
	indexed, more, err := h.cfg.Offsets.Groups(ctx, s, maxListGroups)
	if err != nil && kindOf(err) == forbidden {
		return nil, kerr.GroupAuthorizationFailed
	}
	if err != nil {
		h.sampled.Warn("only groups with members are listed: the index cannot be read", zap.Stringer("tenant", s.ID()), zap.Error(err))
		return live, nil
	}
	if more {
		h.sampled.Warn("a tenant has more groups than one answer lists", zap.Stringer("tenant", s.ID()))
	}
	at := make(map[string]int, len(live))
	for i, g := range live {
		at[g.ID] = i
	}
	for _, g := range indexed {
		i, ok := at[g.ID]
		switch {
		case !ok:
			live = append(live, group.Listing{ID: g.ID, ProtocolType: g.ProtocolType, State: group.Empty})
		case live[i].ProtocolType == "":
			live[i].ProtocolType = g.ProtocolType
		}
	}
	for i := range live {
		if h.elsewhere(live[i].ID) != nil {
			live[i].State = group.Unknown
		}
	}
	slices.SortFunc(live, func(a, b group.Listing) int { return strings.Compare(a.ID, b.ID) })
	return live, nil
}
