package e2e

import (
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
)

// groupsOf are n groups that a node coordinates once all of them are there.
func groupsOf(t *testing.T, node int32, n int, nodes ...*rig.Rig) (groups []string) {
	t.Helper()
	for i := 0; len(groups) < n; i++ {
		group := fmt.Sprintf("moves-%d", i)
		if owner, code, _ := coordinatorOf(t, nodes[0], 0, group); code == 0 && owner == node {
			groups = append(groups, group)
		}
		if i == 1000 {
			t.Fatalf("node %d coordinates %d of a thousand groups", node, len(groups))
		}
	}
	return groups
}

// Members who wait in JoinGroup or SyncGroup while their group moves are sent to
// its new coordinator by 16, as Apache Kafka does: sarama fails its application
// at a 15 there.
func TestWaitingMembersOfAGroupThatMoves(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay, steady)
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	makeTopic(t, r, rig.Acme, "t")
	groups := groupsOf(t, 2, 2, r, two.Rig())
	two.Stop(t)
	for _, g := range groups {
		if owner := settled(t, g, r); owner != 1 {
			t.Fatalf("node %d coordinates %s, want 1", owner, g)
		}
	}
	member := func(group string) *groupMember { return newMember(t, r.Login(t, rig.Acme), group, true) }
	// In the first group a newcomer waits for a member that does not join again.
	stays, newcomer := member(groups[0]), member(groups[0])
	stays.join("t")
	joined := newcomer.sendJoin("t")
	// In the second one a member waits for a leader that does not assign.
	leader, follower := member(groups[1]), member(groups[1])
	leader.join("t")
	both := follower.sendJoin("t")
	rig.Eventually(t, "members who wait", func() bool { return r.Gateway.Groups().Members == 4 })
	leader.join("t")
	if a := both(); a.ErrorCode != 0 {
		t.Fatalf("JoinGroup: code %d", a.ErrorCode)
	}
	synced := follower.sendSync()

	two.Start(t)
	if a := joined(); a.ErrorCode != 16 || a.Generation != -1 {
		t.Errorf("a JoinGroup that waited: code %d, generation %d, want 16 and -1", a.ErrorCode, a.Generation)
	}
	if a := synced(); a.ErrorCode != 16 || len(a.MemberAssignment) != 0 {
		t.Errorf("a SyncGroup that waited: code %d, want 16", a.ErrorCode)
	}
	if code := stays.heartbeat(); code != 16 {
		t.Errorf("a heartbeat: code %d, want 16", code)
	}
}

// A commit that is under way while its group moves is sent to the new coordinator
// by 16: that the member is not known (22) would tell its application that it has
// lost its partitions.
func TestCommitOfAGroupThatMoves(t *testing.T) {
	var cell *inject.Proxy
	r := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay, steady, rig.WithFaults(t, &cell))
	calls := cell // of the first node; another's are told next
	two := r.StartNode(t, 2, nil)
	together(t, 2, r, two.Rig())
	makeTopic(t, r, rig.Acme, "t")
	group := groupOf(t, 2, r, two.Rig())
	two.Stop(t)
	settled(t, group, r)
	m := newMember(t, r.Login(t, rig.Acme), group, true)
	m.join("t")
	if a := m.sendSync(m.id, "a")(); a.ErrorCode != 0 {
		t.Fatalf("SyncGroup: code %d", a.ErrorCode)
	}
	// A commit reads the topics anew when what is known of them is 3 s old, after it
	// was seen that the group is this node's: it waits there.
	under, on := make(chan struct{}), make(chan struct{})
	if err := calls.Add(inject.Rule{Kind: inject.Delay, Route: "/api/v1/resources/queues", Count: 1, Meanwhile: func() { close(under); <-on }}); err != nil {
		t.Fatal(err)
	}
	code := make(chan int16, 1)
	go func() {
		for {
			select {
			case <-under:
				return
			default:
			}
			req := commitRequest(8, group, at{topic: "t", offset: 5})
			req.Generation, req.MemberID = m.generation, m.id
			if c := commitCodes(t, m.Wire, req)[0]; c != 0 {
				code <- c
				return
			}
		}
	}()
	select {
	case <-under:
	case c := <-code:
		t.Fatalf("a commit that did not wait: code %d", c)
	case <-rig.Context(t).Done():
		t.Fatal("no commit reads the topics")
	}
	two.Start(t)
	rig.Eventually(t, "a group that has moved", func() bool { return heartbeatCode(t, two.Rig(), group) == 25 })
	close(on)
	select {
	case c := <-code:
		if c != 16 {
			t.Errorf("a commit that was under way: code %d, want 16", c)
		}
	case <-rig.Context(t).Done():
		t.Fatal("the commit is not answered")
	}
}

// A tool that asks every node of its log directories sees each partition once,
// at the node that leads it.
func TestLogDirsOfNodes(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2), steady)
	two, three := r.StartNode(t, 2, nil), r.StartNode(t, 3, nil)
	together(t, 3, r, two.Rig(), three.Rig())
	for i := range 5 {
		topic := fmt.Sprint("t", i)
		makeTopic(t, r, rig.Acme, topic)
		for p := range int32(4) {
			ask(t, r.Login(t, rig.Acme), put(produceReq(-1), topic, p, recordBatch(noProducer(), "v")))
		}
	}
	leaders := map[string]int32{}
	for _, n := range []*rig.Rig{r, two.Rig(), three.Rig()} { // who is asked about a topic looks for it
		for _, topic := range metadataOf(t, n, "t0", "t1", "t2", "t3", "t4").Topics {
			for _, p := range topic.Partitions {
				leaders[fmt.Sprint(*topic.Topic, p.Partition)] = p.Leader
			}
		}
	}
	admin := kadm.NewClient(r.Kafka(t, rig.Acme))
	for what, topics := range map[string]kadm.TopicsSet{"all": nil, "named": {"t0": {0: {}, 1: {}, 2: {}, 3: {}}, "t1": {0: {}, 3: {}}}} {
		all, err := admin.DescribeAllLogDirs(rig.Context(t), topics)
		if err != nil || len(all) != 3 {
			t.Fatalf("%d nodes have answered: %v", len(all), err)
		}
		listed, want := map[string]int32{}, maps.Clone(leaders)
		if topics != nil {
			maps.DeleteFunc(want, func(p string, _ int32) bool { return p > "t03" && p != "t10" && p != "t13" })
		}
		each := func(p kadm.DescribedLogDirPartition) {
			key := fmt.Sprint(p.Topic, p.Partition)
			if at, ok := listed[key]; ok {
				t.Errorf("%s: %s is listed at %d and at %d", what, key, at, p.Broker)
			}
			if listed[key] = p.Broker; p.Size == 0 {
				t.Errorf("%s: %s has no size", what, key)
			}
		}
		for _, node := range all {
			if err := node.Error(); err != nil {
				t.Error(err)
			}
			node.EachPartition(each)
		}
		if !maps.Equal(listed, want) {
			t.Errorf("%s: listed at %v, led by %v", what, listed, want)
		}
	}
}
