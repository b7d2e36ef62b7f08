package offsets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// versioned gives a fake cell versions and conditions.
type versioned struct {
	*fakeCell
	mu       sync.Mutex
	next     int64
	versions map[string]int64
	lose     bool   // the next call's answer
	ahead    func() // of each call; nil: nothing
}

func (v *versioned) KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ahead != nil {
		v.ahead()
	}
	c := cluster(s.Bearer().Reveal()) + "/"
	for i, op := range ops {
		if op.Required && op.Expect != proxyclient.ExpectVersion(v.versions[c+op.Key]) {
			v.set(func(f *fakeCell) { f.calls = append(f.calls, call{s.Bearer().Reveal(), ops}) })
			return nil, &proxyclient.Error{
				Kind: proxyclient.KindPrecondition, FailedIndex: i, Reason: "version",
				Version: v.versions[c+op.Key], Value: []byte(v.rows[cluster(s.Bearer().Reveal())][op.Key]),
			}
		}
	}
	res, err := v.fakeCell.KV(ctx, s, ops)
	if err != nil {
		return nil, err
	}
	for i, op := range ops {
		switch op.Op {
		case proxyclient.KVPut:
			v.next++
			v.versions[c+op.Key], res[i].Version = v.next, v.next
		case proxyclient.KVDelete:
			delete(v.versions, c+op.Key)
		}
	}
	if v.lose {
		v.lose = false
		return nil, errDown
	}
	return res, nil
}

// gateways are two nodes on one cell; each has its own opinion of who owns what.
type gateways struct {
	*rig
	cell     *versioned
	store    [2]*offsets.Store
	owns     [2]atomic.Bool
	confirms [2]atomic.Int64
}

func newGateways(t *testing.T) *gateways {
	g := &gateways{rig: newRig(t)}
	g.cell = &versioned{fakeCell: g.rig.cell, versions: map[string]int64{}}
	for i := range g.store {
		g.store[i] = offsets.New(offsets.Config{Cell: g.cell, Fence: &offsets.Fence{
			Node: int32(i + 1), Incarnation: int64(100 + i),
			Confirm: func(ctx context.Context, group string) (bool, error) {
				g.confirms[i].Add(1)
				return g.owns[i].Load(), ctx.Err()
			},
		}})
	}
	return g
}

func (g *gateways) commit(node int, offset int64, places ...int32) error {
	_, err := g.store[node-1].Commit(g.t.Context(), g.as("acme.1"), "g", 3, nil, entries(offset, places...))
	return err
}

func (g *gateways) at(want int64) {
	g.t.Helper()
	if got := g.cell.offset(g.t, "acme", offsets.Key("g", "t", 0)); got != want {
		g.t.Errorf("the offset is %d, want %d", got, want)
	}
}

// The group has moved from node 1 to node 2, which has committed 50; node 1 does
// not know yet and is told to write 16 (kafka-surface §13.4, 42).
func TestAnOffsetNeverMovesBackAfterItsGroupMoved(t *testing.T) {
	g := newGateways(t)
	g.owns[0].Store(true)
	if err := g.commit(1, 10, 0); err != nil {
		t.Fatal(err)
	}
	g.owns[1].Store(true)
	if err := g.commit(2, 50, 0); err != nil { // takes the fence over
		t.Fatal(err)
	}
	g.at(50)
	g.owns[0].Store(false) // which it learns when it looks
	if err := g.commit(1, 16, 0); !errors.Is(err, offsets.ErrMoved) {
		t.Errorf("a commit at the node that lost the group: %v, want ErrMoved", err)
	}
	g.at(50)
	if err := g.commit(2, 60, 0); err != nil {
		t.Errorf("the owner's next commit: %v", err)
	}
	g.at(60)
	if n := g.store[0].FencesLost(); n != 1 || g.store[1].FencesLost() != 1 {
		t.Errorf("fences lost: %d and %d, want 1 each", n, g.store[1].FencesLost())
	}
	// The group comes back: node 1 is the owner again, and takes over.
	g.owns[0].Store(true)
	if err := g.commit(1, 70, 0); err != nil {
		t.Errorf("after the group came back: %v", err)
	}
	g.at(70)
}

func TestFenceRow(t *testing.T) {
	g := newGateways(t)
	g.owns[0].Store(true)
	for i := range int64(3) {
		if err := g.commit(1, i, 0); err != nil {
			t.Fatal(err)
		}
	}
	var row struct {
		Node                        int32
		Incarnation, Generation, TS int64
	}
	if err := json.Unmarshal([]byte(g.cell.rows["acme"]["qk:fence:g"]), &row); err != nil || row.Node != 1 || row.Incarnation != 100 || row.Generation != 3 || row.TS < 1 {
		t.Errorf("%+v, %v", row, err)
	}
	if g.confirms[0].Load() != 0 {
		t.Error("the registry was asked although nothing was lost")
	}
	first := g.cell.calls[0].ops
	if first[0].Key != "qk:fence:g" || !first[0].Required || len(first) != 2 {
		t.Errorf("a commit is %+v", first)
	}
}

