package main

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// txnFlow is a flow about one transactional id, which writes to partition 0 of one
// topic and commits offsets of one group.
type txnFlow struct {
	story
	id, group, topic string
}

func (s *suite) txnFlow(step int16, name string) *txnFlow {
	id := fmt.Sprintf("txn %d %s", step, name)
	topic := s.targetAlone()
	own := map[string]string{"the transactional id": id, "the group": "group of " + id, "the topic": topic}
	return &txnFlow{story: s.story(step, "transactions", name, own), id: id, group: own["the group"], topic: topic}
}

// notYet is what a coordinator says that is still ending a transaction.
const notYet = 51

// begin makes a producer, or makes it anew.
func (t *txnFlow) begin(name, label string, edit ...func(*memory, *kmsg.InitProducerIDRequest)) {
	a := t.ask(0, "init "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &t.id, 60_000
		req.ProducerID, req.ProducerEpoch = -1, -1
		for _, e := range edit {
			e(m, req)
		}
		return req
	})
	a.again = notYet
	a.learn = func(m *memory, resp kmsg.Response) {
		if r := resp.(*kmsg.InitProducerIDResponse); r.ErrorCode == 0 {
			m.producers[name] = producer{r.ProducerID, r.ProducerEpoch}
		}
	}
}

// txn is who asks in a transaction. What is not the flow's own is said.
type txn struct {
	producer string
	id       *string // transactional id
	epochs   int16   // above the producer's epoch
	other    bool    // a producer id that nobody has
}

func (t *txnFlow) who(m *memory, x txn) (id string, pid int64, epoch int16) {
	p := m.producers[x.producer]
	id, pid, epoch = t.id, p.id, p.epoch+x.epochs
	if x.id != nil {
		id = *x.id
	}
	if x.other {
		pid += 1000
	}
	return id, pid, epoch
}

// by is the producer as it is.
func byProducer(name string) txn { return txn{producer: name} }

// topics are partitions by topic; none are those of the flow.
func (t *txnFlow) addPartitions(label string, x txn, places ...place) {
	if len(places) == 0 {
		places = []place{{topic: t.topic}}
	}
	t.ask(0, "add partitions "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.who(m, x)
		for _, p := range places {
			req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: p.topic, Partitions: []int32{p.partition}})
		}
		return req
	}).again = notYet
}

// produce writes two records.
func (t *txnFlow) produce(label string, x txn, sequence int32) {
	t.ask(0, "produce "+label, func(m *memory) kmsg.Request {
		id, pid, epoch := t.who(m, x)
		raw := records(t.suite.now, []string{"one", "two"}, by(pid, epoch, sequence), func(b *kmsg.RecordBatch) { b.Attributes |= 0x10 })
		req := produceOf(-1, part(t.topic, 0, raw))
		req.TransactionID = &id
		return req
	})
	a := &t.acts[len(t.acts)-1]
	made := a.ask
	a.ask = func(m *memory) kmsg.Request {
		req := made(m)
		req.SetVersion(min(3+2*t.step, t.suite.row(0).Max)) // the first one that has transactions, and those above it
		return req
	}
}

func (t *txnFlow) addOffsets(label string, x txn, group *string) {
	t.ask(0, "add offsets "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.who(m, x)
		if req.Group = t.group; group != nil {
			req.Group = *group
		}
		return req
	}).again = notYet
}

// commitOffsets commits an offset of readTopic within the transaction.
func (t *txnFlow) commitOffsets(label string, x txn, edit ...func(*kmsg.TxnOffsetCommitRequest)) {
	t.ask(0, "commit offsets "+label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.who(m, x)
		req.Group, req.Generation = t.group, -1
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset, rp.Metadata = 7, pointer("m")
		req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: readTopic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{rp}}}
		for _, e := range edit {
			e(req)
		}
		return req
	})
}

func (t *txnFlow) end(label string, x txn, commit bool) *act {
	a := t.ask(0, label, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.who(m, x)
		req.Commit = commit
		return req
	})
	a.again = notYet
	return a
}

// settled waits until every transaction of the partition has ended: what is
// committed is all that there is, or aborted.
func (t *txnFlow) settled() {
	t.add(act{label: "until it is settled", until: func(_ *memory, c *conn) (bool, error) {
		var ends [2]int64
		for level := range ends {
			r := c.exchange(step{req: latest(t.topic, int8(level))})
			if r.outcome != answered {
				return false, errGiveUp{fmt.Errorf("list offsets: %s", r.outcome)}
			}
			ends[level] = r.resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
		}
		return ends[0] == ends[1], nil
	}})
}

// latest asks for the end of partition 0, at an isolation level.
func latest(topic string, level int8) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID, req.IsolationLevel = 5, -1, level
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return req
}

// look shows the partition as readers see it at both isolation levels: its end,
// and its records.
func (t *txnFlow) look(when string) {
	for level, name := range []string{"uncommitted", "committed"} {
		t.add(act{label: "the end, " + name + ", " + when, ask: func(*memory) kmsg.Request { return latest(t.topic, int8(level)) }})
		t.add(act{label: "the records, " + name + ", " + when, ask: func(*memory) kmsg.Request {
			req := fetchOf(readAt(t.topic, 0, 0))
			req.Version, req.IsolationLevel = 11, int8(level)
			return req
		}})
	}
}

// offsets reads the group's offset; a stable one waits for transactions (88).
func (t *txnFlow) offsets(label string, stable bool) *act {
	t.add(act{label: label, ask: func(*memory) kmsg.Request {
		req := offsetsOf(t.group, readTopic)
		req.Version, req.RequireStable = 7, stable
		return req
	}})
	return &t.acts[len(t.acts)-1]
}

func (t *txnFlow) describe(when string) {
	t.ask(0, "describe "+when, func(*memory) kmsg.Request {
		return &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{t.id}}
	})
}

// list lists transactions; of other flows' nothing is compared.
func (t *txnFlow) list(when string, edit ...func(*memory, *kmsg.ListTransactionsRequest)) {
	a := t.ask(0, "list "+when, func(m *memory) kmsg.Request {
		req := kmsg.NewPtrListTransactionsRequest()
		for _, e := range edit {
			e(m, req)
		}
		return req
	})
	a.trim = func(_ *memory, resp kmsg.Response) {
		l := resp.(*kmsg.ListTransactionsResponse)
		l.TransactionStates = slices.DeleteFunc(l.TransactionStates, func(x kmsg.ListTransactionsResponseTransactionState) bool {
			return x.TransactionalID != t.id
		})
		if len(l.TransactionStates) == 0 {
			l.TransactionStates = nil
		}
	}
}

func (t *txnFlow) producersOf(when, topic string, partition int32) {
	t.ask(0, "describe producers "+when, func(*memory) kmsg.Request {
		return &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{partition}}}}
	})
}
