package cloud

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
)

func noProducer() rig.Producer { return rig.NoProducer() }

// records is a batch of now.
func records(p rig.Producer, values ...string) []byte { return rig.Batch(time.Now(), p, values...) }

// metadata lists topics; none named means all. create has missing ones made.
func metadata(w *rig.Wire, create bool, names ...string) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 12, create
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return w.Ask(req).(*kmsg.MetadataResponse)
}

// makeTopic has a topic made, as every client's first look at it does, and
// returns its id.
func makeTopic(t *testing.T, w *rig.Wire, name string) (id [16]byte) {
	t.Helper()
	rig.Eventually(t, "topic "+name, func() bool {
		got := metadata(w, true, name).Topics[0]
		id = got.TopicID
		if got.ErrorCode != 0 && got.ErrorCode != 5 {
			t.Fatalf("topic %s: code %d", name, got.ErrorCode)
		}
		return got.ErrorCode == 0
	})
	return id
}

// listed are the names of all topics.
func listed(t *testing.T, w *rig.Wire) (names []string) {
	t.Helper()
	for _, topic := range metadata(w, false).Topics {
		names = append(names, *topic.Topic)
	}
	return names
}

// produceOne asks for one batch to be stored in partition 0.
func produceOne(w *rig.Wire, topic string, b []byte) *kmsg.ProduceResponse {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 30_000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: b}}}}
	return w.Ask(req).(*kmsg.ProduceResponse)
}

// store stores records and returns the first one's offset.
func store(t *testing.T, w *rig.Wire, topic string, p rig.Producer, values ...string) int64 {
	t.Helper()
	got := produceOne(w, topic, records(p, values...)).Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		t.Fatalf("Produce to %s: code %d", topic, got.ErrorCode)
	}
	return got.BaseOffset
}

// fetchRequest asks for partition 0 of a topic.
func fetchRequest(topic string, offset int64, wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 12, 1<<20, 1, int32(wait.Milliseconds())
	req.ReplicaID, req.SessionEpoch = -1, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = offset, 1<<20, -1
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return req
}

// fetch reads partition 0 of a topic from its start.
func fetch(w *rig.Wire, topic string) kmsg.FetchResponseTopicPartition {
	return w.Ask(fetchRequest(topic, 0, 0)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// values are the records of a partition's answer.
func values(t *testing.T, p kmsg.FetchResponseTopicPartition) (out []string) {
	t.Helper()
	var dec batch.Decoder
	for rest := p.RecordBatches; len(rest) > 0; {
		b, next, err := batch.Next(rest)
		must(t, err)
		rest = next
		budget := batch.Budget{Bytes: 64 << 20, Records: 1 << 20}
		must(t, dec.Each(&b, &budget, func(r *batch.Record) error {
			out = append(out, string(r.Value))
			return nil
		}))
	}
	return out
}

// wantValues checks what a topic's partition 0 holds.
func wantValues(t *testing.T, w *rig.Wire, topic string, want ...string) {
	t.Helper()
	p := fetch(w, topic)
	if got := values(t, p); p.ErrorCode != 0 || !slices.Equal(got, want) {
		t.Errorf("%s holds %q, code %d; want %q", topic, got, p.ErrorCode, want)
	}
}

// commit commits an offset of partition 0 for a group without members.
func commit(w *rig.Wire, group, topic string, offset int64) int16 {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return w.Ask(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// committed is a group's offset of partition 0; −1 where there is none.
func committed(w *rig.Wire, group, topic string) (offset int64, code int16) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 7, group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	resp := w.Ask(req).(*kmsg.OffsetFetchResponse)
	if len(resp.Topics) == 0 {
		return -1, resp.ErrorCode
	}
	p := resp.Topics[0].Partitions[0]
	return p.Offset, max(p.ErrorCode, resp.ErrorCode)
}

// wantCommitted checks a group's offset of partition 0.
func wantCommitted(t *testing.T, w *rig.Wire, group, topic string, want int64) {
	t.Helper()
	if got, code := committed(w, group, topic); got != want || code != 0 {
		t.Errorf("group %s is at %d of %s, code %d; want %d", group, got, topic, code, want)
	}
}

// groupsListed are the ids ListGroups names.
func groupsListed(t *testing.T, w *rig.Wire) (ids []string) {
	t.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 4
	resp := w.Ask(req).(*kmsg.ListGroupsResponse)
	if resp.ErrorCode != 0 {
		t.Errorf("ListGroups: code %d", resp.ErrorCode)
	}
	for _, g := range resp.Groups {
		ids = append(ids, g.Group)
	}
	return ids
}

func describeGroup(w *rig.Wire, group string) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, []string{group}
	return w.Ask(req).(*kmsg.DescribeGroupsResponse).Groups[0]
}

// member is a group's only member.
type member struct {
	*rig.Wire
	group, id  string
	generation int32
}

// joinRequest is a consumer's.
func joinRequest(group, memberID string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 5, group, memberID, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60_000, 60_000
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, []string{"any"}
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: m.AppendTo(nil)}}
	return req
}

// join has a connection become the only member of a group.
func join(t *testing.T, w *rig.Wire, group string) *member {
	t.Helper()
	m := &member{Wire: w, group: group}
	var resp *kmsg.JoinGroupResponse
	for range 2 { // a newcomer is told its id first
		resp = w.Ask(joinRequest(group, m.id)).(*kmsg.JoinGroupResponse)
		if m.id = resp.MemberID; resp.ErrorCode != 79 {
			break
		}
	}
	if resp.ErrorCode != 0 || len(resp.Members) != 1 {
		t.Fatalf("JoinGroup %s: code %d, %d members", group, resp.ErrorCode, len(resp.Members))
	}
	m.generation = resp.Generation
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, group, m.id, m.generation
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: m.id, MemberAssignment: []byte("all of " + m.id)}}
	if got := w.Ask(sync).(*kmsg.SyncGroupResponse); got.ErrorCode != 0 || string(got.MemberAssignment) != "all of "+m.id {
		t.Fatalf("SyncGroup %s: code %d, assigned %q", group, got.ErrorCode, got.MemberAssignment)
	}
	return m
}

// heartbeat is sent over any connection.
func (m *member) heartbeat(w *rig.Wire) int16 {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 3, m.group, m.id, m.generation
	return w.Ask(req).(*kmsg.HeartbeatResponse).ErrorCode
}

// leave is sent over any connection.
func (m *member) leave(w *rig.Wire) int16 {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group, req.MemberID = 2, m.group, m.id
	return w.Ask(req).(*kmsg.LeaveGroupResponse).ErrorCode
}