// The answer to a commit is lost, and the commit was done: the fence is our own.
func TestOwnFenceIsNotLost(t *testing.T) {
	g := newGateways(t)
	g.cell.lose = true
	if err := g.commit(1, 1, 0); !errors.Is(err, errDown) {
		t.Fatalf("a lost answer: %v", err)
	}
	if err := g.commit(1, 2, 0); err != nil {
		t.Errorf("the retry: %v", err)
	}
	g.at(2)
	if g.store[0].FencesLost() != 0 || g.confirms[0].Load() != 0 {
		t.Error("one's own write counts as another's")
	}
}

// A wide commit is 255 offsets a call, and each call has the fence: when the
// group is taken in between, the rest is not written.
func TestWideCommitIsFencedCallByCall(t *testing.T) {
	g := newGateways(t)
	g.owns[0].Store(true)
	n, err := g.store[0].Commit(t.Context(), g.as("acme.1"), "g", 1, nil, entries(5, partitions(600)...))
	if err != nil || n != 600 {
		t.Fatalf("%d, %v", n, err)
	}
	var sizes []int
	for _, c := range g.cell.calls {
		if c.ops[0].Key == "qk:fence:g" {
			sizes = append(sizes, len(c.ops))
		}
	}
	if fmt.Sprint(sizes) != "[256 256 91]" {
		t.Errorf("calls of %v operations, want 256, 256, 91", sizes)
	}
	calls := 0
	g.cell.ahead = func() {
		if calls++; calls == 2 { // somebody takes the group over before the second call
			g.cell.versions["acme/qk:fence:g"]++
			g.cell.rows["acme"]["qk:fence:g"] = `{"node":2,"incarnation":101}`
			g.owns[0].Store(false)
		}
	}
	n, err = g.store[0].Commit(t.Context(), g.as("acme.1"), "g", 1, nil, entries(6, partitions(600)...))
	if !errors.Is(err, offsets.ErrMoved) || n != 255 {
		t.Errorf("%d are written, %v", n, err)
	}
}

// Both believe that the group is theirs and write all the time: nobody loops.
func TestContendedFence(t *testing.T) {
	g := newGateways(t)
	g.owns[0].Store(true)
	if err := g.commit(1, 1, 0); err != nil {
		t.Fatal(err)
	}
	g.cell.versions["acme/qk:fence:g"] = 1000
	stolen := &stealing{versioned: g.cell}
	st := offsets.New(offsets.Config{Cell: stolen, Fence: &offsets.Fence{Node: 3, Incarnation: 9, Confirm: func(context.Context, string) (bool, error) { return true, nil }}})
	if _, err := st.Commit(t.Context(), g.as("acme.1"), "g", 1, nil, entries(9, 0)); !errors.Is(err, offsets.ErrContended) {
		t.Errorf("%v, want ErrContended", err)
	}
	g.at(1)
	st = offsets.New(offsets.Config{Cell: stolen, Fence: &offsets.Fence{Node: 3, Incarnation: 9, Confirm: func(context.Context, string) (bool, error) { return false, errDown }}})
	if _, err := st.Commit(t.Context(), g.as("acme.1"), "g", 1, nil, entries(9, 0)); !errors.Is(err, errDown) {
		t.Errorf("the registry cannot be asked: %v", err)
	}
}

// stealing has somebody write the fence before each call.
type stealing struct{ *versioned }

func (s *stealing) KV(ctx context.Context, scope tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	s.mu.Lock()
	s.versions["acme/qk:fence:g"]++
	s.mu.Unlock()
	return s.versioned.KV(ctx, scope, ops)
}

// Deletions are fenced as well, and the fence goes with its group.
func TestFencedDeletes(t *testing.T) {
	g := newGateways(t)
	g.owns[0].Store(true)
	if err := g.commit(1, 5, 0, 1); err != nil {
		t.Fatal(err)
	}
	s := g.as("acme.1")
	if err := g.store[1].Delete(t.Context(), s, "g", []offsets.Place{{Topic: "t", Partition: 0}}); !errors.Is(err, offsets.ErrMoved) {
		t.Errorf("OffsetDelete at another node: %v", err)
	}
	may := func() error { return nil }
	if _, err := g.store[1].DeleteGroup(t.Context(), s, "g", may); !errors.Is(err, offsets.ErrMoved) {
		t.Errorf("DeleteGroups at another node: %v", err)
	}
	g.at(5)
	if err := g.store[0].Delete(t.Context(), s, "g", []offsets.Place{{Topic: "t", Partition: 0}}); err != nil {
		t.Fatal(err)
	}
	g.at(-1)
	if found, err := g.store[0].DeleteGroup(t.Context(), s, "g", may); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if rows := g.cell.rows["acme"]; len(rows) != 0 {
		t.Errorf("rows are left: %v", rows)
	}
	if err := g.commit(1, 7, 0); err != nil {
		t.Errorf("the group made anew: %v", err)
	}
	g.at(7)
}
