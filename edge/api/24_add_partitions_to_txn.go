package api

// AddPartitionsToTxn (24), versions 0–3 (KIP-98, KIP-360, KIP-588); 4 is between
// brokers. Opens the transaction, and says so in its row before it answers. There
// are codes of partitions only: a refusal of the request is repeated on each. An
// illegal or hidden name and a negative index are 3, and the good partitions of
// the same request are added all the same; a topic need not exist. More
// partitions than one call to the cell carries are 48, those that fit are added.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/txn"
)

// firstFencedTxn is the version of the requests of a transaction from which a
// client knows 90 (KIP-588).
const firstFencedTxn = 2

func (h *Handlers) addPartitionsToTxn(ctx context.Context, call Call, req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	resp.Topics = make([]kmsg.AddPartitionsToTxnResponseTopic, len(req.Topics))
	var good []txn.TopicPartition
	var answers []*int16 // of the good ones
	for i := range req.Topics {
		t, rt := &req.Topics[i], &resp.Topics[i]
		rt.Default()
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.AddPartitionsToTxnResponseTopicPartition, len(t.Partitions))
		legal := legalTopic(t.Topic)
		for j, index := range t.Partitions {
			rp := &rt.Partitions[j]
			rp.Default()
			rp.Partition = index
			if !legal || index < 0 {
				rp.ErrorCode = kerr.UnknownTopicOrPartition.Code
				continue
			}
			good = append(good, txn.TopicPartition{Topic: t.Topic, Index: index})
			answers = append(answers, &rp.ErrorCode)
		}
	}
	if len(good) == 0 {
		return resp, nil
	}
	if h.clustered() || req.TransactionalID == "" || txnKey(req.TransactionalID) == "" {
		setAll(answers, kerr.InvalidTxnState.Code)
		return resp, nil
	}
	r := h.cfg.Txns.AddPartitions(ctx, call.caller(req.TransactionalID, req.ProducerID, req.ProducerEpoch), good)
	o := addOutcomes.of(r, txnCodes)
	setAll(answers[r.Fit:], fencedFrom(firstFencedTxn, req.Version, o.code))
	resp.ThrottleMillis = o.throttle
	return resp, nil
}

// legalTopic reports a name that a topic can have for a client.
func legalTopic(name string) bool { return catalog.Legal(name) && !catalog.Reserved(name) }

func setAll(answers []*int16, code int16) {
	for _, a := range answers {
		*a = code
	}
}
