package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/edge/config"
)

// coordinatorOf asks for a coordinator: node, code and address.
func coordinatorOf(t *testing.T, r *rig.Rig, kind int8, key string) (node int32, code int16, addr string) {
	t.Helper()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorType, req.CoordinatorKeys = 5, kind, []string{key}
	c := r.Login(t, rig.Acme).Ask(req).(*kmsg.FindCoordinatorResponse).Coordinators[0]
	return c.NodeID, c.ErrorCode, fmt.Sprintf("%s:%d", c.Host, c.Port)
}

// settled waits until all of them name the same coordinator of a group, which
// serves it.
func settled(t *testing.T, group string, nodes ...*rig.Rig) (owner int32) {
	t.Helper()
	rig.Eventually(t, "nodes that agree on a group", func() bool {
		owner = 0
		served := 0
		for _, n := range nodes {
			node, code, _ := coordinatorOf(t, n, 0, group)
			if code != 0 || owner != 0 && node != owner {
				return false
			}
			owner = node
			if heartbeatCode(t, n, group) == 25 {
				served++
			}
		}
		return served == 1
	})
	return owner
}

// heartbeatCode is that of a member nobody knows: 25 where the group is
// coordinated.
func heartbeatCode(t *testing.T, r *rig.Rig, group string) int16 {
	t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID = 4, group, "nobody"
	return r.Login(t, rig.Acme).Ask(req).(*kmsg.HeartbeatResponse).ErrorCode
}

// groupOf is a group that a node coordinates once all of them are there. ids are
// those of the nodes.
func groupOf(t *testing.T, node int32, nodes ...*rig.Rig) string {
	t.Helper()
	for i := range 1000 {
		group := fmt.Sprintf("g-%d", i)
		if owner, code, _ := coordinatorOf(t, nodes[0], 0, group); code == 0 && owner == node {
			return group
		}
	}
	t.Fatalf("node %d coordinates none of a thousand groups", node)
	return ""
}

// together waits until every node knows of so many.
func together(t *testing.T, n int, nodes ...*rig.Rig) {
	t.Helper()
	rig.Eventually(t, "nodes that know each other", func() bool {
		return !slices.ContainsFunc(nodes, func(r *rig.Rig) bool { return len(metadataOf(t, r).Brokers) != n })
	})
	settled(t, "some-group", nodes...)
}

func metadataOf(t *testing.T, r *rig.Rig, topics ...string) *kmsg.MetadataResponse {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation, req.Topics = 9, true, []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	return r.Login(t, rig.Acme).Ask(req).(*kmsg.MetadataResponse)
}

func clusterName(cfg *config.Config) { cfg.Cluster.Name = "c-1" }

func named(o *rig.Options) { o.Config = clusterName }

// Two nodes say the same of the cluster, whoever is asked; the name of the
// cluster is its id.
func TestNodesShown(t *testing.T) {
	one := rig.Start(t, rig.WithNode(rig.Acme2), named)
	two := one.StartNode(t, 7, nil).Rig()
	both := []*rig.Rig{one, two}
	together(t, 2, both...)
	makeTopic(t, one, rig.Acme, "t")
	leads := map[int32]int{}
	for _, r := range both {
		m := metadataOf(t, r, "t")
		if *m.ClusterID != "c-1" || m.ControllerID != 1 || m.Brokers[0].NodeID != 1 || m.Brokers[1].NodeID != 7 {
			t.Errorf("cluster %s, controller %d, brokers %v", *m.ClusterID, m.ControllerID, m.Brokers)
		}
		for i, b := range m.Brokers {
			if addr := fmt.Sprintf("%s:%d", b.Host, b.Port); addr != both[i].Addr {
				t.Errorf("node %d is said to be at %s, it is at %s", b.NodeID, addr, both[i].Addr)
			}
		}
		dtp := kmsg.NewPtrDescribeTopicPartitionsRequest()
		dtp.ResponsePartitionLimit = 100
		described := r.Login(t, rig.Acme).Ask(dtp).(*kmsg.DescribeTopicPartitionsResponse).Topics[0]
		for i, p := range m.Topics[0].Partitions {
			if !slices.Equal(p.Replicas, []int32{p.Leader}) || !slices.Equal(p.ISR, p.Replicas) || p.LeaderEpoch != -1 {
				t.Errorf("partition %d: leader %d, replicas %v, in sync %v, epoch %d", p.Partition, p.Leader, p.Replicas, p.ISR, p.LeaderEpoch)
			}
			if d := described.Partitions[i]; d.LeaderID != p.Leader || !slices.Equal(d.Replicas, p.Replicas) {
				t.Errorf("partition %d is led by %d in DescribeTopicPartitions, by %d in Metadata", p.Partition, d.LeaderID, p.Leader)
			}
			leads[p.Leader]++
		}
		dc := kmsg.NewPtrDescribeClusterRequest()
		c := r.Login(t, rig.Acme).Ask(dc).(*kmsg.DescribeClusterResponse)
		if c.ClusterID != "c-1" || c.ControllerID != 1 || len(c.Brokers) != 2 || c.Brokers[1].NodeID != 7 {
			t.Errorf("DescribeCluster: %+v", c)
		}
	}
	if leads[1]+leads[7] != 8 || leads[1]%2 != 0 {
		t.Errorf("the nodes do not lead the same partitions at both: %v", leads)
	}
	// To lead is advice: every node serves everything.
	for p := range int32(4) {
		ask(t, one.Login(t, rig.Acme), put(produceReq(-1), "t", p, recordBatch(noProducer(), "v")))
		ask(t, two.Login(t, rig.Acme), put(produceReq(-1), "t", p, recordBatch(noProducer(), "w")))
	}
	if got := readAll(t, two, rig.Acme, "t"); len(got) != 4 || len(got[0]) != 2 {
		t.Errorf("read %v", got)
	}
}

