package api

// ListConfigResources (74), versions 0–1 (KIP-714, KIP-1142). Version 0 asks for
// client metrics, of which there are none. Version 1 lists topics and the one
// broker; groups and client metrics have no configs, so none is listed. Loggers,
// which have none either, are left out; a type nobody knows is 35.

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The resource types that may be asked for.
const (
	resourceTopic   = 2
	resourceBroker  = 4
	resourceLogger  = 8
	resourceMetrics = 16
	resourceGroup   = 32
)

func (h *Handlers) listConfigResources(ctx context.Context, call Call, req *kmsg.ListConfigResourcesRequest) (*kmsg.ListConfigResourcesResponse, error) {
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	if req.Version == 0 {
		return resp, nil
	}
	known := []int8{resourceTopic, resourceBroker, resourceLogger, resourceMetrics, resourceGroup}
	wants := func(t int8) bool { return len(req.ResourceTypes) == 0 || slices.Contains(req.ResourceTypes, t) }
	for _, t := range req.ResourceTypes {
		if !slices.Contains(known, t) {
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			return resp, nil
		}
	}
	add := func(t int8, name string) {
		r := kmsg.NewListConfigResourcesResponseConfigResource()
		r.Type, r.Name = t, name
		resp.ConfigResources = append(resp.ConfigResources, r)
	}
	if wants(resourceBroker) {
		for _, m := range h.nodes(call).Members {
			add(resourceBroker, strconv.Itoa(int(m.ID)))
		}
	}
	if !wants(resourceTopic) {
		return resp, nil
	}
	list, err := h.cfg.Catalog.Get(ctx, call.Scope)
	if err != nil {
		o := configCodes.of(err)
		resp.ErrorCode, resp.ThrottleMillis, resp.ConfigResources = o.code, o.throttle, nil
		return resp, nil
	}
	for _, t := range list.Topics() {
		add(resourceTopic, t.Name)
	}
	return resp, nil
}
