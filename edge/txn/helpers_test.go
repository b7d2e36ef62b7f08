package txn_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cell struct{}

func (cell) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) { return struct{}{}, nil }

func (cell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()}, nil
}

func scope(t testing.TB, cluster string) tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[struct{}](cell{}, tenancy.VerifierConfig{})
	p, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(cluster), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}

func stream(s tenancy.Scope, partition int32) tenancy.Key[txn.Stream] {
	return tenancy.KeyOf(s, txn.Stream{ProducerID: 7, Topic: "orders", Partition: partition})
}

// room is a Room of so many streams.
type room struct{ left int }

func (r *room) Take() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	return true
}

func (r *room) Give(n int) { r.left += n }

func newOrder(t testing.TB) *txn.Order {
	t.Helper()
	return txn.NewOrder(&room{left: 1 << 20})
}

func batch(first, last int32) txn.Batch { return txn.Batch{First: first, Last: last} }

func inEpoch(epoch int16, first, last int32) txn.Batch {
	return txn.Batch{Epoch: epoch, First: first, Last: last}
}

// one drives the order of one stream.
type one struct {
	t   *testing.T
	o   *txn.Order
	key tenancy.Key[txn.Stream]

	window bool // the log knows resends
}

func newOne(t *testing.T) *one { return &one{t: t, o: newOrder(t), key: stream(scope(t, "acme"), 0)} }

// inWindow is one whose log knows resends.
func inWindow(t *testing.T) *one {
	s := newOne(t)
	s.window = true
	return s
}

func (s *one) admit(b txn.Batch) txn.Verdict { return s.o.Admit(s.key, b, s.window) }

// push admits a batch that must be pushed.
func (s *one) push(b txn.Batch) txn.Ticket {
	s.t.Helper()
	v := s.admit(b)
	if v.Decision != txn.Push {
		s.t.Fatalf("batch %+v: decision %d, code %d; want a push", b, v.Decision, v.Code)
	}
	return v.Ticket
}

// store pushes a batch and stores it.
func (s *one) store(b txn.Batch, offset int64) {
	s.t.Helper()
	t := s.push(b)
	s.checked(t, 0)
	s.o.Stored(t, offset)
}

// fail pushes a batch, which fails.
func (s *one) fail(b txn.Batch, code int16) {
	s.t.Helper()
	s.o.Failed(s.push(b), code)
}

func (s *one) refused(b txn.Batch, code int16) {
	s.t.Helper()
	if v := s.admit(b); v.Decision != txn.Refuse || v.Code != code {
		s.t.Fatalf("batch %+v: decision %d, code %d; want the refusal %d", b, v.Decision, v.Code, code)
	}
}

func (s *one) duplicate(b txn.Batch, offset int64) {
	s.t.Helper()
	if v := s.admit(b); v.Decision != txn.Duplicate || v.Offset != offset {
		s.t.Fatalf("batch %+v: decision %d, code %d, offset %d; want the duplicate at %d", b, v.Decision, v.Code, v.Offset, offset)
	}
}

func (s *one) checked(t txn.Ticket, code int16) {
	s.t.Helper()
	if got := s.o.Recheck(t); got != code {
		s.t.Fatalf("recheck: %d, want %d", got, code)
	}
}
