package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
)

// franz-go's GroupTransactSession reads, transforms and writes while the answer
// of a commit is lost, the gateway restarts with a transaction open, and the cell
// is away for a moment: every input is in the output exactly once.
func TestTxnConsumeTransformProduce(t *testing.T) {
	var faults *inject.Proxy
	r := rig.Start(t, noJoinDelay, rig.WithFaults(t, &faults))
	ctx := rig.Context(t)
	const n, each = 120, 20
	seed := r.Kafka(t, rig.Acme, kgo.DefaultProduceTopic("ctp-in"))
	for i := range n {
		if err := seed.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("%03d", i))).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s := ctpSession(t, r)
	defer s.Close()
	out, ends := 0, 0
	for out < n {
		fetches := s.PollRecords(ctx, each)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d in time", out, n)
		}
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		failed := kgo.AbortingFirstErrPromise(s.Client())
		got := fetches.Records()
		for _, rec := range got {
			s.Produce(ctx, &kgo.Record{Topic: "ctp-out", Value: append([]byte("did "), rec.Value...)}, failed.Promise())
		}
		if len(got) > 0 {
			ends++
			ctpFault(t, r, faults, ends)
		}
		committed, err := s.End(ctx, failed.Err() == nil)
		if err != nil && !abortable(err) {
			t.Fatalf("end %d: %v", ends, err)
		}
		if committed {
			out += len(got)
		}
	}
	if ends < 4 {
		t.Fatalf("%d transactions: not every fault came", ends)
	}
	w := r.Login(t, rig.Acme)
	var values []string
	for partition := range int32(4) {
		for _, v := range wireValues(t, wireRead(w, "ctp-out", partition, 0).RecordBatches) {
			values = append(values, v[len(v)-3:])
		}
	}
	slices.Sort(values)
	for i := range n {
		if i >= len(values) || values[i] != fmt.Sprintf("%03d", i) {
			t.Fatalf("%d records, wrong from %d on: %q", len(values), i, values[i:min(i+3, len(values))])
		}
	}
	if len(values) != n {
		t.Errorf("%d records, want %d", len(values), n)
	}
}

func ctpSession(t *testing.T, r *rig.Rig) *kgo.GroupTransactSession {
	t.Helper()
	s, err := kgo.NewGroupTransactSession(append(r.KafkaOpts(rig.Acme),
		kgo.TransactionalID("ctp"), kgo.ConsumerGroup("ctp"), kgo.ConsumeTopics("ctp-in"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ctpFault does what belongs to a transaction, by its number.
func ctpFault(t *testing.T, r *rig.Rig, faults *inject.Proxy, n int) {
	t.Helper()
	switch n {
	case 1:
		if err := faults.Add(inject.Rule{Kind: inject.CutAfter, Route: "/api/v1/transaction", Count: 1}); err != nil {
			t.Fatal(err)
		}
	case 2:
		r.StopGateway(t)
		r.StartGateway(t)
	case 3:
		r.StopCell(t)
		r.StartCell(t)
	}
}

// abortable are ends after which a session goes on.
func abortable(err error) bool {
	for _, e := range []error{kerr.OperationNotAttempted, kerr.TransactionAbortable, kerr.UnknownProducerID, kerr.IllegalGeneration, kerr.UnknownMemberID} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
