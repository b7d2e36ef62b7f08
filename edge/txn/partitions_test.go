package txn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// A request may name one partition as often as a frame has room for: what it
// costs is no more than the sum of what it names and what is there.
func TestPartitionsNamedAgain(t *testing.T) {
	const most, again, patience = 10_000, 200_000, 5 * time.Second
	c := New(Config{
		Store: &memoryStore{rng: rand.New(rand.NewPCG(1, 1)), rows: map[string]memoryRow{}}, Limits: Limits{Partitions: most},
		Open: tenancy.NewCeiling(4, 0), Staged: tenancy.NewCeiling(1<<30, 0),
	})
	me := Caller{Scope: scopeOf(t, "acme"), Session: NewSession(), ID: "id", Producer: Nobody()}
	me.Producer = c.Init(t.Context(), me, time.Minute).Producer
	var named []TopicPartition
	for i := range most {
		named = append(named, TopicPartition{Topic: fmt.Sprint("t", i%7), Index: int32(i)})
	}
	for range again {
		named = append(named, named[most-1])
	}
	began := time.Now()
	for _, request := range [][]TopicPartition{named, named[most-100:]} {
		if r := c.AddPartitions(t.Context(), me, request); r.Outcome != OK || r.Fit != len(request) {
			t.Fatalf("outcome %d, %d of %d fit", r.Outcome, r.Fit, len(request))
		}
	}
	if r := c.AddPartitions(t.Context(), me, []TopicPartition{named[0], {Topic: "new"}}); r.Outcome != Invalid || r.Fit != 1 {
		t.Errorf("one more than there may be: outcome %d, %d fit", r.Outcome, r.Fit)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
}

// Every request of an id looks which groups have offsets staged, while others
// wait: for each of many groups through all of many offsets would be long.
func TestManyGroupsAndOffsets(t *testing.T) {
	const many, ops, requests, patience = 8000, 1 << 16, 50, 5 * time.Second
	c := New(Config{
		Store:  &memoryStore{rng: rand.New(rand.NewPCG(1, 1)), rows: map[string]memoryRow{}},
		Limits: Limits{Body: 1 << 30}, Open: tenancy.NewCeiling(4, 0), Staged: tenancy.NewCeiling(1<<30, 0),
	})
	me := Caller{Scope: scopeOf(t, "acme"), Session: NewSession(), ID: "id", Producer: Nobody()}
	me.Producer = c.Init(t.Context(), me, time.Minute).Producer
	want := func(r Reply) {
		t.Helper()
		if r.Outcome != OK {
			t.Fatalf("outcome %d", r.Outcome)
		}
	}
	for i := range many {
		want(c.AddGroup(t.Context(), me, Group{ID: fmt.Sprint("g", i)}, ops))
	}
	last := fmt.Sprint("g", many-1)
	var offsets []Offset
	for i := range many {
		offsets = append(offsets, Offset{Group: last, Topic: "in", Partition: int32(i)})
	}
	want(c.StageOffsets(t.Context(), me, Group{ID: last}, offsets, ops))
	began := time.Now()
	for range requests {
		want(c.AddGroup(t.Context(), me, Group{ID: last}, ops))
	}
	if took := time.Since(began); took > patience {
		t.Errorf("%d requests took %v", requests, took)
	}
	for group, n := range map[string]int{last: many, "g0": 0} {
		if got := len(c.Pending(me.Scope, group)); got != n {
			t.Errorf("%d offsets of %s are pending, want %d", got, group, n)
		}
	}
}

// A partition that one request names twice is one offset, the later one, and what
// a hundred thousand of them cost is no more than their sum.
func TestOffsetsNamedAgain(t *testing.T) {
	const many, ops, patience = 100_000, 100_002, 5 * time.Second
	c := New(Config{
		Store:  &memoryStore{rng: rand.New(rand.NewPCG(1, 1)), rows: map[string]memoryRow{}},
		Limits: Limits{Body: 1 << 30}, Open: tenancy.NewCeiling(4, 0), Staged: tenancy.NewCeiling(1<<30, 0),
	})
	me := Caller{Scope: scopeOf(t, "acme"), Session: NewSession(), ID: "id", Producer: Nobody()}
	me.Producer = c.Init(t.Context(), me, time.Minute).Producer
	g := Group{ID: "g"}
	if r := c.AddGroup(t.Context(), me, g, ops); r.Outcome != OK {
		t.Fatalf("outcome %d", r.Outcome)
	}
	var named []Offset
	for i := range 2 * many {
		named = append(named, Offset{Group: g.ID, Topic: "in", Partition: int32(i % many), Row: Put{Value: []byte{byte(i / many)}}})
	}
	began := time.Now()
	if r := c.StageOffsets(t.Context(), me, g, named, ops); r.Outcome != OK || r.Fit != len(named) {
		t.Fatalf("outcome %d, %d fit", r.Outcome, r.Fit)
	}
	if r := c.StageOffsets(t.Context(), me, g, named[many:], ops); r.Outcome != OK {
		t.Fatalf("again: outcome %d", r.Outcome)
	}
	if r := c.StageOffsets(t.Context(), me, g, []Offset{{Group: g.ID, Topic: "in", Partition: many}}, ops); r.Outcome != TooMany {
		t.Errorf("one more than the commit takes: outcome %d", r.Outcome)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
	if got := len(c.Pending(me.Scope, g.ID)); got != many {
		t.Errorf("%d offsets are pending, want %d", got, many)
	}
}
