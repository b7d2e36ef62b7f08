package api

// DeleteTopics (20), versions 1–5 (KIP-4, KIP-599). Results in the order of the
// request; a name that stands twice is refused each time (42), as Apache Kafka
// does, and its topic stays. A topic goes with everything in it, whoever wrote
// it; committed offsets stay. At most 100 are deleted by one request, the rest
// gets 7 and a throttle. Gap: deletion by topic id (version 6).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

func (h *Handlers) deleteTopics(ctx context.Context, call Call, req *kmsg.DeleteTopicsRequest) (*kmsg.DeleteTopicsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	again := repeated(req.TopicNames, func(name *string) string { return *name })
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(req.TopicNames))
	answer := func(i int, o outcome) {
		r := &resp.Topics[i]
		r.ErrorCode, r.ErrorMessage = o.code, o.message
		resp.ThrottleMillis = max(resp.ThrottleMillis, o.throttle)
	}
	var names []string
	var at []int // of each name, its entry
	for i, name := range req.TopicNames {
		resp.Topics[i].Default()
		resp.Topics[i].Topic = &req.TopicNames[i]
		switch {
		case again[name]:
			answer(i, refusal(kerr.InvalidRequest, sayTwice))
		case !catalog.Legal(name) || catalog.Reserved(name):
			answer(i, refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
		case len(names) == h.cfg.Admin.Creates:
			o := refusal(kerr.RequestTimedOut, sayLater)
			o.throttle = laterThrottle
			answer(i, o)
		default:
			names, at = append(names, name), append(at, i)
		}
	}
	for n, dropped := range h.cfg.Catalog.Drop(ctx, call.Scope, names) {
		switch {
		case dropped.Err != nil:
			answer(at[n], createCodes.of(dropped.Err))
		case !dropped.Existed:
			answer(at[n], refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
		}
	}
	return resp, nil
}
