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
