package offsets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = &proxyclient.Error{Kind: proxyclient.KindTransport, Err: errors.New("connection refused")}

func status(code int) error { return &proxyclient.Error{Kind: proxyclient.KindStatus, Status: code} }

// call is one call a cell has had.
type call struct {
	bearer string
	ops    []proxyclient.KVOp
}

// keys are the keys a call writes, in its order.
func (c call) keys() []string {
	var keys []string
	for _, op := range c.ops {
		if op.Op == proxyclient.KVPut || op.Op == proxyclient.KVDelete {
			keys = append(keys, op.Key)
		}
	}
	return keys
}

// fakeCell keeps rows by tenant. before may hold a call up and fail it before
// anything is done, after when it is done.
type fakeCell struct {
	mu     sync.Mutex
	rows   map[string]map[string]string // by cluster and key
	calls  []call
	before func(c call) error
	after  func(c call, res []proxyclient.KVResult) error
	answer func(c call, res []proxyclient.KVResult) []proxyclient.KVResult
}

// cluster is the bearer's part before the dot.
func cluster(bearer string) string {
	name, _, _ := strings.Cut(bearer, ".")
	return name
}

func (f *fakeCell) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) {
	return struct{}{}, nil
}

func (f *fakeCell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: cluster(c.Bearer().Reveal())}, nil
}

func (f *fakeCell) KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	c := call{s.Bearer().Reveal(), slices.Clone(ops)}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	before := f.before
	f.mu.Unlock()
	if before != nil {
		if err := before(c); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	res, err := f.do(c)
	if err == nil && f.after != nil {
		err = f.after(c, res)
	}
	if err != nil {
		return nil, err
	}
	if f.answer != nil {
		res = f.answer(c, res)
	}
	return res, nil
}

// do does what a cell does: writes first, reads see them, a key is written once.
func (f *fakeCell) do(c call) ([]proxyclient.KVResult, error) {
	keys := c.keys()
	if len(c.ops) > 256 || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != len(keys) {
		return nil, status(400)
	}
	rows := f.rows[cluster(c.bearer)]
	if rows == nil {
		rows = map[string]string{}
		if f.rows == nil {
			f.rows = map[string]map[string]string{}
		}
		f.rows[cluster(c.bearer)] = rows
	}
	res := make([]proxyclient.KVResult, len(c.ops))
	for i, op := range c.ops {
		_, had := rows[op.Key]
		switch op.Op {
		case proxyclient.KVPut:
			rows[op.Key] = string(op.Value)
			res[i].Applied = true
		case proxyclient.KVDelete:
			delete(rows, op.Key)
			res[i].Applied = had
		}
	}
	for i, op := range c.ops {
		switch op.Op {
		case proxyclient.KVGetMany:
			if len(op.Keys) > 1024 {
				return nil, status(400)
			}
			for _, key := range op.Keys {
				if v, ok := rows[key]; ok {
					res[i].Rows = append(res[i].Rows, proxyclient.KVRow{Key: key, Value: []byte(v)})
				} else {
					res[i].Missing = append(res[i].Missing, key)
				}
			}
		case proxyclient.KVGetPrefix:
			for _, key := range slices.Sorted(maps.Keys(rows)) {
				if !strings.HasPrefix(key, op.Prefix) || key <= op.After {
					continue
				}
				if len(res[i].Rows) == op.Limit {
					res[i].Truncated, res[i].NextAfter = true, res[i].Rows[op.Limit-1].Key
					break
				}
				res[i].Rows = append(res[i].Rows, proxyclient.KVRow{Key: key, Value: []byte(rows[key])})
			}
		}
	}
	return res, nil
}

func (f *fakeCell) set(fn func(f *fakeCell)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f)
}

// commits are the calls that wrote offsets.
func (f *fakeCell) commits() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []call
	for _, c := range f.calls {
		if keys := c.keys(); len(keys) > 0 && strings.HasPrefix(keys[0], "qk:group:") && c.ops[0].Op == proxyclient.KVPut {
			out = append(out, c)
		}
	}
	return out
}

func (f *fakeCell) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// offset is what is stored under a key; −1: nothing.
func (f *fakeCell) offset(t *testing.T, tenant, key string) int64 {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.rows[tenant][key]
	if !ok {
		return -1
	}
	var v struct{ Offset int64 }
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v.Offset
}

// rig is a store on a fake cell.
type rig struct {
	*offsets.Store
	t      *testing.T
	cell   *fakeCell
	verify *tenancy.Verifier[struct{}]
}

func newRig(t *testing.T, opts ...func(*offsets.Config)) *rig {
	t.Helper()
	cell := &fakeCell{}
	cfg := offsets.Config{Cell: cell}
	for _, opt := range opts {
		opt(&cfg)
	}
	return &rig{
		Store: offsets.New(cfg), t: t, cell: cell,
		verify: tenancy.NewVerifier[struct{}](cell, tenancy.VerifierConfig{SuccessLife: time.Hour}),
	}
}

// as is the Scope of a bearer, "<cluster>.<key>".
func (r *rig) as(bearer string) tenancy.Scope {
	r.t.Helper()
	p, err := r.verify.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(bearer), ""))
	if err != nil {
		r.t.Fatal(err)
	}
	return p.Scope
}

// entries are offsets of topic t by partition: at, at+1, …
func entries(at int64, partitions ...int32) []offsets.Entry {
	out := make([]offsets.Entry, len(partitions))
	for i, p := range partitions {
		out[i] = offsets.Entry{Place: offsets.Place{Topic: "t", Partition: p}, Offset: at + int64(i)}
	}
	return out
}

// outcome is how a commit went.
type outcome struct {
	written int
	err     error
}

// commit commits in a goroutine of its own.
func (r *rig) commit(ctx context.Context, bearer, group string, e []offsets.Entry) <-chan outcome {
	r.t.Helper()
	s, out := r.as(bearer), make(chan outcome, 1)
	go func() {
		n, err := r.Commit(ctx, s, group, 1, nil, e)
		out <- outcome{n, err}
	}()
	return out
}

// mustCommit commits and waits.
func (r *rig) mustCommit(bearer, group string, e []offsets.Entry) {
	r.t.Helper()
	if got := <-r.commit(context.Background(), bearer, group, e); got.err != nil || got.written != len(e) {
		r.t.Fatalf("commit: %d of %d, %v", got.written, len(e), got.err)
	}
}

// gate holds calls up until they are let go, one by one.
type gate struct {
	reached chan call
	letGo   chan error
}

func newGate() *gate { return &gate{reached: make(chan call, 100), letGo: make(chan error)} }

func (g *gate) hold(c call) error {
	g.reached <- c
	return <-g.letGo
}

func partitions(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func key(group string, partition int) string {
	return fmt.Sprintf("qk:group:%s:t:%d", group, partition)
}
