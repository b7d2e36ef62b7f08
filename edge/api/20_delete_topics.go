package api

// DeleteTopics (20), versions 1–6 (KIP-4, KIP-516, KIP-599). Results in the order
// of the request; a topic that stands twice is refused each time (42), as Apache
// Kafka does, and stays. A topic goes with everything in it, whoever wrote it;
// committed offsets stay. At most 100 are deleted by one request, the rest gets 7
// and a throttle. From version 6 on a topic may be named by its id: the listing is
// read past the cache, so that an id of yesterday deletes nothing of today; one
// that no topic has is 100. Gap: the cell deletes by name, so a topic that somebody
// else deletes and makes anew between that look and the call is lost.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

// firstDeleteIDs is the version from which topics are named by name or id.
const firstDeleteIDs = 6

func (h *Handlers) deleteTopics(ctx context.Context, call Call, req *kmsg.DeleteTopicsRequest) (*kmsg.DeleteTopicsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	d := deleting{h: h, resp: resp}
	d.begin(req)
	d.identify(ctx, call)
	d.check()
	d.drop(ctx, call)
	return resp, nil
}

// deleting is one DeleteTopics on its way.
type deleting struct {
	h     *Handlers
	resp  *kmsg.DeleteTopicsResponse
	names []string // by entry; empty: refused already, or known by its id only
}

// begin makes the response in request order.
func (d *deleting) begin(req *kmsg.DeleteTopicsRequest) {
	if req.Version < firstDeleteIDs {
		d.resp.Topics, d.names = make([]kmsg.DeleteTopicsResponseTopic, len(req.TopicNames)), req.TopicNames
		for i := range req.TopicNames {
			d.resp.Topics[i].Default()
			d.resp.Topics[i].Topic = &req.TopicNames[i]
		}
		return
	}
	d.resp.Topics, d.names = make([]kmsg.DeleteTopicsResponseTopic, len(req.Topics)), make([]string, len(req.Topics))
	for i := range req.Topics {
		t, r := &req.Topics[i], &d.resp.Topics[i]
		r.Default()
		r.Topic, r.TopicID = t.Topic, t.TopicID
		d.names[i] = textOf(t.Topic)
		if byID := !catalog.TopicID(t.TopicID).IsZero(); byID == (t.Topic != nil) {
			d.answer(i, refusal(kerr.InvalidRequest, sayNameOrID))
		}
	}
}

// identify finds the names of what is named by id.
func (d *deleting) identify(ctx context.Context, call Call) {
	var list *catalog.Listing
	var err error
	for i := range d.resp.Topics {
		r := &d.resp.Topics[i]
		if r.ErrorCode != 0 || r.Topic != nil {
			continue
		}
		if list == nil && err == nil {
			list, err = d.h.cfg.Catalog.Fresh(ctx, call.Scope)
		}
		if err != nil {
			d.answer(i, createCodes.of(err))
			continue
		}
		t, ok := list.FindID(r.TopicID)
		if !ok {
			d.answer(i, refusal(kerr.UnknownTopicID, sayNoID))
			continue
		}
		d.names[i], r.Topic = t.Name, &t.Name
	}
}

// check refuses what needs no call.
func (d *deleting) check() {
	again := repeated(d.names, func(name *string) string { return *name })
	left := 0
	for i, name := range d.names {
		switch {
		case d.resp.Topics[i].ErrorCode != 0:
		case name == "":
			d.answer(i, refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
		case again[name]:
			d.answer(i, refusal(kerr.InvalidRequest, sayTwice))
		case !catalog.Legal(name) || catalog.Reserved(name):
			d.answer(i, refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
		case left == d.h.cfg.Admin.Creates:
			o := refusal(kerr.RequestTimedOut, sayLater)
			o.throttle = laterThrottle
			d.answer(i, o)
		default:
			left++
		}
	}
}

func (d *deleting) drop(ctx context.Context, call Call) {
	var names []string
	var at []int // of each name, its entry
	for i, name := range d.names {
		if d.resp.Topics[i].ErrorCode == 0 {
			names, at = append(names, name), append(at, i)
		}
	}
	for n, dropped := range d.h.cfg.Catalog.Drop(ctx, call.Scope, names) {
		switch {
		case dropped.Err != nil:
			d.answer(at[n], createCodes.of(dropped.Err))
		case !dropped.Existed:
			d.answer(at[n], refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
		}
	}
}

func (d *deleting) answer(i int, o outcome) {
	r := &d.resp.Topics[i]
	r.ErrorCode, r.ErrorMessage = o.code, o.message
	d.resp.ThrottleMillis = max(d.resp.ThrottleMillis, o.throttle)
}
