package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/faults/txn/gokit"
)

// transactor has one producer, which its claims use by turns.
type transactor struct {
	j *gokit.Job

	mu           sync.Mutex // guards the fields below
	producer     sarama.SyncProducer
	life, number int
}

// renew makes a producer where there is none.
func (t *transactor) renew() bool {
	if t.producer != nil {
		return true
	}
	t.life, t.number = t.life+1, 0
	t.j.Say("init", t.life)
	p, err := sarama.NewSyncProducer([]string{t.j.Bootstrap}, producerConfig(t.j))
	if err != nil {
		t.j.Met(t.life, 0, "init", gokit.Fatal, code(err))
		return false
	}
	t.producer = p
	t.j.Say("inited", t.life)
	return true
}

func (t *transactor) close() {
	if t.producer == nil {
		return
	}
	if err := t.producer.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close:", err)
	}
	t.producer = nil
}

func (*transactor) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*transactor) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim takes what comes through one transaction after the other. It
// returns when one has not committed: the next session reads where to go on.
func (t *transactor) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for first := range claim.Messages() {
		batch := []*sarama.ConsumerMessage{first}
		for waiting := len(claim.Messages()); waiting > 0; waiting-- {
			if m, ok := <-claim.Messages(); ok {
				batch = append(batch, m)
			}
		}
		if !t.transact(s, batch) {
			return nil
		}
	}
	return nil
}

func (t *transactor) transact(s sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Context().Err() != nil || t.producer == nil { // what another claim met ends the session
		return false
	}
	t.number++
	txn := gokit.NewTxn(t.life, t.number)
	out := make([]*sarama.ProducerMessage, len(batch))
	for i, m := range batch {
		out[i] = &sarama.ProducerMessage{
			Topic: t.j.Output, Partition: m.Partition,
			Value: sarama.StringEncoder(txn.Add(t.j, m.Partition, m.Offset, m.Value)),
		}
	}
	member := sarama.NewConsumerGroupMetadataFromSession(s, t.j.Group, nil)
	p := t.producer
	return t.step("begin", p.BeginTxn) &&
		t.step("produce", func() error { return p.SendMessages(out) }) &&
		t.step("offsets", func() error { return p.AddOffsetsToTxnWithGroupMetadata(positions(t.j.Input, txn), member) }) &&
		t.commit(txn)
}

func (t *transactor) commit(txn *gokit.Txn) bool {
	txn.Commit(t.j)
	if !t.step("commit", t.producer.CommitTxn) {
		return false
	}
	t.j.Say("committed", txn.Life, txn.Number)
	return true
}

func positions(topic string, txn *gokit.Txn) map[string][]*sarama.PartitionOffsetMetadata {
	var list []*sarama.PartitionOffsetMetadata
	for p, offset := range txn.Offsets() {
		list = append(list, &sarama.PartitionOffsetMetadata{Partition: p, Offset: offset})
	}
	return map[string][]*sarama.PartitionOffsetMetadata{topic: list}
}

// step does a step until it succeeds, or until the producer says that it can only
// be aborted, or is of no use any more.
func (t *transactor) step(call string, do func() error) bool {
	for {
		err := do()
		if err == nil {
			return true
		}
		how := class(t.producer, err)
		t.j.Met(t.life, t.number, call, how, code(err))
		switch how {
		case gokit.Retry:
			continue
		case gokit.Abort:
			if call != "abort" && t.step("abort", t.producer.AbortTxn) {
				t.j.Say("aborted", t.life, t.number)
			}
		default:
			t.close()
		}
		return false
	}
}
