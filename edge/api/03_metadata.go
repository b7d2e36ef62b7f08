package api

// Metadata (3), versions 0–13 (KIP-4, KIP-430, KIP-482, KIP-516, KIP-1102).
// One broker, id 0, leads every partition. Null topics mean all; an empty list
// means all at version 0 and none from version 1 on. Missing topics are created
// in the same answer where the request allows it (below version 4 it cannot
// refuse). Errors are per topic: 3, 5, 17, and 29 where creating was refused for
// good (DEVIATIONS.md). Bytes after the request are let be: librdkafka writes a
// null list of version 9 on as four zero bytes, of which three are too many.
//
// From version 10 on every topic has its id, and one that is asked for by id is
// looked up, never created: 100 where this tenant has none of that id. The error
// of the whole answer (version 13) would send a client to its bootstrap servers;
// it is never set.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/cluster"
)

func (h *Handlers) metadata(ctx context.Context, call Call, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	nodes := h.nodes(call)
	for _, m := range nodes.Members {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = m.ID, m.Host, m.Port
		resp.Brokers = append(resp.Brokers, b)
	}
	resp.ClusterID, resp.ControllerID = textPtr(nodes.Cluster), nodes.Controller()

	if req.Topics == nil || (req.Version == 0 && len(req.Topics) == 0) {
		return h.allTopics(ctx, call, nodes, resp)
	}
	names, ids, nulls := h.asked(req)
	for range nulls {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode = kerr.InvalidTopicException.Code
		t.Topic = nameOrNull("", req.Version)
		resp.Topics = append(resp.Topics, t)
	}
	create := req.Version < 4 || req.AllowAutoTopicCreation
	budget, need := h.cfg.MetadataPartitions, int64(0)
	resolved := h.cfg.Catalog.Resolve(ctx, call.Scope, names, create)
	call.Conn.madeBy("Metadata", resolved)
	resolved = append(resolved, h.cfg.Catalog.ResolveIDs(ctx, call.Scope, ids)...)
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
		resp.Topics = append(resp.Topics, metadataTopic(&resolved[i], nodes, req.Version))
		resp.ThrottleMillis = max(resp.ThrottleMillis, throttleOf(resolved[i].Err))
	}
	return resp, nil
}

// allTopics lists every topic until the partition budget is spent; the first
// topic always fits. An unreadable listing is an empty one.
func (h *Handlers) allTopics(ctx context.Context, call Call, nodes *cluster.View, resp *kmsg.MetadataResponse) (*kmsg.MetadataResponse, error) {
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
		resp.Topics = append(resp.Topics, metadataTopic(&catalog.Resolved{Name: t.Name, Topic: t}, nodes, resp.Version))
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

// asked returns the distinct names and ids in first-seen order, up to the limit
// together, and how many entries had neither. An id counts before a name.
func (h *Handlers) asked(req *kmsg.MetadataRequest) (names []string, ids []catalog.TopicID, nulls int) {
	most := min(len(req.Topics), h.cfg.MetadataNames)
	seen, seenIDs := make(map[string]struct{}, most), map[catalog.TopicID]struct{}{}
	for _, t := range req.Topics {
		id := catalog.TopicID(t.TopicID)
		switch full := len(names)+len(ids) == h.cfg.MetadataNames; {
		case !id.IsZero():
			if _, dup := seenIDs[id]; !dup && !full {
				seenIDs[id] = struct{}{}
				ids = append(ids, id)
			}
		case t.Topic == nil:
			nulls = 1 // echoed once, like any other duplicate
		default:
			if _, dup := seen[*t.Topic]; !dup && !full {
				seen[*t.Topic] = struct{}{}
				names = append(names, *t.Topic)
			}
		}
	}
	return names, ids, nulls
}

// nameOrNull is a topic's name; none is null from version 12 on, where the
// protocol allows it.
func nameOrNull(name string, version int16) *string {
	if name == "" && version >= 12 {
		return nil
	}
	return &name
}

func metadataTopic(r *catalog.Resolved, nodes *cluster.View, version int16) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = textPtr(r.Name), r.Topic.ID
	if r.ByID {
		t.Topic, t.TopicID = nameOrNull(r.Name, version), r.ID
	}
	if r.State != catalog.Found {
		t.ErrorCode = unresolved(*r).Code
		return t
	}
	leaders := nodes.Leaders(r.Name)
	t.Partitions = make([]kmsg.MetadataResponseTopicPartition, r.Topic.Width)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		p.Default()
		leader, replicas := leaders.Of(int32(i))
		p.Partition, p.Leader, p.LeaderEpoch = int32(i), leader, noEpoch
		p.Replicas, p.ISR = replicas, replicas
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
		if r.ByID {
			return kerr.UnknownTopicID
		}
		return kerr.UnknownTopicOrPartition
	case catalog.Refused:
		if kindOf(r.Err) == forbidden {
			return kerr.TopicAuthorizationFailed
		}
	}
	return kerr.LeaderNotAvailable
}
