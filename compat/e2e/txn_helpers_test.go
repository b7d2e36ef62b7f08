package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// wireTxn is a transactional producer by hand, on one connection.
type wireTxn struct {
	t     *testing.T
	w     *rig.Wire
	id    string
	pid   int64
	epoch int16
	seq   map[string]int32 // next sequence by topic/partition 0
	end   int16            // version of EndTxn and its like
}

// beginTxn initialises a transactional id on a connection.
func beginTxn(t *testing.T, w *rig.Wire, id string) *wireTxn {
	t.Helper()
	p := &wireTxn{t: t, w: w, id: id, pid: -1, epoch: -1, end: 3}
	if code := p.init(60_000); code != 0 {
		t.Fatalf("InitProducerId of %s: code %d", id, code)
	}
	return p
}

// on is the same producer on another connection.
func (p *wireTxn) on(w *rig.Wire) *wireTxn {
	q := *p
	q.w = w
	return &q
}

// init asks for a producer, naming none, and becomes it.
func (p *wireTxn) init(timeout int32) int16 {
	p.t.Helper()
	resp := p.ask(timeout, -1, -1)
	if resp.ErrorCode == 0 {
		p.pid, p.epoch, p.seq = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
	}
	return resp.ErrorCode
}

// bump asks for the next epoch as the producer it is (KIP-360).
func (p *wireTxn) bump() int16 {
	p.t.Helper()
	resp := p.ask(60_000, p.pid, p.epoch)
	if resp.ErrorCode == 0 {
		p.pid, p.epoch, p.seq = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
	}
	return resp.ErrorCode
}

func (p *wireTxn) ask(timeout int32, pid int64, epoch int16) *kmsg.InitProducerIDResponse {
	p.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &p.id, timeout
	req.ProducerID, req.ProducerEpoch = pid, epoch
	return p.w.Ask(req).(*kmsg.InitProducerIDResponse)
}

// add adds partition 0 of topics and returns the first code.
func (p *wireTxn) add(topics ...string) int16 {
	p.t.Helper()
	resp := p.w.Ask(p.addRequest(topics...)).(*kmsg.AddPartitionsToTxnResponse)
	if len(resp.Topics) != len(topics) {
		p.t.Fatalf("AddPartitionsToTxn answers %d topics, want %d", len(resp.Topics), len(topics))
	}
	return resp.Topics[0].Partitions[0].ErrorCode
}

func (p *wireTxn) addRequest(topics ...string) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = min(p.end, 3), p.id, p.pid, p.epoch
	for _, name := range topics {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = name, []int32{0}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// produce stages records into partition 0 of a topic; its sequence moves on where
// they are taken.
func (p *wireTxn) produce(topic string, values ...string) int16 {
	p.t.Helper()
	resp := p.w.Ask(p.produceRequest(topic, values...)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if resp.BaseOffset != -1 {
		p.t.Errorf("base offset %d inside a transaction, want -1", resp.BaseOffset)
	}
	if resp.ErrorCode == 0 {
		p.seq[topic] += int32(len(values))
	}
	return resp.ErrorCode
}

func (p *wireTxn) produceRequest(topic string, values ...string) *kmsg.ProduceRequest {
	const transactional = 1 << 4
	req := wireProduce(-1, topic, 0, wireBatch{
		attributes: transactional, producer: p.pid, epoch: p.epoch, sequence: p.seq[topic], values: values,
	}.bytes())
	req.TransactionID = &p.id
	return req
}

func (p *wireTxn) addOffsets(group string) int16 {
	p.t.Helper()
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.end, p.id, p.pid, p.epoch, group
	return p.w.Ask(req).(*kmsg.AddOffsetsToTxnResponse).ErrorCode
}

// offsets stages offsets of a consumer that takes no part in its group, and
// returns the code of each.
func (p *wireTxn) offsets(group string, positions ...at) []int16 {
	p.t.Helper()
	resp := p.w.Ask(p.offsetsRequest(group, positions...)).(*kmsg.TxnOffsetCommitResponse)
	var codes []int16
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			codes = append(codes, rp.ErrorCode)
		}
	}
	return codes
}

func (p *wireTxn) offsetsRequest(group string, positions ...at) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.end, p.id, p.pid, p.epoch, group
	for i, a := range positions {
		o := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		o.Partition, o.Offset, o.Metadata = a.partition, a.offset, a.metadata
		if i == 0 || a.topic != positions[i-1].topic {
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic = a.topic
			req.Topics = append(req.Topics, t)
		}
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, o)
	}
	return req
}

func (p *wireTxn) commit() int16 { return p.endWith(true) }
func (p *wireTxn) abort() int16  { return p.endWith(false) }

func (p *wireTxn) endWith(commit bool) int16 {
	p.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.end, p.id, p.pid, p.epoch, commit
	return p.w.Ask(req).(*kmsg.EndTxnResponse).ErrorCode
}

// wantCode compares the code of a step.
func wantCode(t *testing.T, what string, got, want int16) {
	t.Helper()
	if got != want {
		t.Errorf("%s: code %d, want %d", what, got, want)
	}
}

// mustTxn fails the test unless a whole transaction of one record commits.
func (p *wireTxn) mustTxn(topic, value string) {
	p.t.Helper()
	wantCode(p.t, "add "+topic, p.add(topic), 0)
	wantCode(p.t, "produce "+value, p.produce(topic, value), 0)
	wantCode(p.t, "commit "+value, p.commit(), 0)
}

// wantValues compares all records of partition 0, whose offsets must follow each
// other from 0: a commit writes no markers.
func wantValues(t *testing.T, w *rig.Wire, topic string, want ...string) {
	t.Helper()
	got := wireValues(t, wireRead(w, topic, 0, 0).RecordBatches)
	for i := range want {
		want[i] = fmt.Sprintf("%d:%s", i, want[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", topic, got, want)
	}
}
