package main

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// txnFlows are transactions, at every version of InitProducerId.
func (s *suite) txnFlows() {
	row := s.row(22)
	for step := range row.Max - row.Min + 1 {
		s.committed(step)
		s.aborted(step)
		s.nothingBegun(step)
		s.wrongProducers(step)
		s.fenced(step)
		s.wrongPlaces(step)
		s.wrongBegins(step)
		if step >= 3 {
			s.recovered(step)
		}
	}
}

// committed is a transaction from its begin to its end, and an empty one after it.
func (s *suite) committed(step int16) {
	t, p := s.txnFlow(step, "a commit"), byProducer("p")
	t.describe("when nobody has it")
	t.begin("p", "")
	t.describe("before it begins")
	t.list("before it begins")
	t.addPartitions("", p)
	t.addPartitions("again", p)
	t.describe("while it is open")
	t.listEverything()
	t.produce("", p, 0)
	t.produce("again", p, 0)
	t.produce("more", p, 2)
	t.produce("with a gap", p, 6)
	t.producersOf("while it is open", t.topic, 0)
	t.look("while it is open")
	t.addOffsets("", p, nil)
	t.addOffsets("again", p, nil)
	t.commitOffsets("", p)
	t.offsets("offsets while it is open", false)
	t.offsets("stable offsets while it is open", true)
	t.end("commit", p, true)
	t.end("commit again", p, true)
	t.settled()
	t.end("abort after the commit", p, false)
	t.describe("when it is committed")
	t.list("when it is committed")
	t.producersOf("when it is committed", t.topic, 0)
	t.look("when it is committed")
	t.offsets("stable offsets when it is committed", true).again = 88
	t.produce("after the commit", p, 4)
	t.commitOffsets("after the commit", p)
	t.addPartitions("of the next one", p)
	t.end("commit of the next one, which is empty", p, true)
	t.settled()
	t.done()
}

// listEverything lists by every filter, as far as the version has it.
func (t *txnFlow) listEverything() {
	t.list("")
	for _, states := range []string{"Ongoing", "ongoing", "Empty", "CompleteCommit,Ongoing", "nonsense"} {
		t.list("of state "+states, func(_ *memory, r *kmsg.ListTransactionsRequest) { r.StateFilters = strings.Split(states, ",") })
	}
	t.list("of its producer", func(m *memory, r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{m.producers["p"].id} })
	t.list("of another producer", func(m *memory, r *kmsg.ListTransactionsRequest) {
		r.ProducerIDFilters = []int64{m.producers["p"].id + 1000}
	})
	t.list("of an hour", func(_ *memory, r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 })
	t.list("of 0 ms", func(_ *memory, r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 0 })
}

// aborted is a transaction that is given up.
func (s *suite) aborted(step int16) {
	t, p := s.txnFlow(step, "an abort"), byProducer("p")
	t.begin("p", "")
	t.addPartitions("", p)
	t.produce("", p, 0)
	t.addOffsets("", p, nil)
	t.commitOffsets("", p)
	t.end("abort", p, false)
	t.end("abort again", p, false)
	t.settled()
	t.end("commit after the abort", p, true)
	t.describe("when it is aborted")
	t.list("when it is aborted")
	t.look("when it is aborted")
	t.offsets("stable offsets when it is aborted", true).again = 88
	t.addPartitions("of the next one", p)
	t.produce("of the next one", p, 2)
	t.end("commit of the next one", p, true)
	t.settled()
	t.look("when the next one is committed")
	t.done()
}

// nothingBegun is a producer that leaves out a step.
func (s *suite) nothingBegun(step int16) {
	t, p := s.txnFlow(step, "nothing begun"), byProducer("p")
	t.begin("p", "")
	t.end("commit", p, true)
	t.end("abort", p, false)
	t.produce("", p, 0)
	t.commitOffsets("", p)
	t.addPartitions("", p)
	t.commitOffsets("without the group", p)
	t.end("commit what was begun", p, true)
	t.settled()
	t.done()
}

// wrongProducers are requests of producers that are not the one.
func (s *suite) wrongProducers(step int16) {
	t := s.txnFlow(step, "wrong producers")
	nobody, empty := "nobody "+t.id, ""
	t.begin("p", "")
	t.begin("p", "again")
	everything := func(when string, x txn) {
		t.addPartitions(when, x)
		t.addOffsets(when, x, nil)
		t.commitOffsets(when, x)
		t.end("commit "+when, x, true)
		t.end("abort "+when, x, false)
	}
	wrong := []struct {
		when string
		x    txn
	}{
		{"of the epoch before", txn{producer: "p", epochs: -1}},
		{"of the epoch after", txn{producer: "p", epochs: 1}},
		{"of another producer", txn{producer: "p", other: true}},
	}
	for _, w := range wrong {
		everything(w.when, w.x)
	}
	everything("of another id", txn{producer: "p", id: &nobody})
	everything("of no id", txn{producer: "p", id: &empty})
	t.addPartitions("", byProducer("p"))
	for _, w := range wrong {
		everything(w.when+", while one is open", w.x)
		t.produce(w.when+", while one is open", w.x, 0)
	}
	t.end("commit", byProducer("p"), true)
	t.settled()
	t.done()
}

