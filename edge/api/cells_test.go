package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// deadCell answers nothing.
type deadCell struct{}

var errDeadCell = errors.New("no cell")

func (deadCell) ListQueues(context.Context, tenancy.Scope) ([]proxyclient.Queue, error) {
	return nil, errDeadCell
}

func (deadCell) Configure(context.Context, tenancy.Scope, string, map[string]any) (string, error) {
	return "", errDeadCell
}

func (deadCell) Transaction(context.Context, tenancy.Scope, []proxyclient.Items, []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	return nil, errDeadCell
}

func (deadCell) TxnOps(tenancy.Scope) int { return 64 }

func (deadCell) DeleteQueue(context.Context, tenancy.Scope, string) (bool, error) {
	return false, errDeadCell
}

func (deadCell) Sizes(context.Context, tenancy.Scope, string) ([]proxyclient.PartitionSize, error) {
	return nil, errDeadCell
}

func (deadCell) KV(context.Context, tenancy.Scope, []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	return nil, errDeadCell
}

func (deadCell) Push(_ context.Context, _ tenancy.Scope, _ *proxyclient.PushBody, _, _ proxyclient.Mark, dst []proxyclient.PushResult) ([]proxyclient.PushResult, error) {
	return dst, errDeadCell
}

func (deadCell) Fetch(_ context.Context, _ tenancy.Scope, _ []proxyclient.FetchEntry, _ time.Duration, _ int,
	_ func(int, *batch.Record) error, dst []proxyclient.FetchResult,
) ([]proxyclient.FetchResult, error) {
	return dst, errDeadCell
}

func (deadCell) OffsetsForTimes(context.Context, tenancy.Scope, []proxyclient.TimeQuery) ([]proxyclient.TimeAnswer, error) {
	return nil, errDeadCell
}

// listingCell has queues.
type listingCell struct {
	deadCell
	queues []proxyclient.Queue
}

func (l listingCell) ListQueues(context.Context, tenancy.Scope) ([]proxyclient.Queue, error) {
	return l.queues, nil
}

func (listingCell) KV(_ context.Context, _ tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	return make([]proxyclient.KVResult, len(ops)), nil
}

// verified answers every claim.
type verified struct{}

func (verified) ListQueuesAs(context.Context, tenancy.Claim) (int, error) { return 0, nil }

func (verified) Identify(context.Context, tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{}, nil
}

func someScope(t testing.TB, key string) tenancy.Scope {
	t.Helper()
	p, err := tenancy.NewVerifier[int](verified{}, tenancy.VerifierConfig{}).Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(key), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}
