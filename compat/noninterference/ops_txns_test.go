package noninterference

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// txn is one of the client's transactional ids.
type txn struct {
	ready   bool
	id      int64
	epoch   int16
	open    bool     // a partition or a group was added
	added   [2]bool  // topics
	offsets bool     // the group was added
	next    [2]int32 // sequence by topic
}

func txnName(x int) string { return fmt.Sprint("x", x%2) }

func txnOps() []op {
	return []op{
		{"init-txn", (*client).initTxn},
		{"add-partitions", (*client).addPartitions},
		{"txn-produce", (*client).txnProduce},
		{"add-offsets", (*client).addOffsets},
		{"txn-commit-offsets", (*client).txnCommitOffsets},
		{"end-txn", (*client).endTxn},
		{"describe-transactions", (*client).describeTransactions},
		{"list-transactions", (*client).listTransactions},
	}
}

func (c *client) initTxn(x, v int) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(txnName(x)), 60_000
	resp, ok := askAt[*kmsg.InitProducerIDResponse](c, req, v)
	c.txns[x%2] = txn{}
	if ok && resp.ErrorCode == 0 {
		c.txns[x%2] = txn{ready: true, id: resp.ProducerID, epoch: resp.ProducerEpoch}
	}
}

// txn is a transactional id with a producer.
func (c *client) txn(x int) *txn {
	if !c.txns[x%2].ready {
		c.initTxn(x, x)
	}
	return &c.txns[x%2]
}

// settle looks at a code: after an error a client begins with InitProducerId
// again.
func (t *txn) settle(ok bool, code int16) bool {
	t.ready = t.ready && ok && code == 0
	return t.ready
}

func (c *client) addPartitions(x, v int) {
	c.topic(x)
	t := c.txn(x)
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = txnName(x), t.id, t.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topicName(x), Partitions: []int32{0}}}
	resp, ok := askAt[*kmsg.AddPartitionsToTxnResponse](c, req, v)
	if t.settle(ok, codeOf(ok, func() int16 { return resp.Topics[0].Partitions[0].ErrorCode })) {
		t.open, t.added[x%2] = true, true
	}
}

// codeOf is a code of an answer that there may not be.
func codeOf(ok bool, code func() int16) int16 {
	if !ok {
		return -1
	}
	return code()
}

func (c *client) txnProduce(x, v int) {
	c.topic(x)
	if t := c.txn(x); !t.added[x%2] {
		c.addPartitions(x, v)
	}
	t := c.txn(x)
	p := rig.Producer{ID: t.id, Epoch: t.epoch, Seq: t.next[x%2], Transactional: true}
	const batches = 3
	code := c.produceTo(x, v, p, kmsg.StringPtr(txnName(x)), batches, fmt.Sprintf("%s-%d", txnName(x), p.Seq))
	if t.settle(code >= 0, code) {
		t.next[x%2]++
	}
}

func (c *client) addOffsets(x, v int) {
	t := c.txn(x)
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txnName(x), t.id, t.epoch, groupName(x)
	resp, ok := askAt[*kmsg.AddOffsetsToTxnResponse](c, req, v)
	if t.settle(ok, codeOf(ok, func() int16 { return resp.ErrorCode })) {
		t.open, t.offsets = true, true
	}
}

func (c *client) txnCommitOffsets(x, v int) {
	c.topic(x)
	if t := c.txn(x); !t.offsets {
		c.addOffsets(x, v)
	}
	t, g := c.txn(x), &c.groups[x%2]
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = txnName(x), groupName(x), t.id, t.epoch
	req.Generation = -1
	if g.member != "" {
		req.MemberID, req.InstanceID, req.Generation = g.member, g.instance, g.generation
	}
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = int64(v)
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topicName(x), Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	resp, ok := askAt[*kmsg.TxnOffsetCommitResponse](c, req, v)
	t.settle(ok, codeOf(ok, func() int16 { return resp.Topics[0].Partitions[0].ErrorCode }))
}

func (c *client) endTxn(x, v int) {
	if t := c.txn(x); !t.open {
		c.addPartitions(x, v)
	}
	t := c.txn(x)
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = txnName(x), t.id, t.epoch, x/2%3 > 0
	resp, ok := askAt[*kmsg.EndTxnResponse](c, req, v)
	if t.settle(ok, codeOf(ok, func() int16 { return resp.ErrorCode })) {
		t.open, t.offsets, t.added = false, false, [2]bool{}
	}
}

func (c *client) describeTransactions(x, v int) {
	c.txn(x)
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{txnName(x)}
	c.send(req, v)
}

func (c *client) listTransactions(_, v int) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.DurationFilterMillis = -1
	c.send(req, v)
}
