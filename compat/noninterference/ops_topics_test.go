package noninterference

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topic is one of a client's topics as far as it knows.
type topic struct {
	made  bool
	id    [16]byte
	width int32
}

const (
	firstWidth = 3
	widest     = 6
)

func topicName(x int) string { return fmt.Sprint("t", x%2) }

func topicOps() []op {
	return []op{
		{"create-topic", (*client).createTopic},
		{"delete-topic", (*client).deleteTopic},
		{"widen-topic", (*client).createPartitions},
		{"metadata", (*client).metadata},
		{"describe-topic-partitions", (*client).describeTopicPartitions},
		{"describe-configs", (*client).describeConfigs},
		{"alter-configs", (*client).alterConfigs},
		{"incremental-alter-configs", (*client).incrementalAlterConfigs},
		{"describe-log-dirs", (*client).describeLogDirs},
	}
}

// topic is the client's topic, made where there is none.
func (c *client) topic(x int) *topic {
	t := &c.topics[x%2]
	if !t.made {
		c.makeTopic(x, x)
	}
	return t
}

// makeTopic makes a topic and learns its id.
func (c *client) makeTopic(x, v int) {
	t := &c.topics[x%2]
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	spec := kmsg.NewCreateTopicsRequestTopic()
	spec.Topic, spec.NumPartitions, spec.ReplicationFactor = topicName(x), firstWidth, 1
	req.Topics = append(req.Topics, spec)
	resp, ok := askAt[*kmsg.CreateTopicsResponse](c, req, v)
	t.made = ok && (resp.Topics[0].ErrorCode == 0 || resp.Topics[0].ErrorCode == 36)
	t.width = firstWidth
	if !t.made {
		return
	}
	if got, ok := askAt[*kmsg.MetadataResponse](c, metadataOf(topicName(x)), 12); ok && len(got.Topics) == 1 {
		t.id = got.Topics[0].TopicID
	}
}

func (c *client) createTopic(x, v int) {
	if c.topics[x%2].made {
		c.deleteTopic(x, v)
	}
	c.makeTopic(x, v)
}

func (c *client) deleteTopic(x, v int) {
	t := c.topic(x)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 30_000
	req.TopicNames = []string{topicName(x)}
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr(topicName(x))}}
	if x/2%2 == 1 {
		req.Topics[0] = kmsg.DeleteTopicsRequestTopic{TopicID: t.id}
	}
	if resp, ok := askAt[*kmsg.DeleteTopicsResponse](c, req, v); ok && resp.Topics[0].ErrorCode == 0 {
		*t = topic{}
	}
}

func (c *client) createPartitions(x, v int) {
	if c.topic(x).width >= widest {
		c.createTopic(x, v)
	}
	t := c.topic(x)
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 30_000
	req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topicName(x), Count: t.width + 1}}
	if resp, ok := askAt[*kmsg.CreatePartitionsResponse](c, req, v); ok && resp.Topics[0].ErrorCode == 0 {
		t.width++
	}
}

// metadataOf asks for topics by name; none means all.
func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

func (c *client) metadata(x, v int) {
	t := c.topic(x)
	req := metadataOf(topicName(x))
	c.version(req, v)
	switch {
	case x/2%3 == 1:
		req.Topics = nil // all
	case x/2%3 == 2 && req.Version >= 10:
		req.Topics[0] = kmsg.MetadataRequestTopic{TopicID: t.id}
	}
	c.ask(req)
}

func (c *client) describeTopicPartitions(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 100
	req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: topicName(x)}}
	c.send(req, v)
}

func (c *client) describeConfigs(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = x/4%2 == 1, x/8%2 == 1
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topicName(x)
	if x/2%2 == 1 {
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, "0"
	}
	req.Resources = append(req.Resources, r)
	c.send(req, v)
}

// retention is a config's value that x says.
func retention(x int) *string { return kmsg.StringPtr(strconv.Itoa((x + 1) * 3_600_000)) }

func (c *client) alterConfigs(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Resources = []kmsg.AlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topicName(x),
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: retention(x)}},
	}}
	c.send(req, v)
}

func (c *client) incrementalAlterConfigs(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	change := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "retention.ms", Op: kmsg.IncrementalAlterConfigOpSet, Value: retention(x)}
	if x/2%2 == 1 {
		change.Op, change.Value = kmsg.IncrementalAlterConfigOpDelete, nil
	}
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topicName(x),
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{change},
	}}
	c.send(req, v)
}

func (c *client) describeLogDirs(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrDescribeLogDirsRequest()
	if x/2%2 == 1 {
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topicName(x), Partitions: []int32{0, 1}}}
	}
	c.send(req, v)
}
