package cloud

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// openTxn has a producer open a transaction of one record.
func openTxn(t *testing.T, s *system, key, id, topic, value string) *kgo.Client {
	t.Helper()
	c := s.Kafka(t, key, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
	return c
}

// One transactional id in two tenants: neither fences, ends or commits the
// other's transaction.
func transactionalIDs(t *testing.T, s *system) {
	topic, id := s.name("txn"), s.name("same-txn")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	a := openTxn(t, s, rig.Acme, id, topic, "a")
	g := openTxn(t, s, rig.Globex, id, topic, "g")
	must(t, g.EndTransaction(rig.Context(t), kgo.TryAbort))
	wantValues(t, acme, topic)
	must(t, a.EndTransaction(rig.Context(t), kgo.TryCommit))
	wantValues(t, acme, topic, "a")
	wantValues(t, globex, topic)
	must(t, g.BeginTransaction())
	must(t, g.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: []byte("g2")}).FirstErr())
	must(t, g.EndTransaction(rig.Context(t), kgo.TryCommit))
	wantValues(t, acme, topic, "a")
	wantValues(t, globex, topic, "g2")
}

// What a tenant has open is in front of nobody else.
func listedTransactions(t *testing.T, s *system) {
	topic, id := s.name("txns"), s.name("txn-of-acme")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	a := openTxn(t, s, rig.Acme, id, topic, "a")
	list := func(w *rig.Wire) (ids []string) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version = s.announced[listTransactions]
		req.DurationFilterMillis = -1
		for _, x := range w.Ask(req).(*kmsg.ListTransactionsResponse).TransactionStates {
			ids = append(ids, x.TransactionalID)
		}
		return ids
	}
	describe := func(w *rig.Wire) kmsg.DescribeTransactionsResponseTransactionState {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{id}
		return w.Ask(req).(*kmsg.DescribeTransactionsResponse).TransactionStates[0]
	}
	producers := func(w *rig.Wire) int {
		req := kmsg.NewPtrDescribeProducersRequest()
		req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
		p := w.Ask(req).(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 {
			t.Errorf("DescribeProducers: code %d", p.ErrorCode)
		}
		return len(p.ActiveProducers)
	}
	if ids, d, n := list(acme), describe(acme), producers(acme); !slices.Contains(ids, id) || d.ErrorCode != 0 || n != 1 {
		t.Errorf("its own: listed %v, code %d, %d producers", ids, d.ErrorCode, n)
	}
	if ids, d, n := list(globex), describe(globex), producers(globex); slices.Contains(ids, id) || d.ErrorCode != 105 || len(d.Topics) != 0 || n != 0 {
		t.Errorf("another's: listed %v, code %d with %d topics, %d producers", ids, d.ErrorCode, len(d.Topics), n)
	}
	must(t, a.EndTransaction(rig.Context(t), kgo.TryAbort))
}