// fenced is a producer whose id is taken over while its transaction is open.
func (s *suite) fenced(step int16) {
	t, p, q := s.txnFlow(step, "fenced"), byProducer("p"), byProducer("q")
	t.begin("p", "")
	t.addPartitions("", p)
	t.produce("", p, 0)
	t.begin("q", "by another one")
	t.settled()
	t.addPartitions("of the first", p)
	t.addOffsets("of the first", p, nil)
	t.commitOffsets("of the first", p)
	t.produce("of the first", p, 2)
	t.end("commit of the first", p, true)
	t.end("abort of the first", p, false)
	t.look("when it was taken over")
	t.addPartitions("of the second", q)
	t.produce("of the second", q, 0)
	t.end("commit of the second", q, true)
	t.settled()
	t.done()
}

// wrongPlaces are partitions, groups and offsets that cannot be.
func (s *suite) wrongPlaces(step int16) {
	t, p := s.txnFlow(step, "wrong places"), byProducer("p")
	empty, other := "", "other "+t.group
	t.begin("p", "")
	t.addPartitions("of a missing topic", p, place{topic: missing})
	t.addPartitions("of a missing topic and a good one", p, place{topic: missing}, place{topic: t.topic})
	t.addPartitions("of an illegal name", p, place{topic: "a b"})
	t.addPartitions("of a missing partition", p, place{topic: t.topic, partition: 99})
	t.addPartitions("of partition -1", p, place{topic: t.topic, partition: -1})
	t.ask(0, "add partitions, none", func(m *memory) kmsg.Request {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.who(m, p)
		return req
	})
	t.addOffsets("of a group without a name", p, &empty)
	t.addOffsets("", p, nil)
	at := func(edit func(*kmsg.TxnOffsetCommitRequestTopicPartition)) func(*kmsg.TxnOffsetCommitRequest) {
		return func(r *kmsg.TxnOffsetCommitRequest) { edit(&r.Topics[0].Partitions[0]) }
	}
	t.commitOffsets("-1", p, at(func(p *kmsg.TxnOffsetCommitRequestTopicPartition) { p.Offset = -1 }))
	t.commitOffsets("-2", p, at(func(p *kmsg.TxnOffsetCommitRequestTopicPartition) { p.Offset = -2 }))
	t.commitOffsets("with too much metadata", p, at(func(p *kmsg.TxnOffsetCommitRequestTopicPartition) { p.Metadata = pointer(strings.Repeat("m", 4097)) }))
	t.commitOffsets("of a missing partition", p, at(func(p *kmsg.TxnOffsetCommitRequestTopicPartition) { p.Partition = 99 }))
	t.commitOffsets("of a missing topic", p, func(r *kmsg.TxnOffsetCommitRequest) { r.Topics[0].Topic = missing })
	t.commitOffsets("of a group without a name", p, func(r *kmsg.TxnOffsetCommitRequest) { r.Group = "" })
	t.commitOffsets("of another group", p, func(r *kmsg.TxnOffsetCommitRequest) { r.Group = other })
	if t.version(28) >= 3 {
		t.commitOffsets("of a stranger", p, func(r *kmsg.TxnOffsetCommitRequest) { r.MemberID, r.Generation = "stranger", 1 })
		t.commitOffsets("of a generation", p, func(r *kmsg.TxnOffsetCommitRequest) { r.Generation = 1 })
		t.commitOffsets("of an instance", p, func(r *kmsg.TxnOffsetCommitRequest) { r.InstanceID = &other })
	}
	t.producersOf("of a missing topic", missing, 0)
	t.producersOf("of a missing partition", t.topic, 99)
	t.producersOf("of an illegal name", "a b", 0)
	t.end("abort", p, false)
	t.settled()
	t.done()
}

// wrongBegins are producers that cannot be.
func (s *suite) wrongBegins(step int16) {
	t := s.txnFlow(step, "wrong begins")
	for _, timeout := range []int32{0, -1, 7_200_000} {
		t.begin("p", fmt.Sprintf("of %d ms", timeout), func(_ *memory, r *kmsg.InitProducerIDRequest) { r.TransactionTimeoutMillis = timeout })
	}
	t.ask(0, "describe no id", func(*memory) kmsg.Request { return &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{""}} })
	t.ask(0, "describe nothing", func(*memory) kmsg.Request { return &kmsg.DescribeTransactionsRequest{} })
	t.done()
}

// recovered is a producer that goes on with its own id and epoch (KIP-360).
func (s *suite) recovered(step int16) {
	t := s.txnFlow(step, "recovered")
	as := func(of string, epochs int16, other int64) func(*memory, *kmsg.InitProducerIDRequest) {
		return func(m *memory, r *kmsg.InitProducerIDRequest) {
			p := m.producers[of]
			r.ProducerID, r.ProducerEpoch = p.id+other, p.epoch+epochs
		}
	}
	t.begin("x", "of a producer when there is none", func(_ *memory, r *kmsg.InitProducerIDRequest) { r.ProducerID, r.ProducerEpoch = 5, 0 })
	t.begin("p", "")
	t.begin("q", "of p", as("p", 0, 0))
	t.begin("q", "of p again", as("p", 0, 0))
	t.begin("x", "of a later epoch", as("q", 5, 0))
	t.begin("x", "of another producer", as("q", 0, 1000))
	t.begin("r", "of q", as("q", 0, 0))
	t.begin("x", "of p, long ago", as("p", 0, 0))
	t.begin("x", "of an id without an epoch", func(m *memory, r *kmsg.InitProducerIDRequest) { r.ProducerID = m.producers["r"].id })
	t.done()
}
