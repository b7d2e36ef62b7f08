package api

// OffsetDelete (47), version 0 (KIP-496). What concerns the group is above the
// topics, which are then left out. A topic that a member is subscribed to is 86.
// What was never committed is deleted already. At most 4,096 partitions. The
// group stays listed when its last offset goes.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/offsets"
)

const maxOffsetDelete = 4096 // partitions of one request

func (h *Handlers) offsetDelete(ctx context.Context, call Call, req *kmsg.OffsetDeleteRequest) (*kmsg.OffsetDeleteResponse, error) {
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	resp.Topics = []kmsg.OffsetDeleteResponseTopic{}
	ctx, cancel := context.WithTimeout(ctx, offsetPatience)
	defer cancel()
	if resp.ErrorCode = h.refuseOffsetDelete(ctx, call, req); resp.ErrorCode != 0 {
		return resp, nil
	}
	topics, places := h.deletable(call, req)
	if err := h.cfg.Offsets.Delete(ctx, call.Scope, req.Group, places); err != nil {
		resp.ErrorCode = writeCode(err)
		return resp, nil
	}
	resp.Topics = topics
	return resp, nil
}

// refuseOffsetDelete is the code of the whole request.
func (h *Handlers) refuseOffsetDelete(ctx context.Context, call Call, req *kmsg.OffsetDeleteRequest) int16 {
	if e := h.refuseCoordinated(call, req.Group); e != nil {
		return e.Code
	}
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	if n > maxOffsetDelete {
		return kerr.InvalidRequest.Code
	}
	if _, live := h.cfg.Groups.Describe(call.Scope, req.Group); live {
		return 0
	}
	known, err := h.cfg.Offsets.Look(ctx, call.Scope, []string{req.Group})
	switch {
	case err != nil:
		return groupCodes.of(err).code
	case !known[0].Exists:
		return kerr.GroupIDNotFound.Code
	}
	return 0
}

// deletable makes the answer and lists what is to go.
func (h *Handlers) deletable(call Call, req *kmsg.OffsetDeleteRequest) ([]kmsg.OffsetDeleteResponseTopic, []offsets.Place) {
	topics := make([]kmsg.OffsetDeleteResponseTopic, len(req.Topics))
	var places []offsets.Place
	for i := range req.Topics {
		t, rt := &req.Topics[i], &topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		subscribed, unread := h.cfg.Groups.Subscribed(call.Scope, req.Group, t.Topic)
		if unread {
			h.sampled.Warn("offsets are kept: what a member of their group is subscribed to cannot be read", zap.Stringer("tenant", call.Scope.ID()))
		}
		for j := range t.Partitions {
			p := t.Partitions[j].Partition
			rt.Partitions[j].Partition = p
			switch {
			case !visibleTopic(t.Topic), p < 0:
				rt.Partitions[j].ErrorCode = kerr.UnknownTopicOrPartition.Code
			case subscribed:
				rt.Partitions[j].ErrorCode = kerr.GroupSubscribedToTopic.Code
			case offsets.Fits(req.Group, t.Topic, p):
				places = append(places, offsets.Place{Topic: t.Topic, Partition: p})
			}
		}
	}
	return topics, places
}
