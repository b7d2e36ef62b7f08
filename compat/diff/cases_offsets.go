package main

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// place is a partition and what is committed for it.
type place struct {
	topic     string
	partition int32
	offset    int64
	metadata  *string
}

func pointer(s string) *string { return &s }

// commitOf commits without being a member.
func commitOf(group string, places ...place) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = group, -1, -1
	for _, p := range places {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.Metadata = p.partition, p.offset, p.metadata
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.Partitions = p.topic, []kmsg.OffsetCommitRequestTopicPartition{rp}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// offsetsOf asks for partitions 0 to 2; no topic means all.
func offsetsOf(group string, topics ...string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	g := kmsg.NewOffsetFetchRequestGroup() // from version 8 on
	g.Group = group
	for _, name := range topics {
		t := kmsg.NewOffsetFetchRequestTopic()
		t.Topic, t.Partitions = name, []int32{0, 1, 2}
		req.Topics = append(req.Topics, t)
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: t.Partitions})
	}
	req.Groups = append(req.Groups, g)
	return req
}

// versioned gives a request a version of its own: the others of its script are of
// another API.
func versioned(req kmsg.Request, v int16) step { return step{req: req, own: &v} }

func (s *suite) offsets() {
	commit, fetch := s.row(8), s.row(9)
	for _, v := range every(commit) {
		asks := func(name string, places ...place) {
			group := fmt.Sprintf("commit-%d-%s", v, strings.ReplaceAll(name, " ", "-"))
			read := offsetsOf(group)
			s.add(commit, v, name, step{req: commitOf(group, places...)}, versioned(read, 5))
		}
		asks("good", place{readTopic, 0, 7, pointer("m")}, place{readTopic, 1, 0, pointer("")})
		asks("null metadata", place{readTopic, 0, 7, nil})
		asks("metadata of 4096", place{readTopic, 0, 7, pointer(strings.Repeat("m", 4096))})
		asks("metadata of 4097", place{readTopic, 0, 7, pointer(strings.Repeat("m", 4097))}, place{readTopic, 1, 7, nil})
		asks("beyond the end", place{readTopic, 0, 1 << 40, nil})
		asks("offset -1", place{readTopic, 0, -1, nil})
		asks("offset -2", place{readTopic, 0, -2, nil})
		asks("a missing topic", place{missing, 0, 7, nil}, place{readTopic, 0, 7, nil})
		asks("a missing partition", place{readTopic, 99, 7, nil})
		asks("partition -1", place{readTopic, -1, 7, nil})
		asks("an illegal topic", place{"a b", 0, 7, nil})
		asks("no topics")
		for name, by := range map[string][2]any{"generation 3": {int32(3), ""}, "a stranger": {int32(3), "m"}, "a member without a generation": {int32(-1), "m"}} {
			req := commitOf("stranger", place{readTopic, 0, 7, nil})
			req.Generation, req.MemberID = by[0].(int32), by[1].(string)
			s.add(commit, v, name, ask(req)...)
		}
		s.add(commit, v, "an empty group id", ask(commitOf("", place{readTopic, 0, 7, nil}))...)
	}
	for _, v := range every(fetch) {
		if v > 7 {
			continue
		}
		group := fmt.Sprintf("fetch-%d", v)
		s.add(fetch, v, "after commits", versioned(commitOf(group, place{readTopic, 0, 7, pointer("m")}, place{readTopic, 2, 9, nil}), 8),
			step{req: offsetsOf(group, readTopic)}, step{req: offsetsOf(group, readTopic, missing)}, step{req: offsetsOf(group, "a b")})
		if v >= 2 {
			s.add(fetch, v, "all", versioned(commitOf(group, place{readTopic, 0, 7, pointer("m")}), 8), step{req: offsetsOf(group)})
			s.add(fetch, v, "all of an unknown group", step{req: offsetsOf("nobody")})
		}
		s.add(fetch, v, "an unknown group", step{req: offsetsOf("nobody", readTopic)})
		s.add(fetch, v, "an empty group id", step{req: offsetsOf("", readTopic)})
	}
	s.groupAdmin()
}

// groupAdmin describes, lists and deletes groups without members.
func (s *suite) groupAdmin() {
	for _, v := range every(s.row(15)) {
		group := fmt.Sprintf("describe-%d", v)
		d, unknown, empty := kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrDescribeGroupsRequest()
		d.Groups, unknown.Groups, empty.Groups = []string{group}, []string{"nobody"}, []string{""}
		s.add(s.row(15), v, "after a commit", versioned(commitOf(group, place{readTopic, 0, 7, nil}), 8), step{req: d})
		s.add(s.row(15), v, "an unknown group", step{req: unknown})
		s.add(s.row(15), v, "an empty group id", step{req: empty})
	}
	for _, v := range every(s.row(42)) {
		group := fmt.Sprintf("delete-%d", v)
		del := func() *kmsg.DeleteGroupsRequest { return &kmsg.DeleteGroupsRequest{Groups: []string{group}} }
		s.add(s.row(42), v, "after a commit", versioned(commitOf(group, place{readTopic, 0, 7, nil}), 8), step{req: del()}, step{req: del()},
			versioned(offsetsOf(group), 5))
		s.add(s.row(42), v, "an unknown group", step{req: &kmsg.DeleteGroupsRequest{Groups: []string{"nobody"}}})
		s.add(s.row(42), v, "no groups", step{req: &kmsg.DeleteGroupsRequest{}})
	}
	drop := func(group, topic string, partition int32) *kmsg.OffsetDeleteRequest {
		return &kmsg.OffsetDeleteRequest{Group: group, Topics: []kmsg.OffsetDeleteRequestTopic{
			{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: partition}}},
		}}
	}
	two := commitOf("drop", place{readTopic, 0, 7, nil}, place{readTopic, 1, 8, nil})
	s.add(s.row(47), 0, "after a commit", versioned(two, 8), step{req: drop("drop", readTopic, 0)}, versioned(offsetsOf("drop"), 5),
		step{req: drop("drop", readTopic, 2)}, step{req: drop("drop", missing, 0)}, step{req: drop("drop", readTopic, 99)})
	s.add(s.row(47), 0, "an unknown group", step{req: drop("nobody", readTopic, 0)})
}
