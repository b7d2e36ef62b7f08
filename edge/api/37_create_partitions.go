package api

// CreatePartitions (37), versions 0–3 (KIP-195, KIP-599). Raises the declared
// width of a topic whose record is known; the partitions themselves come to be
// when they are written to. The comparison with the present width precedes
// everything else, in Apache Kafka's own sentences. The cell has no call for it,
// so the topic's settings are sent once more: that is how the cell is asked
// whether this credential may administer.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/topicconf"
)

func (h *Handlers) createPartitions(ctx context.Context, call Call, req *kmsg.CreatePartitionsRequest) (*kmsg.CreatePartitionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	again := repeated(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	resp.Topics = make([]kmsg.CreatePartitionsResponseTopic, len(req.Topics))
	w := widening{topicEdits{h: h, call: call, dry: req.ValidateOnly}}
	for i := range req.Topics {
		t, r := &req.Topics[i], &resp.Topics[i]
		r.Default()
		r.Topic = t.Topic
		o := refusal(kerr.InvalidRequest, sayTwice)
		if !again[t.Topic] {
			o = w.widen(ctx, t)
		}
		r.ErrorCode, r.ErrorMessage = o.code, o.message
		resp.ThrottleMillis = max(resp.ThrottleMillis, o.throttle)
	}
	if w.tried > 0 && !w.dry {
		h.cfg.Catalog.Invalidate(call.Scope)
	}
	return resp, nil
}

// widening is one request under way.
type widening struct{ topicEdits }

func (w *widening) widen(ctx context.Context, t *kmsg.CreatePartitionsRequestTopic) outcome {
	topic, o, ok := w.find(ctx, t.Topic, "")
	if !ok {
		return o
	}
	if o, ok := w.judge(t, topic.Width); !ok {
		return o
	}
	w.tried++
	var refused outcome
	o = w.alter(ctx, topic, func(st catalog.Stored) (next topicconf.Record, ok bool, err error) {
		if !st.Tracked() {
			refused = refusal(kerr.InvalidPartitions, untracked(topic))
			return next, false, nil
		}
		width := max(topic.Width, int32(min(st.Partitions, int64(w.h.cfg.Admin.MaxPartitions)))) // another gateway may have raised it
		if refused, ok = w.judge(t, width); !ok {
			return next, false, nil
		}
		next = st.Record
		next.Set, next.Partitions = next.Set.Next(next.Kafka), int64(t.Count)
		return next, true, nil
	})
	if refused.code != 0 {
		return refused
	}
	return o
}

// judge compares a request with a width.
func (w *widening) judge(t *kmsg.CreatePartitionsRequestTopic, width int32) (outcome, bool) {
	most := w.h.cfg.Admin.MaxPartitions
	switch {
	case t.Count == width:
		return refusal(kerr.InvalidPartitions, fmt.Sprintf("Topic already has %d partition(s).", width)), false
	case t.Count < width:
		return refusal(kerr.InvalidPartitions,
			fmt.Sprintf("The topic %s currently has %d partition(s); %d would not be an increase.", t.Topic, width, t.Count)), false
	case len(t.Assignment) > 0:
		return refusal(kerr.InvalidReplicaAssignment, sayAssignment), false
	case t.Count > most:
		return refusal(kerr.InvalidPartitions, fmt.Sprintf("%d partitions are more than the %d a topic may have here (QUEEN_KAFKA_MAX_PARTITIONS).", t.Count, most)), false
	case w.tried > w.h.cfg.Admin.Alters:
		o := refusal(kerr.RequestTimedOut, sayLater)
		o.throttle = laterThrottle
		return o, false
	case w.dry && !mayAdmin(w.call.Scope):
		return refusal(kerr.TopicAuthorizationFailed, sayNotAdmin), false
	}
	return outcome{}, true
}

func untracked(t catalog.Topic) string {
	return fmt.Sprintf("The topic %s has %d partition(s) by default (QUEEN_KAFKA_DEFAULT_PARTITIONS); "+
		"it was not created through this service, so a width of its own cannot be recorded.", t.Name, t.Width)
}
