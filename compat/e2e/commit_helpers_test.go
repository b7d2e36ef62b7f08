package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// at is a position to commit.
type at struct {
	topic     string
	partition int32
	offset    int64
	metadata  *string
}

// commitRequest is an OffsetCommit of a consumer that takes no part in its group.
func commitRequest(version int16, group string, positions ...at) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = version, group, -1
	for _, a := range positions {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = a.partition, a.offset, a.metadata
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != a.topic {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic = a.topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return req
}

// commitCodes sends a commit and returns the code of each of its partitions, in
// its order.
func commitCodes(t *testing.T, w *rig.Wire, req *kmsg.OffsetCommitRequest) []int16 {
	t.Helper()
	wireIdentify(w, req)
	resp := w.Ask(req).(*kmsg.OffsetCommitResponse)
	var codes []int16
	if len(resp.Topics) != len(req.Topics) {
		t.Fatalf("%d topics are answered, want %d", len(resp.Topics), len(req.Topics))
	}
	for i, rt := range resp.Topics {
		if req.Version < 10 && rt.Topic != req.Topics[i].Topic || rt.TopicID != req.Topics[i].TopicID || len(rt.Partitions) != len(req.Topics[i].Partitions) {
			t.Fatalf("topic %d is %s with %d partitions", i, rt.Topic, len(rt.Partitions))
		}
		for j, rp := range rt.Partitions {
			if want := req.Topics[i].Partitions[j].Partition; rp.Partition != want {
				t.Fatalf("partition %d is answered for %d", rp.Partition, want)
			}
			codes = append(codes, rp.ErrorCode)
		}
	}
	return codes
}

// mustCommit fails the test unless everything is committed.
func mustCommit(t *testing.T, w *rig.Wire, group string, positions ...at) {
	t.Helper()
	for i, code := range commitCodes(t, w, commitRequest(8, group, positions...)) {
		if code != 0 {
			t.Fatalf("commit of %+v: code %d", positions[i], code)
		}
	}
}

// offsetRequest asks for what a group has committed; no topic means all.
func offsetRequest(version int16, group string, topics ...string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = version, group
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for _, name := range topics {
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: []int32{0, 1, 2}})
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: []int32{0, 1, 2}})
	}
	req.Groups = append(req.Groups, g)
	return req
}

// committed are the answers of an OffsetFetch for one group, as
// topic/partition=offset "metadata".
func committed(t *testing.T, w *rig.Wire, req *kmsg.OffsetFetchRequest) []string {
	t.Helper()
	wireIdentify(w, req)
	resp := w.Ask(req).(*kmsg.OffsetFetchResponse)
	if req.Version >= 8 {
		if len(resp.Groups) != 1 || resp.Groups[0].Group != req.Groups[0].Group {
			t.Fatalf("v%d: %d groups are answered, want one", req.Version, len(resp.Groups))
		}
		return groupCommitted(t, w, &resp.Groups[0])
	}
	g := kmsg.OffsetFetchResponseGroup{ErrorCode: resp.ErrorCode}
	for _, rt := range resp.Topics {
		gt := kmsg.OffsetFetchResponseGroupTopic{Topic: rt.Topic}
		for _, rp := range rt.Partitions {
			gt.Partitions = append(gt.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition(rp))
		}
		g.Topics = append(g.Topics, gt)
	}
	return groupCommitted(t, w, &g)
}

// groupCommitted shows the answer for one group. A topic that has an id and no
// name is shown by the name that Metadata gives, or as "?".
func groupCommitted(t *testing.T, w *rig.Wire, g *kmsg.OffsetFetchResponseGroup) []string {
	t.Helper()
	out := []string{}
	if g.ErrorCode != 0 {
		out = append(out, fmt.Sprintf("code %d", g.ErrorCode))
	}
	for _, rt := range g.Topics {
		name := rt.Topic
		if rt.TopicID != [16]byte{} {
			name = "?"
			if found := byID(w, 12, rt.TopicID).Topic; found != nil {
				name = *found
			}
		}
		for _, rp := range rt.Partitions {
			if rp.Metadata == nil {
				t.Errorf("%s/%d has null metadata", name, rp.Partition)
				continue
			}
			text := fmt.Sprintf("%s/%d=%d", name, rp.Partition, rp.Offset)
			if *rp.Metadata != "" {
				text += fmt.Sprintf(" %q", *rp.Metadata)
			}
			if rp.ErrorCode != 0 {
				text += fmt.Sprintf(" code %d", rp.ErrorCode)
			}
			out = append(out, text)
		}
	}
	return out
}

// String is a position as committed shows it.
func (a at) String() string {
	text := fmt.Sprintf("%s/%d=%d", a.topic, a.partition, a.offset)
	if a.metadata != nil && *a.metadata != "" {
		text += fmt.Sprintf(" %q", *a.metadata)
	}
	return text
}
