package api

// TxnOffsetCommit (28), versions 0–4 (KIP-98, KIP-447, KIP-588, KIP-890); 5 is
// the second transaction protocol. Nothing is written before EndTxn. The member
// is checked with the group's coordinator, static members too; the commit fails
// with the offsets where more are staged than one call to the cell takes (28: 62
// at a cell that announces no more). A second commit of a partition replaces the
// first. There are codes of partitions only. A transaction that an earlier
// process held is 22, which clients answer by aborting; what cannot be staged, for
// nothing is open, is 48, from version 4 on 120.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/txn"
)

// firstFencedCommit is the version of TxnOffsetCommit from which a client knows
// 90.
const firstFencedCommit = 3

// firstAbortableCommit is the version from which a client knows 120 (KIP-890): it
// aborts and goes on, where 48 would end it.
const firstAbortableCommit = 4

func (h *Handlers) txnOffsetCommit(ctx context.Context, call Call, req *kmsg.TxnOffsetCommitRequest) (*kmsg.TxnOffsetCommitResponse, error) {
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	refusal := h.commitRefusal(call, req)
	var staged []txn.Offset
	var answers []*int16 // of the staged ones
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(req.Topics))
	now := time.Now()
	queues, _ := h.queueIDs(ctx, call)
	for i := range req.Topics {
		t, rt := &req.Topics[i], &resp.Topics[i]
		rt.Default()
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		legal, queueID := legalTopic(t.Topic), ""
		if queues != nil {
			topic, _ := queues.Find(t.Topic)
			queueID = topic.QueueID
		}
		for j := range t.Partitions {
			p, rp := &t.Partitions[j], &rt.Partitions[j]
			rp.Default()
			rp.Partition = p.Partition
			if rp.ErrorCode = refusal; refusal != 0 {
				continue
			}
			if rp.ErrorCode = offsetRefusal(req.Group, t.Topic, legal, p); rp.ErrorCode != 0 {
				continue
			}
			staged = append(staged, txnOffset(req.Group, t.Topic, queueID, p, now))
			answers = append(answers, &rp.ErrorCode)
		}
	}
	if len(staged) == 0 {
		return resp, nil
	}
	member := req.MemberID != "" || req.Generation >= 0
	r := h.cfg.Txns.StageOffsets(ctx, call.caller(req.TransactionalID, req.ProducerID, req.ProducerEpoch),
		txnGroup(req.Group, member, now), staged, h.cfg.Cell.TxnOps(call.Scope))
	o := commitOutcomes.of(r, txnCodes)
	if o.code == kerr.InvalidTxnState.Code && req.Version >= firstAbortableCommit {
		o.code = kerr.TransactionAbortable.Code
	}
	setAll(answers, fencedFrom(firstFencedCommit, req.Version, o.code))
	resp.ThrottleMillis = o.throttle
	return resp, nil
}

// commitRefusal is why a commit is refused whole; 0: it is not.
func (h *Handlers) commitRefusal(call Call, req *kmsg.TxnOffsetCommitRequest) int16 {
	if err := refuseGroup(call.Scope, req.Group); err != nil {
		return err.Code
	}
	switch {
	case !offsets.GroupFits(req.Group):
		return kerr.InvalidCommitOffsetSize.Code
	case h.clustered(), req.TransactionalID == "", txnKey(req.TransactionalID) == "":
		return kerr.InvalidTxnState.Code
	}
	if err := h.cfg.Groups.CheckCommit(call.Scope, req.Group, req.Generation, req.MemberID, req.InstanceID); err != nil {
		return err.Code
	}
	return 0
}

func offsetRefusal(group, topic string, legal bool, p *kmsg.TxnOffsetCommitRequestTopicPartition) int16 {
	switch {
	case !legal || p.Partition < 0:
		return kerr.UnknownTopicOrPartition.Code
	case p.Offset < -1:
		return kerr.InvalidCommitOffsetSize.Code
	case p.Metadata != nil && len(*p.Metadata) > offsets.MaxMetadata:
		return kerr.OffsetMetadataTooLarge.Code
	case !offsets.Fits(group, topic, p.Partition):
		return kerr.InvalidCommitOffsetSize.Code
	}
	return 0
}

func txnOffset(group, topic, queueID string, p *kmsg.TxnOffsetCommitRequestTopicPartition, now time.Time) txn.Offset {
	e := offsets.Entry{Place: offsets.Place{Topic: topic, Partition: p.Partition}, Offset: p.Offset, QueueID: queueID}
	if p.Metadata != nil {
		e.Metadata = *p.Metadata
	}
	row := offsets.Put(group, &e, now)
	return txn.Offset{Group: group, Topic: topic, Partition: p.Partition, Row: txn.Put{Key: row.Key, Value: row.Value}}
}
