package api

// DescribeTopicPartitions (75), version 0 (KIP-966). Topics by name, none meaning
// all, sorted as Apache Kafka sorts them; nothing is created. At most 2,000
// partitions in one answer, which then says where to go on. Replicas are those of
// Metadata; there are no eligible leaders beside them.

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/cluster"
)

// mostDescribed is Apache Kafka's default limit of partitions in one answer.
const mostDescribed = 2000

func (h *Handlers) describeTopicPartitions(ctx context.Context, call Call, req *kmsg.DescribeTopicPartitionsRequest) (*kmsg.DescribeTopicPartitionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	nodes := h.nodes(call)
	list, err := h.cfg.Catalog.Get(ctx, call.Scope)
	names := partitionNames(req, list)
	from := int32(0)
	if req.Cursor != nil {
		at, found := slices.BinarySearch(names, req.Cursor.Topic)
		if names = names[at:]; found {
			from = max(req.Cursor.Partition, 0)
		}
	}
	left := min(max(req.ResponsePartitionLimit, 1), mostDescribed)
	for _, name := range names {
		t := kmsg.NewDescribeTopicPartitionsResponseTopic()
		t.Topic = textPtr(name)
		r := catalog.Resolved{Name: name, State: catalog.Illegal}
		switch topic, ok := find(list, name); {
		case !catalog.Legal(name):
		case catalog.Reserved(name):
			r.State = catalog.Missing
		case err != nil:
			r.State, r.Err = catalog.Failed, err
			resp.ThrottleMillis = throttleOf(err)
		case !ok:
			r.State = catalog.Missing
		default:
			r.State, r.Topic = catalog.Found, topic
		}
		if r.State != catalog.Found {
			t.ErrorCode = unresolved(r).Code
			resp.Topics = append(resp.Topics, t)
			continue
		}
		t.TopicID = r.Topic.ID
		until := min(r.Topic.Width, from+left)
		t.Partitions = describedPartitions(nodes.Leaders(name), from, until)
		resp.Topics = append(resp.Topics, t)
		if left -= until - min(from, until); until < r.Topic.Width {
			next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
			next.Topic, next.Partition = name, until
			resp.NextCursor = &next
			return resp, nil
		}
		from = 0
	}
	return resp, nil
}

func find(list *catalog.Listing, name string) (catalog.Topic, bool) {
	if list == nil {
		return catalog.Topic{}, false
	}
	return list.Find(name)
}

// partitionNames are the distinct names of a request, or those of all topics.
func partitionNames(req *kmsg.DescribeTopicPartitionsRequest, list *catalog.Listing) []string {
	var names []string
	for i := range req.Topics {
		names = append(names, req.Topics[i].Topic)
	}
	if len(req.Topics) == 0 && list != nil {
		for _, t := range list.Topics() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func describedPartitions(leaders cluster.Leaders, from, until int32) []kmsg.DescribeTopicPartitionsResponseTopicPartition {
	if from >= until {
		return nil
	}
	none := []int32{} // shared by all partitions: encoded, never changed
	out := make([]kmsg.DescribeTopicPartitionsResponseTopicPartition, until-from)
	for i := range out {
		p := &out[i]
		p.Default()
		leader, replicas := leaders.Of(from + int32(i))
		p.Partition, p.LeaderID, p.LeaderEpoch = from+int32(i), leader, noEpoch
		p.Replicas, p.ISR = replicas, replicas
		p.EligibleLeaderReplicas, p.LastKnownELR = none, none // never null, as there
	}
	return out
}
