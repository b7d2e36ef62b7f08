package noninterference

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func offsetOps() []op {
	return []op{
		{"commit", (*client).commit},
		{"offset-fetch", (*client).offsetFetch},
		{"offset-delete", (*client).offsetDelete},
	}
}

// commit commits an offset as the group's member, or as nobody's where it has
// none.
func (c *client) commit(x, v int) {
	t, g := c.topic(x), &c.groups[x%2]
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.RetentionTimeMillis = groupName(x), -1, -1
	if g.member != "" {
		req.MemberID, req.InstanceID, req.Generation = g.member, g.instance, g.generation
	}
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = int32(x/4%firstWidth), int64(v), kmsg.StringPtr(fmt.Sprint("note ", x))
	req.Topics = []kmsg.OffsetCommitRequestTopic{{
		Topic: topicName(x), TopicID: t.id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p},
	}}
	if resp, ok := askAt[*kmsg.OffsetCommitResponse](c, req, v); ok && resp.Topics[0].Partitions[0].ErrorCode == 0 {
		g.committed = true
	}
}

func (c *client) offsetFetch(x, v int) {
	t := c.topic(x)
	partitions := []int32{0, 1, 2}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = groupName(x), x/4%2 == 1
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topicName(x), Partitions: partitions}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = groupName(x)
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topicName(x), TopicID: t.id, Partitions: partitions}}
	req.Groups = append(req.Groups, g)
	c.version(req, v)
	if x/2%2 == 1 && req.Version >= 2 { // all that there are
		req.Topics, req.Groups[0].Topics = nil, nil
	}
	c.ask(req)
}

func (c *client) offsetDelete(x, v int) {
	c.topic(x)
	if g := &c.groups[x%2]; !g.committed {
		c.commit(x, v)
	}
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = groupName(x)
	req.Topics = []kmsg.OffsetDeleteRequestTopic{{
		Topic: topicName(x), Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(x / 4 % firstWidth)}},
	}}
	c.send(req, v)
}
