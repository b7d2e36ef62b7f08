package api

// AlterConfigs (33), versions 0–2 (KIP-133). Full replacement: every key of a
// topic that is not named goes back to its default. Only topics have configs
// that can be changed. A resource that stands twice is refused each time (42),
// and so is one that names a key twice, as Apache Kafka does.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/topicconf"
)

func (h *Handlers) alterConfigs(ctx context.Context, call Call, req *kmsg.AlterConfigsRequest) (*kmsg.AlterConfigsResponse, error) {
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	resp.Resources = make([]kmsg.AlterConfigsResponseResource, len(req.Resources))
	again := repeated(req.Resources, func(r *kmsg.AlterConfigsRequestResource) resource { return resource{r.ResourceType, r.ResourceName} })
	a := altering{topicEdits{h: h, call: call, dry: req.ValidateOnly}}
	for i := range req.Resources {
		from, to := &req.Resources[i], &resp.Resources[i]
		to.Default()
		to.ResourceType, to.ResourceName = from.ResourceType, from.ResourceName
		it := alteration{resource: resource{from.ResourceType, from.ResourceName}, whole: true}
		it.changes = make([]topicconf.Change, len(from.Configs))
		for n, c := range from.Configs {
			it.changes[n] = topicconf.Change{Name: c.Name, Value: c.Value}
		}
		o := refusal(kerr.InvalidRequest, sayResourceTwo)
		switch {
		case again[it.resource]:
		case len(repeated(from.Configs, func(c *kmsg.AlterConfigsRequestResourceConfig) string { return c.Name })) > 0:
			o = refusal(kerr.InvalidRequest, "Error due to duplicate config keys")
		default:
			o = a.alter(ctx, it)
		}
		to.ErrorCode, to.ErrorMessage = o.code, o.message
		resp.ThrottleMillis = max(resp.ThrottleMillis, o.throttle)
	}
	return resp, nil
}
