package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// admin is sarama's ClusterAdmin, which takes no context.
type admin struct {
	a       sarama.ClusterAdmin
	version sarama.KafkaVersion
}

func (d driver) Admin(_ context.Context, token string) (gokit.Admin, error) {
	if !d.version.IsAtLeast(sarama.V1_1_0_0) {
		return nil, gokit.Skip("it asks for DeleteTopics 0 and DescribeConfigs 0, which Apache Kafka 4 does not know either; ours start with 1 (V1_1_0_0)")
	}
	a, err := sarama.NewClusterAdmin([]string{gokit.Bootstrap()}, d.config(token))
	return admin{a, d.version}, err
}

func (a admin) CreateTopic(_ context.Context, topic string, partitions int, configs map[string]string) error {
	detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for name, value := range configs {
		detail.ConfigEntries[name] = &value
	}
	return a.a.CreateTopic(topic, detail, false)
}

func (a admin) Topics(context.Context) ([]string, error) {
	listed, err := a.a.ListTopics()
	return slices.Collect(maps.Keys(listed)), err
}

func (a admin) Partitions(_ context.Context, topic string) (int, error) {
	described, err := a.a.DescribeTopics([]string{topic})
	if err != nil {
		return 0, err
	}
	if described[0].Err != sarama.ErrNoError {
		return 0, described[0].Err
	}
	return len(described[0].Partitions), nil
}

func (a admin) AddPartitions(_ context.Context, topic string, total int) error {
	return a.a.CreatePartitions(topic, int32(total), nil, false)
}

func (a admin) DeleteTopic(_ context.Context, topic string) error { return a.a.DeleteTopic(topic) }

func (a admin) Configs(_ context.Context, topic string) (map[string]string, error) {
	entries, err := a.a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	out := map[string]string{}
	for _, e := range entries {
		out[e.Name] = e.Value
	}
	return out, err
}

func (a admin) SetConfig(_ context.Context, topic, name, value string) error {
	if !a.version.IsAtLeast(sarama.V2_3_0_0) {
		return a.a.AlterConfig(sarama.TopicResource, topic, map[string]*string{name: &value}, false)
	}
	set := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	return a.a.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{name: set}, false)
}

func (a admin) Groups(context.Context) ([]string, error) {
	listed, err := a.a.ListConsumerGroups()
	return slices.Collect(maps.Keys(listed)), err
}

func (a admin) Members(_ context.Context, group, topic string) ([][]int32, error) {
	if !a.version.IsAtLeast(sarama.V2_4_0_0) {
		return nil, gokit.Skip("deleting offsets came with V2_4_0_0")
	}
	described, err := a.a.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	var out [][]int32
	for _, m := range described[0].Members {
		held, err := m.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		out = append(out, held.Topics[topic])
	}
	return out, nil
}

func (a admin) Offsets(_ context.Context, group, topic string) (map[int32]int64, error) {
	partitions := []int32{0, 1, 2, 3}
	r, err := a.a.ListConsumerGroupOffsets(group, map[string][]int32{topic: partitions})
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, p := range partitions {
		block := r.GetBlock(topic, p)
		switch {
		case block == nil:
			return nil, errors.New("a partition is not answered")
		case block.Err != sarama.ErrNoError:
			return nil, block.Err
		case block.Offset >= 0:
			out[p] = block.Offset
		}
	}
	return out, nil
}

func (a admin) SetOffsets(_ context.Context, group, topic string, offsets map[int32]int64) error {
	set := map[int32]sarama.OffsetAndMetadata{}
	for p, at := range offsets {
		set[p] = sarama.OffsetAndMetadata{Offset: at, LeaderEpoch: -1}
	}
	r, err := a.a.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{topic: set}, nil)
	if err != nil {
		return err
	}
	for _, code := range r.Errors[topic] {
		if code != sarama.ErrNoError {
			return code
		}
	}
	return nil
}

func (a admin) DeleteOffset(_ context.Context, group, topic string, partition int32) error {
	return a.a.DeleteConsumerGroupOffset(group, topic, partition)
}

func (a admin) DeleteGroup(_ context.Context, group string) error {
	return a.a.DeleteConsumerGroup(group)
}

func (a admin) Close() error { return a.a.Close() }