// What a group's coordinator alone may answer is 16 elsewhere, and leaves
// nothing behind there; the rest is answered everywhere.
func TestNotCoordinator(t *testing.T) {
	one := rig.Start(t, noJoinDelay, rig.WithNode(rig.Acme2))
	two := one.StartNode(t, 2, nil).Rig()
	together(t, 2, one, two)
	group := groupOf(t, 2, one, two)
	m := newMember(t, two.Login(t, rig.Acme), group, true)
	mustCommit(t, m.Wire, group, at{topic: "t", offset: 5})
	m.join("t")
	if a := m.sendSync(m.id, "a")(); a.ErrorCode != 0 {
		t.Fatalf("sync: code %d", a.ErrorCode)
	}

	w := one.Login(t, rig.Acme)
	codes := func(reqs ...kmsg.Request) (out []int16) {
		for _, req := range reqs {
			req.SetVersion(wireRow(t, req.Key()).Max)
			out = append(out, slices.Max(rig.ErrorCodes(w.Ask(req))))
		}
		return out
	}
	hb := kmsg.NewPtrHeartbeatRequest()
	hb.Group, hb.MemberID, hb.Generation = group, m.id, m.generation
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{group}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{group}
	offsetDelete := kmsg.NewPtrOffsetDeleteRequest()
	offsetDelete.Group = group
	got := codes(joinReq(group, "", "", "t"), syncReq(group, m.id, m.generation), hb, leave, describe, del, offsetDelete)
	if !slices.Equal(got, []int16{16, 16, 16, 16, 16, 16, 16}) {
		t.Errorf("at the node that does not coordinate the group: codes %v, want 16 each", got)
	}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 8, group, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = "t", []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}
	commit.Topics = append(commit.Topics, topic)
	if got := rig.ErrorCodes(w.Ask(commit)); !slices.Equal(got, []int16{16}) {
		t.Errorf("a commit at the wrong node: codes %v, want 16", got)
	}
	if n := one.Gateway.Groups(); n.Members != 0 || n.Groups != [4]int{} {
		t.Errorf("the wrong node holds %+v", n)
	}
	// Where the offset is can be read anywhere, and that the group is there.
	if o := fetchedOffset(t, one, group, "t"); o != 5 {
		t.Errorf("the offset is %d at the other node, want 5", o)
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 4
	for r, want := range map[*rig.Rig]string{one: "Unknown", two: "Stable"} {
		l := r.Login(t, rig.Acme).Ask(list).(*kmsg.ListGroupsResponse)
		if len(l.Groups) != 1 || l.Groups[0].Group != group || l.Groups[0].GroupState != want {
			t.Errorf("listed %+v, want it %s", l.Groups, want)
		}
	}
	if code := m.heartbeat(); code != 0 {
		t.Errorf("the member's heartbeat at the coordinator: code %d", code)
	}
}

func fetchedOffset(t *testing.T, r *rig.Rig, group, topic string) int64 {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 7, group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	resp := r.Login(t, rig.Acme).Ask(req).(*kmsg.OffsetFetchResponse)
	if resp.ErrorCode != 0 {
		t.Fatalf("OffsetFetch: code %d", resp.ErrorCode)
	}
	return resp.Topics[0].Partitions[0].Offset
}

