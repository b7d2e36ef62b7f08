package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// adminTopic is an entry of CreateTopics: configs are "name=value", or "name"
// for a null value.
func adminTopic(name string, partitions int32, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 3
	for _, text := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = adminConfig(text)
		t.Configs = append(t.Configs, c)
	}
	return t
}

func adminConfig(text string) (string, *string) {
	name, value, set := strings.Cut(text, "=")
	if !set {
		return name, nil
	}
	return name, &value
}

func adminCreate(w *rig.Wire, version int16, topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsResponse {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.Topics = version, topics
	return w.Ask(req).(*kmsg.CreateTopicsResponse)
}

// adminMade creates a topic that must be made.
func adminMade(tb testing.TB, w *rig.Wire, name string, partitions int32, configs ...string) {
	tb.Helper()
	if r := adminCreate(w, 6, adminTopic(name, partitions, configs...)).Topics[0]; r.ErrorCode != 0 {
		tb.Fatalf("create %s: code %d, %s", name, r.ErrorCode, adminText(r.ErrorMessage))
	}
}

func adminDelete(w *rig.Wire, names ...string) *kmsg.DeleteTopicsResponse {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames = 5, names
	return w.Ask(req).(*kmsg.DeleteTopicsResponse)
}

func adminWiden(w *rig.Wire, name string, count int32) kmsg.CreatePartitionsResponseTopic {
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, count
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.Topics = 3, []kmsg.CreatePartitionsRequestTopic{t}
	return w.Ask(req).(*kmsg.CreatePartitionsResponse).Topics[0]
}

// adminAlter replaces a topic's configs.
func adminAlter(w *rig.Wire, topic string, dry bool, configs ...string) kmsg.AlterConfigsResponseResource {
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for _, text := range configs {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = adminConfig(text)
		r.Configs = append(r.Configs, c)
	}
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Version, req.ValidateOnly, req.Resources = 2, dry, []kmsg.AlterConfigsRequestResource{r}
	return w.Ask(req).(*kmsg.AlterConfigsResponse).Resources[0]
}

// adminChange changes a topic's configs: each is "set name=value", "delete
// name", "append name=value" or "subtract name=value".
func adminChange(w *rig.Wire, topic string, ops ...string) kmsg.IncrementalAlterConfigsResponseResource {
	return w.Ask(adminChangeRequest(topic, ops...)).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
}

func adminChangeRequest(topic string, ops ...string) *kmsg.IncrementalAlterConfigsRequest {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for _, text := range ops {
		op, config, _ := strings.Cut(text, " ")
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Op = kmsg.IncrementalAlterConfigOp(slices.Index([]string{"set", "delete", "append", "subtract"}, op))
		c.Name, c.Value = adminConfig(config)
		r.Configs = append(r.Configs, c)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.Resources = 1, []kmsg.IncrementalAlterConfigsRequestResource{r}
	return req
}

// adminDescribe is a topic's configs as text, in order: "name=value" with a star
// where it was set, and a bang where it is read-only.
func adminDescribe(w *rig.Wire, topic string, keys ...string) string {
	return adminRows(adminDescribed(w, topic, keys...))
}

func adminDescribed(w *rig.Wire, topic string, keys ...string) kmsg.DescribeConfigsResponseResource {
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, keys
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.Resources = 4, []kmsg.DescribeConfigsRequestResource{r}
	return w.Ask(req).(*kmsg.DescribeConfigsResponse).Resources[0]
}

func adminRows(r kmsg.DescribeConfigsResponseResource) string {
	if r.ErrorCode != 0 {
		return fmt.Sprintf("code %d", r.ErrorCode)
	}
	var out []string
	for _, c := range r.Configs {
		text := c.Name + "=" + adminText(c.Value)
		if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			text += "*"
		}
		if c.ReadOnly {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func adminText(s *string) string {
	if s == nil {
		return "<null>"
	}
	return *s
}

// adminWidth is how many partitions Metadata shows, −1 for a topic that is not
// there.
func adminWidth(w *rig.Wire, topic string) int {
	req := wireMetadata(topic)
	req.AllowAutoTopicCreation = false
	t := w.Ask(req).(*kmsg.MetadataResponse).Topics[0]
	if t.ErrorCode != 0 {
		return -1
	}
	return len(t.Partitions)
}

func adminWants(tb testing.TB, what, got, want string) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: %s\nwant %s", what, got, want)
	}
}
