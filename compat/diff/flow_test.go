package main

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFlowNames: ids that a side has given have names, so that two sides can be
// compared; an id that it should not know of stays, and is a difference.
func TestFlowNames(t *testing.T) {
	t.Parallel()
	m := newMemory(side{}, map[string]string{"the group": "g-1"})
	m.members["a"], m.members["b"] = "a-17", "b-18"
	m.producers["p"] = producer{id: 99, epoch: 3}

	join := &kmsg.JoinGroupResponse{MemberID: "a-17", LeaderID: "b-18", Members: []kmsg.JoinGroupResponseMember{{MemberID: "b-18"}, {MemberID: "c-19"}}}
	m.understand(act{}, join)
	if join.MemberID != "member a" || join.LeaderID != "member b" || join.Members[0].MemberID != "member b" || join.Members[1].MemberID != "c-19" {
		t.Errorf("members: %+v", join)
	}
	groups := &kmsg.DescribeGroupsResponse{Groups: []kmsg.DescribeGroupsResponseGroup{{Group: "g-1"}, {Group: "g-2"}}}
	m.understand(act{}, groups)
	if groups.Groups[0].Group != "the group" || groups.Groups[1].Group != "g-2" {
		t.Errorf("groups: %+v", groups)
	}
	init := &kmsg.InitProducerIDResponse{ProducerID: 99}
	other := &kmsg.InitProducerIDResponse{ProducerID: 98}
	m.understand(act{}, init)
	m.understand(act{}, other)
	if init.ProducerID == 99 || other.ProducerID != 98 {
		t.Errorf("producers: %d and %d", init.ProducerID, other.ProducerID)
	}
}

// TestFlowAsksAgain: only the code that says "not yet" is asked again.
func TestFlowAsksAgain(t *testing.T) {
	t.Parallel()
	resp := &kmsg.AddPartitionsToTxnResponse{Topics: []kmsg.AddPartitionsToTxnResponseTopic{{
		Topic: "t", Partitions: []kmsg.AddPartitionsToTxnResponseTopicPartition{{ErrorCode: 0}, {Partition: 51, ErrorCode: 3}},
	}}}
	if says(resp, notYet) || !says(resp, 3) {
		t.Error("a code is seen where there is none, or not where it is")
	}
	resp.Topics[0].Partitions[1].ErrorCode = notYet
	if !says(resp, notYet) {
		t.Error("a code of a partition is not seen")
	}
}
