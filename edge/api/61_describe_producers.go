package api

// DescribeProducers (61), version 0 (KIP-664). From what this gateway holds: the
// producers whose open transactions have the partition. Idempotent producers
// without a transaction are known to the cell alone and are not listed. A
// transaction has no place in the log before it commits: its start offset is −1,
// as for a producer without one, and its last timestamp is when it began. A topic
// or partition that does not exist is 3, a name that no topic can have 17.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/txn"
)

func (h *Handlers) describeProducers(ctx context.Context, call Call, req *kmsg.DescribeProducersRequest) (*kmsg.DescribeProducersResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	var names []string
	for i := range req.Topics {
		names = appendNew(names, req.Topics[i].Topic)
	}
	topics := map[string]catalog.Resolved{}
	for _, r := range h.cfg.Catalog.Resolve(ctx, call.Scope, names, false) {
		topics[r.Name] = r
	}
	active := activeProducers(h.cfg.Txns.List(call.Scope))
	resp.Topics = make([]kmsg.DescribeProducersResponseTopic, 0, len(req.Topics))
	for i := range req.Topics {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = req.Topics[i].Topic
		rt.Partitions = make([]kmsg.DescribeProducersResponseTopicPartition, 0, len(req.Topics[i].Partitions))
		topic := topics[rt.Topic]
		for _, index := range req.Topics[i].Partitions {
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			rp.Partition = index
			switch {
			case topic.State == catalog.Failed:
				rp.ErrorCode = readCodes.of(topic.Err).code
			case topic.State == catalog.Illegal:
				rp.ErrorCode, rp.ErrorMessage = kerr.InvalidTopicException.Code, textPtr(sayIllegal)
			case topic.State != catalog.Found || index < 0 || index >= topic.Topic.Width:
				rp.ErrorCode, rp.ErrorMessage = kerr.UnknownTopicOrPartition.Code, textPtr(sayNoTopic)
			default:
				rp.ActiveProducers = active[txn.TopicPartition{Topic: rt.Topic, Index: index}]
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil
}

type producersByPartition map[txn.TopicPartition][]kmsg.DescribeProducersResponseTopicPartitionActiveProducer

func activeProducers(views []txn.View) producersByPartition {
	active := make(producersByPartition)
	for i := range views {
		v := &views[i]
		for _, p := range v.Partitions {
			a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
			a.ProducerID, a.ProducerEpoch = v.Producer.ID, int32(v.Producer.Epoch)
			a.LastSequence, a.LastTimestamp = p.LastSequence, v.Started.UnixMilli()
			a.CoordinatorEpoch, a.CurrentTxnStartOffset = noEpoch, -1
			active[p.TopicPartition] = append(active[p.TopicPartition], a)
		}
	}
	return active
}
