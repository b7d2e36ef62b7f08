package offsets

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Fence keeps the writes of several gateways apart (kafka-surface §11): each
// call that writes a group's offsets carries a write of the group's fence row,
// on the condition that nobody else has written that since.
type Fence struct {
	Node        int32
	Incarnation int64
	// Confirm asks who is there, and then whether this node coordinates a group; the
	// error is that it could not be told in time.
	Confirm func(ctx context.Context, group string) (bool, error)
}

var (
	// ErrMoved is a write of a group that another gateway coordinates.
	ErrMoved = errors.New("the group is coordinated by another gateway")
	// ErrContended is a write of a group that another gateway has just written to,
	// although it is this one's. Nothing is written; it may be asked again.
	ErrContended = errors.New("another gateway has written to the group")
)

const fencePrefix = "qk:fence:"

// maxFences bounds the groups of which the fence's version is remembered. One
// that is not is learned by a write that loses.
const maxFences = 10_000

// fenceKey names the row; it is no longer than that of the index.
func fenceKey(group string) string { return string(appendEscaped([]byte(fencePrefix), group)) }

// fenceValue is the row (cell-http §4.8): ts is in milliseconds since 1970.
type fenceValue struct {
	Node        int32 `json:"node"`
	Incarnation int64 `json:"incarnation"`
}

func (st *Store) fencePut(group string, generation int32) proxyclient.KVOp {
	b := strconv.AppendInt([]byte(`{"node":`), int64(st.cfg.Fence.Node), 10)
	b = strconv.AppendInt(append(b, `,"incarnation":`...), st.cfg.Fence.Incarnation, 10)
	b = strconv.AppendInt(append(b, `,"generation":`...), int64(generation), 10)
	b = strconv.AppendInt(append(b, `,"ts":`...), st.cfg.Clock().UnixMilli(), 10)
	return proxyclient.KVOp{Op: proxyclient.KVPut, Key: fenceKey(group), Value: append(b, '}'), Required: true}
}

// fenced makes a call that writes offsets of a group. Where there is a fence its
// row is the first operation, whose result is not among the returned ones.
func (st *Store) fenced(ctx context.Context, s tenancy.Scope, group string, generation int32, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	if st.cfg.Fence == nil {
		return st.ask(ctx, s, ops)
	}
	return st.behind(ctx, s, group, st.fencePut(group, generation), ops)
}

// behind makes a call behind a write of the fence. One that is lost is tried once
// more, where it is this process that won before (its answer was lost), or where
// this node coordinates the group still once it has looked: a node that does not
// know yet that the group has moved must not write over its new owner.
func (st *Store) behind(ctx context.Context, s tenancy.Scope, group string, fence proxyclient.KVOp, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	k := tenancy.KeyOf(s, group)
	expect, _ := st.fences.Get(k)
	for again := false; ; again = true {
		fence.Expect = proxyclient.ExpectVersion(expect)
		res, err := st.ask(ctx, s, append([]proxyclient.KVOp{fence}, ops...))
		if err == nil {
			if fence.Op == proxyclient.KVPut {
				st.fences.Set(k, res[0].Version)
			} else {
				st.fences.Delete(k)
			}
			return res[1:], nil
		}
		winner, version, lost := st.lostFence(err)
		if !lost {
			return nil, err
		}
		own := winner == fenceValue{st.cfg.Fence.Node, st.cfg.Fence.Incarnation}
		if !own {
			st.fencesLost.Add(1)
		}
		if !own || again {
			if err := st.confirm(ctx, group); err != nil {
				return nil, err
			}
		}
		if again {
			return nil, ErrContended
		}
		expect = version
		st.fences.Set(k, version)
	}
}

// confirm is ErrMoved where another node coordinates the group.
func (st *Store) confirm(ctx context.Context, group string) error {
	switch owner, err := st.cfg.Fence.Confirm(ctx, group); {
	case err != nil:
		return err
	case !owner:
		return ErrMoved
	}
	return nil
}

// lostFence reads the verdict over a fence that was lost: who has it, and at
// which version (0: there is none).
func (st *Store) lostFence(err error) (winner fenceValue, version int64, lost bool) {
	e, ok := proxyclient.AsError(err)
	if !ok || e.Kind != proxyclient.KindPrecondition {
		return winner, 0, false
	}
	_ = json.Unmarshal(e.Value, &winner) // an unreadable one is somebody else's
	return winner, e.Version, true
}

// FencesLost is how often another gateway had written to a group before this one
// did.
func (st *Store) FencesLost() int64 { return st.fencesLost.Load() }

// writes is how many writes of offsets one call takes.
func (st *Store) writes() int {
	if st.cfg.Fence != nil {
		return maxWrites - 1
	}
	return maxWrites
}
