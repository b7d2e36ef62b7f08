package api

// OffsetCommit (8), versions 2–10 (KIP-211, KIP-320, KIP-345, KIP-482, KIP-848). Offsets
// never expire: a retention time (2–4) is accepted and not looked at, and so are
// leader epochs. There is no error above the partitions, so what concerns the
// group is repeated on each. The topic need not exist. What is stored carries the
// id of the topic's queue where it is known, so that it does not outlive the
// topic. Commits of one group are written one after another, those that wait
// under one credential in one call. A member that this gateway does not know is
// 22 at every version: 69 (from 9 on in Apache Kafka) ends an application that a
// rejoin would have served. From version 10 on topics are named by id: one that this
// tenant has no topic for is 100, and 15 while the listing cannot be read.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/offsets"
)

func (h *Handlers) offsetCommit(ctx context.Context, call Call, req *kmsg.OffsetCommitRequest) (*kmsg.OffsetCommitResponse, error) {
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	c := newCommitting(req, resp)
	if e := h.refuseCoordinated(call, req.Group); e != nil {
		c.refuse(e.Code)
		return resp, nil
	}
	queues, unread := h.queueIDs(ctx, call)
	// Last, with nothing to wait for between it and the place in the group's line:
	// a commit that is held up must not land on those of the next generation.
	e := h.cfg.Groups.CheckCommit(call.Scope, req.Group, req.Generation, req.MemberID, req.InstanceID)
	if e = h.stillHere(req.Group, e); e != nil {
		c.refuse(e.Code)
		return resp, nil
	}
	if unread != nil && c.byID() {
		c.refuse(groupCodes.of(unread).code)
		return resp, nil
	}
	c.check(queues)
	written, err := h.cfg.Offsets.Commit(ctx, call.Scope, req.Group, req.Generation, h.protocolType(call, req), c.entries)
	if err != nil {
		c.fail(written, writeCode(err))
	}
	return resp, nil
}

// protocolType says, when the group is listed for the first time, what protocol
// its members have; nil for a consumer that takes no part in its group.
func (h *Handlers) protocolType(call Call, req *kmsg.OffsetCommitRequest) func() string {
	if req.Generation < 0 && req.MemberID == "" {
		return nil
	}
	return func() string {
		live, _ := h.cfg.Groups.Describe(call.Scope, req.Group)
		return live.ProtocolType
	}
}

// queueIDs is what commits know of queues; nil where it cannot be read. They then
// carry no id, and are read as they are: an old listing could name a queue that
// is gone.
func (h *Handlers) queueIDs(ctx context.Context, call Call) (*catalog.Listing, error) {
	list, err := h.cfg.Catalog.Recent(ctx, call.Scope)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// committing is one OffsetCommit on its way.
type committing struct {
	req     *kmsg.OffsetCommitRequest
	resp    *kmsg.OffsetCommitResponse
	parts   int
	entries []offsets.Entry
	answers []*int16 // error codes, by entry
}

// newCommitting makes the response in request order.
func newCommitting(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse) *committing {
	c := &committing{req: req, resp: resp}
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := &req.Topics[i], &resp.Topics[i]
		rt.Default()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			rt.Partitions[j].Default()
			rt.Partitions[j].Partition = t.Partitions[j].Partition
		}
		c.parts += len(t.Partitions)
	}
	return c
}

// refuse gives every partition the same code.
func (c *committing) refuse(code int16) {
	for i := range c.resp.Topics {
		for j := range c.resp.Topics[i].Partitions {
			c.resp.Topics[i].Partitions[j].ErrorCode = code
		}
	}
}

// byID reports whether topics are named by id.
func (c *committing) byID() bool { return c.req.Version >= firstOffsetIDs }

// topic is what is known of a topic, or the code of its partitions.
func (c *committing) topic(list *catalog.Listing, t *kmsg.OffsetCommitRequestTopic) (catalog.Topic, int16) {
	if c.byID() {
		topic, ok := list.FindID(t.TopicID)
		if !ok {
			return topic, kerr.UnknownTopicID.Code
		}
		return topic, 0
	}
	topic := catalog.Topic{}
	if list != nil {
		topic, _ = list.Find(t.Topic)
	}
	topic.Name = t.Topic
	return topic, 0
}

// check refuses what cannot be stored and lists the rest as entries.
func (c *committing) check(list *catalog.Listing) {
	c.entries, c.answers = make([]offsets.Entry, 0, c.parts), make([]*int16, 0, c.parts)
	for i := range c.req.Topics {
		t := &c.req.Topics[i]
		topic, unknown := c.topic(list, t)
		for j := range t.Partitions {
			p, code := &t.Partitions[j], &c.resp.Topics[i].Partitions[j].ErrorCode
			if *code = unknown; unknown == 0 {
				*code = c.refusal(topic.Name, p)
			}
			if *code != 0 {
				continue
			}
			e := offsets.Entry{
				Place:  offsets.Place{Topic: topic.Name, Partition: p.Partition},
				Offset: p.Offset, QueueID: topic.QueueID,
			}
			if p.Metadata != nil {
				e.Metadata = *p.Metadata
			}
			c.entries, c.answers = append(c.entries, e), append(c.answers, code)
		}
	}
}

func (c *committing) refusal(topic string, p *kmsg.OffsetCommitRequestTopicPartition) int16 {
	switch {
	case !catalog.Legal(topic), catalog.Reserved(topic), p.Partition < 0:
		return kerr.UnknownTopicOrPartition.Code // 17 would end the Java consumer's poll
	case p.Offset < -1:
		return kerr.InvalidCommitOffsetSize.Code
	case p.Metadata != nil && len(*p.Metadata) > offsets.MaxMetadata:
		return kerr.OffsetMetadataTooLarge.Code
	case !offsets.Fits(c.req.Group, topic, p.Partition):
		return kerr.InvalidCommitOffsetSize.Code
	}
	return 0
}

// fail answers the entries that were not written.
func (c *committing) fail(written int, code int16) {
	for _, answer := range c.answers[written:] {
		*answer = code
	}
}