// There are no transactions where there are several gateways, whoever is there:
// clients are told for good, so that none hangs.
func TestNoTransactionsInACluster(t *testing.T) {
	r := rig.Start(t, rig.WithNode(rig.Acme2))
	settled(t, "g", r)
	if _, code, _ := coordinatorOf(t, r, 1, "tx"); code != 53 {
		t.Errorf("FindCoordinator of a transactional id: code %d, want 53", code)
	}
	w, id := r.Login(t, rig.Acme), "tx"
	initID := kmsg.NewPtrInitProducerIDRequest()
	initID.Version, initID.TransactionalID, initID.TransactionTimeoutMillis = 4, &id, 10_000
	initID.ProducerID, initID.ProducerEpoch = -1, -1
	if code := w.Ask(initID).(*kmsg.InitProducerIDResponse).ErrorCode; code != 53 {
		t.Errorf("InitProducerId: code %d, want 53", code)
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.Version, add.TransactionalID = 3, id
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	group := kmsg.NewPtrAddOffsetsToTxnRequest()
	group.TransactionalID, group.Group = id, "g"
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.Generation = id, "g", -1
	commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{}}}}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.Commit = id, true
	for _, req := range []kmsg.Request{add, group, commit, end} {
		if got := slices.Max(rig.ErrorCodes(w.Ask(req))); got != 48 {
			t.Errorf("%s: code %d, want 48", kmsg.NameForKey(req.Key()), got)
		}
	}
	end.Commit = false
	if got := rig.ErrorCodes(w.Ask(end)); !slices.Equal(got, []int16{0}) {
		t.Errorf("an abort of nothing: codes %v, want 0", got)
	}
	makeTopic(t, r, rig.Acme, "t")
	produce := put(produceReq(-1), "t", 0, rig.Batch(time.Now(), rig.Producer{ID: 1, Transactional: true}, "v"))
	produce.TransactionID = &id
	if code := partOf(t, w.Ask(produce).(*kmsg.ProduceResponse), "t", 0).ErrorCode; code != 48 {
		t.Errorf("a Produce of a transaction: code %d, want 48", code)
	}
}

// A second process with a live node's id ends, and says what it saw; the first
// goes on. Then the id is free again, and is taken at once.
func TestLiveTwin(t *testing.T) {
	one := rig.Start(t, rig.WithNode(rig.Acme2))
	first := one.StartNode(t, 2, nil)
	group := func() string { return groupOf(t, 2, first.Rig()) }
	together(t, 2, one, first.Rig())
	g := group()
	twin := one.StartNode(t, 2, nil)
	err := twin.Ended(t)
	var e *cluster.TwinError
	if !errors.As(err, &e) || e.Self.ID != 2 || fmt.Sprintf("%s:%d", e.Other.Host, e.Other.Port) != first.Addr || e.Versions[0] == e.Versions[1] {
		t.Fatalf("a twin ends with %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "QUEEN_KAFKA_NODE_ID=2") || !strings.Contains(text, first.Addr) {
		t.Errorf("the evidence is %q", text)
	}
	if owner := settled(t, g, one, first.Rig()); owner != 2 {
		t.Errorf("node %d coordinates the group, want 2", owner)
	}
	first.Stop(t)
	rig.Eventually(t, "the row's removal", func() bool { return len(metadataOf(t, one).Brokers) == 1 })
	twin.Start(t)
	together(t, 2, one, twin.Rig())
}

// The registry is away: data goes on, and the gateway stays ready; groups are
// coordinated again, by the same process, when it is back.
func TestRegistryAway(t *testing.T) {
	var cell *inject.Proxy
	one := rig.Start(t, rig.WithNode(rig.Acme2), noJoinDelay, rig.WithFaults(t, &cell))
	settled(t, "g", one)
	makeTopic(t, one, rig.Acme, "t")
	s := startSide(t, one, "")
	if err := cell.Add(inject.Rule{Kind: inject.Refuse, Route: "/api/v1/kv", Holds: "qk:node:"}); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, "a node that coordinates nothing", func() bool { return heartbeatCode(t, one, "g") == 15 })
	if _, code, _ := coordinatorOf(t, one, 0, "g"); code != 15 {
		t.Errorf("FindCoordinator: code %d, want 15", code)
	}
	ask(t, one.Login(t, rig.Acme), put(produceReq(-1), "t", 0, recordBatch(noProducer(), "v")))
	if got := readAll(t, one, rig.Acme, "t"); len(got[0]) != 1 {
		t.Errorf("read %v", got)
	}
	if m := metadataOf(t, one); len(m.Brokers) != 1 || m.Brokers[0].NodeID != 1 {
		t.Errorf("brokers %v", m.Brokers)
	}
	if status, _ := s.get(t, "/readyz"); status != 200 {
		t.Errorf("/readyz: %d while the registry is away", status)
	}
	if _, body := s.get(t, "/metrics"); !strings.Contains(body, "\nqueen_edge_cluster_coordinates 0\n") || !strings.Contains(body, "\nqueen_edge_cluster_nodes 1\n") {
		t.Error("the metrics do not say that nothing is coordinated")
	}
	cell.Clear()
	rig.Eventually(t, "a node that coordinates again", func() bool { return heartbeatCode(t, one, "g") == 25 })
	if node, code, addr := coordinatorOf(t, one, 0, "g"); node != 1 || code != 0 || addr != one.Addr {
		t.Errorf("FindCoordinator: node %d at %s, code %d", node, addr, code)
	}
	m := newMember(t, one.Login(t, rig.Acme), "g", true)
	m.join("t")
	if a := m.sendSync(m.id, "a")(); a.ErrorCode != 0 {
		t.Errorf("SyncGroup: code %d", a.ErrorCode)
	}
	mustCommit(t, m.Wire, "another", at{topic: "t", offset: 1})
	if _, body := s.get(t, "/metrics"); !strings.Contains(body, "\nqueen_edge_cluster_coordinates 1\n") {
		t.Error("the metrics do not say that groups are coordinated again")
	}
}
