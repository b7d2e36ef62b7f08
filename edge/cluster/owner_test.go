package cluster

import (
	"fmt"
	"testing"
	"time"
)

// The vectors of the contract (kafka-surface §11): nodes that compute anything
// else would not agree with those of the reference.
func TestVectors(t *testing.T) {
	partition := func(topic string, n int64) uint64 { return decimal(mix(seed(domainPartition, topic), 0), n) }
	for _, v := range []struct {
		name string
		got  uint64
		want uint64
	}{
		{"group orders-consumer, node 1", score(seed(domainGroup, "orders-consumer"), 1), 0x3437e6ea20050dc2},
		{"group orders-consumer, node 2", score(seed(domainGroup, "orders-consumer"), 2), 0xff65307c19dd155e},
		{"group orders-consumer, node 3", score(seed(domainGroup, "orders-consumer"), 3), 0x8f3da208494794ac},
		{"orders/0, node 1", score(partition("orders", 0), 1), 0x0b1a301ad5704724},
		{"orders/0, node 2", score(partition("orders", 0), 2), 0x563e299a5ff86bb6},
		{"orders/1, node 1", score(partition("orders", 1), 1), 0x25b38eb2f1c21846},
		{"orders/7, node 3", score(partition("orders", 7), 3), 0x86b98cd37f131fc7},
		{"finalise 0", finalise(0), 0},
		{"finalise 0x9e37…", finalise(0x9e3779b97f4a7c15), 0xe220a8397b1dcdaf},
	} {
		if v.got != v.want {
			t.Errorf("%s: %016x, want %016x", v.name, v.got, v.want)
		}
	}
}

func nodes(ids ...int32) *View {
	var members []Member
	for _, id := range ids {
		members = append(members, Member{ID: id, Host: fmt.Sprint("n", id), Port: 9092})
	}
	return viewOf("c", ids[0], members)
}

func TestOwners(t *testing.T) {
	all := nodes(3, 1, 2)
	if o := all.Owner("orders-consumer"); o.ID != 2 || o.Host != "n2" {
		t.Errorf("the owner is %+v, want node 2", o)
	}
	if all.Controller() != 1 || all.Members[2].ID != 3 {
		t.Errorf("members %+v, controller %d", all.Members, all.Controller())
	}
	held := map[int32]int{}
	for i := range 3000 {
		g := fmt.Sprint("group-", i)
		before := all.Owner(g).ID
		held[before]++
		// Without a node its own groups move, and no others.
		if after := nodes(1, 3).Owner(g).ID; before != 2 && after != before {
			t.Fatalf("%s moved from %d to %d when 2 went", g, before, after)
		}
	}
	leads := map[int32]int{}
	l := all.Leaders("orders")
	for p := range int32(3000) {
		leader, replicas := l.Of(p)
		if len(replicas) != 1 || cap(replicas) != 1 || replicas[0] != leader {
			t.Fatalf("partition %d: leader %d, replicas %v", p, leader, replicas)
		}
		leads[leader]++
	}
	for id := range int32(3) {
		if n := held[id+1]; n < 850 || n > 1150 {
			t.Errorf("node %d has %d of 3000 groups", id+1, n)
		}
		if n := leads[id+1]; n < 850 || n > 1150 {
			t.Errorf("node %d leads %d of 3000 partitions", id+1, n)
		}
	}
}

func TestAlone(t *testing.T) {
	v := Alone("queen", Member{ID: 0, Host: "h", Port: 1})
	leader, replicas := v.Leaders("t").Of(5)
	if !v.Owns("g") || !v.Coordinates(time.Time{}) || leader != 0 || len(replicas) != 1 || v.Controller() != 0 {
		t.Errorf("%+v, leader %d", v, leader)
	}
	if n := testing.AllocsPerRun(100, func() { v.Leaders("t").Of(3) }); n != 0 {
		t.Errorf("a leader takes %v allocations", n)
	}
}
