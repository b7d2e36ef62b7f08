package api

// OffsetFetch (9), versions 1–10 (KIP-88, KIP-447, KIP-482, KIP-516, KIP-709,
// KIP-848). Partitions carry no error, which the Java consumer throws at the
// application: what was never committed, names that no topic has and offsets of an
// earlier topic of the same name are −1 with "". What concerns the group is its
// code; at version 1, which has no place for it, it is repeated on each partition.
// Null topics (from 2 on) are all of the group. With require_stable (7) a partition
// is 88 that has offsets staged in an open transaction (KIP-447), and the consumer
// asks again. From version 8 on a request names several groups, each of which has
// a code of its own; a member and its epoch (9) concern groups of a protocol that
// is not announced. From version 10 on topics are named by id: one that this
// tenant has no topic for is 100. Bytes after the request are let be: librdkafka
// writes null topics as four zero bytes, of which three are too many.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/txn"
)

func (h *Handlers) offsetFetch(ctx context.Context, call Call, req *kmsg.OffsetFetchRequest) (*kmsg.OffsetFetchResponse, error) {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	ctx, cancel := context.WithTimeout(ctx, offsetPatience)
	defer cancel()
	r := &offsetReading{h: h, ctx: ctx, call: call}
	if req.Version >= firstOffsetGroups {
		r.groups(req, resp)
		return resp, nil
	}
	a := &topicOffsets{resp: resp}
	if req.RequireStable {
		// Before the offsets are read: what commits in between must not be missed.
		pending := h.cfg.Txns.Pending(call.Scope, req.Group)
		defer a.unstable(pending)
	}
	if req.Topics == nil {
		resp.ErrorCode = r.all(req.Group, a)
		return resp, nil
	}
	wanted := make([]wantedOffsets, len(req.Topics))
	for i := range req.Topics {
		wanted[i] = wantedOffsets{topic: req.Topics[i].Topic, partitions: req.Topics[i].Partitions}
	}
	a.begin(wanted)
	code := r.named(req.Group, wanted, a)
	if resp.ErrorCode = code; code != 0 {
		a.refuse(code)
	}
	return resp, nil
}

// topicOffsets is the answer of versions 1–7: one group's.
type topicOffsets struct{ resp *kmsg.OffsetFetchResponse }

// begin makes the answer to named partitions, none of which has an offset yet.
func (a *topicOffsets) begin(wanted []wantedOffsets) {
	none := "" // shared by all partitions: encoded, never changed
	a.resp.Topics = make([]kmsg.OffsetFetchResponseTopic, len(wanted))
	for i := range wanted {
		rt := &a.resp.Topics[i]
		rt.Default()
		rt.Topic = wanted[i].topic
		rt.Partitions = make([]kmsg.OffsetFetchResponseTopicPartition, len(wanted[i].partitions))
		for j, n := range wanted[i].partitions {
			rp := &rt.Partitions[j]
			rp.Default()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = n, -1, noEpoch, &none
		}
	}
}

// set gives a named partition its offset.
func (a *topicOffsets) set(i, j int, o offsets.Stored) {
	rp := &a.resp.Topics[i].Partitions[j]
	rp.Offset, rp.Metadata = o.Offset, &o.Metadata
}

// add adds a partition that was not named; those of one topic come together.
func (a *topicOffsets) add(p offsets.Place, o offsets.Stored) {
	topics := a.resp.Topics
	if n := len(topics); n == 0 || topics[n-1].Topic != p.Topic {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = p.Topic
		topics = append(topics, t)
		a.resp.Topics = topics
	}
	t := &topics[len(topics)-1]
	rp := kmsg.NewOffsetFetchResponseTopicPartition()
	rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p.Partition, o.Offset, noEpoch, &o.Metadata
	t.Partitions = append(t.Partitions, rp)
}

func (a *topicOffsets) drop() { a.resp.Topics = []kmsg.OffsetFetchResponseTopic{} }

// unstable refuses the partitions that a transaction is about to move.
func (a *topicOffsets) unstable(pending map[txn.TopicPartition]bool) {
	if len(pending) == 0 {
		return
	}
	none := ""
	for i := range a.resp.Topics {
		t := &a.resp.Topics[i]
		for j := range t.Partitions {
			if p := &t.Partitions[j]; pending[txn.TopicPartition{Topic: t.Topic, Index: p.Partition}] {
				p.Offset, p.Metadata, p.ErrorCode = -1, &none, kerr.UnstableOffsetCommit.Code
			}
		}
	}
}

// refuse answers for a group of which nothing can be said. From version 2 on the
// code stands above, and partitions say nothing.
func (a *topicOffsets) refuse(code int16) {
	none := ""
	for i := range a.resp.Topics {
		for j := range a.resp.Topics[i].Partitions {
			rp := &a.resp.Topics[i].Partitions[j]
			rp.Offset, rp.Metadata = -1, &none
			if a.resp.Version < 2 {
				rp.ErrorCode = code
			}
		}
	}
}
