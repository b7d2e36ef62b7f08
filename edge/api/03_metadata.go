package api

// Metadata (3), versions 0–9 (KIP-4, KIP-482). One broker, id 0, leads every
// partition. Null topics mean all; an empty list means all at version 0 and none
// from version 1 on. Missing topics are created in the same answer where the
// request allows it (below version 4 it cannot refuse). Errors are per topic: 3,
// 5, 17, and 29 where creating was refused for good (DEVIATIONS.md). Bytes after
// the request are let be: librdkafka writes a null list of version 9 on as four
// zero bytes, of which three are too many. Gap: topic ids (version 10 on).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

func (h *Handlers) metadata(ctx context.Context, call Call, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = nodeID, h.cfg.Host, h.cfg.Port
	resp.Brokers = append(resp.Brokers, b)
	resp.ClusterID, resp.ControllerID = textPtr(clusterID), nodeID

	if req.Topics == nil || (req.Version == 0 && len(req.Topics) == 0) {
		return h.allTopics(ctx, call, resp)
	}
	names, nulls := h.namesOf(req)
	for range nulls {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode = kerr.InvalidTopicException.Code
		if req.Version < 10 { // the field is not nullable before topic ids
			t.Topic = textPtr("")
		}
		resp.Topics = append(resp.Topics, t)
	}
	create := req.Version < 4 || req.AllowAutoTopicCreation
	budget, need := h.cfg.MetadataPartitions, int64(0)
	resolved := h.cfg.Catalog.Resolve(ctx, call.Scope, names, create)
	for i := range resolved {
		r := &resolved[i]
		if budget -= int(r.Topic.Width); budget < 0 && i > 0 && r.State == catalog.Found {
			r.State = catalog.Later // the client asks again for fewer
		}
		need += topicMemory(r)
	}
	if err := call.Conn.answerRoom(ctx, need, h.cfg.RoomWait); err != nil {
		return nil, err
	}
	for i := range resolved {
		resp.Topics = append(resp.Topics, metadataTopic(&resolved[i]))
		resp.ThrottleMillis = max(resp.ThrottleMillis, throttleOf(resolved[i].Err))
	}
	return resp, nil
}

// allTopics lists every topic until the partition budget is spent; the first
// topic always fits. An unreadable listing is an empty one.
func (h *Handlers) allTopics(ctx context.Context, call Call, resp *kmsg.MetadataResponse) (*kmsg.MetadataResponse, error) {
	list, err := h.cfg.Catalog.Get(ctx, call.Scope)
	if err != nil {
		resp.ThrottleMillis = throttleOf(err)
		return resp, nil
	}
	topics := list.Topics()
	budget, need := h.cfg.MetadataPartitions, int64(0)
	for i, t := range topics {
		if i > 0 && int(t.Width) > budget {
			h.cfg.Log.Warn("topics are left out of a listing: too many partitions",
				zap.Stringer("tenant", call.Scope.ID()), zap.Int("topics", len(topics)), zap.Int("listed", i))
			topics = topics[:i]
			break
		}
		budget -= int(t.Width)
		need += topicMemory(&catalog.Resolved{Name: t.Name, Topic: t})
	}
	if err := call.Conn.answerRoom(ctx, need, h.cfg.RoomWait); err != nil {
		return nil, err
	}
	for _, t := range topics {
		resp.Topics = append(resp.Topics, metadataTopic(&catalog.Resolved{Name: t.Name, Topic: t}))
	}
	return resp, nil
}

// What a topic and a partition take until the answer is written: the structs,
// and the encoded answer while it grows.
const (
	metadataTopicBytes     = 700
	metadataPartitionBytes = 280
	metadataNameGrowth     = 6 // bytes for each of a name
)

func topicMemory(r *catalog.Resolved) int64 {
	n := int64(metadataTopicBytes + metadataNameGrowth*len(r.Name))
	if r.State == catalog.Found {
		n += metadataPartitionBytes * int64(r.Topic.Width)
	}
	return n
}

// namesOf returns the distinct names in first-seen order, up to the limit, and
// how many entries had none.
func (h *Handlers) namesOf(req *kmsg.MetadataRequest) (names []string, nulls int) {
	seen := make(map[string]struct{}, min(len(req.Topics), h.cfg.MetadataNames))
	for _, t := range req.Topics {
		if t.Topic == nil {
			nulls = 1 // echoed once, like any other duplicate
			continue
		}
		if _, dup := seen[*t.Topic]; dup {
			continue
		}
		if len(names) == h.cfg.MetadataNames {
			break
		}
		seen[*t.Topic] = struct{}{}
		names = append(names, *t.Topic)
	}
	return names, nulls
}

func metadataTopic(r *catalog.Resolved) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic = textPtr(r.Name)
	if r.State != catalog.Found {
		t.ErrorCode = unresolved(*r).Code
		return t
	}
	self := []int32{nodeID} // shared by all partitions: encoded, never changed
	t.Partitions = make([]kmsg.MetadataResponseTopicPartition, r.Topic.Width)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		p.Default()
		p.Partition, p.Leader, p.LeaderEpoch = int32(i), nodeID, noEpoch
		p.Replicas, p.ISR = self, self
	}
	return t
}

// unresolved is the code of a name without a topic. Creating that the cell
// refuses for good must not look retriable.
func unresolved(r catalog.Resolved) *kerr.Error {
	switch r.State {
	case catalog.Illegal:
		return kerr.InvalidTopicException
	case catalog.Missing:
		return kerr.UnknownTopicOrPartition
	case catalog.Refused:
		if kindOf(r.Err) == forbidden {
			return kerr.TopicAuthorizationFailed
		}
	}
	return kerr.LeaderNotAvailable
}
