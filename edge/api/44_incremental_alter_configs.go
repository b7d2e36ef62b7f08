package api

// IncrementalAlterConfigs (44), versions 0–1 (KIP-339). The operations on a
// resource apply in the order of the request, each to what those before it have
// made; one that is refused refuses all. Appending and subtracting are for lists
// (cleanup.policy); deleting unsets, whatever its value. A resource that stands
// twice is refused each time (42).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/topicconf"
)

func (h *Handlers) incrementalAlterConfigs(ctx context.Context, call Call, req *kmsg.IncrementalAlterConfigsRequest) (*kmsg.IncrementalAlterConfigsResponse, error) {
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	resp.Resources = make([]kmsg.IncrementalAlterConfigsResponseResource, len(req.Resources))
	again := repeated(req.Resources, func(r *kmsg.IncrementalAlterConfigsRequestResource) resource {
		return resource{r.ResourceType, r.ResourceName}
	})
	a := altering{topicEdits{h: h, call: call, dry: req.ValidateOnly}}
	for i := range req.Resources {
		from, to := &req.Resources[i], &resp.Resources[i]
		to.Default()
		to.ResourceType, to.ResourceName = from.ResourceType, from.ResourceName
		it := alteration{resource: resource{from.ResourceType, from.ResourceName}}
		it.changes = make([]topicconf.Change, len(from.Configs))
		for n, c := range from.Configs {
			it.changes[n] = topicconf.Change{Name: c.Name, Op: topicconf.Op(c.Op), Value: c.Value}
		}
		o := refusal(kerr.InvalidRequest, sayResourceTwo)
		if !again[it.resource] {
			o = a.alter(ctx, it)
		}
		to.ErrorCode, to.ErrorMessage = o.code, o.message
		resp.ThrottleMillis = max(resp.ThrottleMillis, o.throttle)
	}
	return resp, nil
}
