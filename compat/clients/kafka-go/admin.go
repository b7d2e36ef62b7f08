package main

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// admin is kafka-go's Client: it has the requests, one method for each.
type admin struct {
	c     *kafka.Client
	t     *kafka.Transport
	token string
}

func (driver) Admin(_ context.Context, token string) (gokit.Admin, error) {
	t := transport(token)
	return admin{&kafka.Client{Addr: kafka.TCP(gokit.Bootstrap()), Transport: t}, t, token}, nil
}

// first is the one error of an answer about one thing.
func first(errs map[string]error) error {
	for _, err := range errs {
		return err
	}
	return errors.New("the answer is empty")
}

func (a admin) CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error {
	t := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	for name, value := range configs {
		t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	r, err := a.c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{t}})
	if err != nil {
		return err
	}
	return first(r.Errors)
}

func (a admin) Topics(ctx context.Context) ([]string, error) {
	return driver{}.Topics(ctx, a.token)
}

// Partitions asks by a Transport of its own: one answers Metadata from a cache.
func (a admin) Partitions(ctx context.Context, topic string) (int, error) {
	m, err := metadata(ctx, a.token, topic)
	if err != nil {
		return 0, err
	}
	return len(m.Topics[0].Partitions), m.Topics[0].Error
}

func (a admin) AddPartitions(ctx context.Context, topic string, total int) error {
	r, err := a.c.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(total)}}})
	if err != nil {
		return err
	}
	return first(r.Errors)
}

func (a admin) DeleteTopic(ctx context.Context, topic string) error {
	r, err := a.c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return first(r.Errors)
}

func (a admin) Configs(ctx context.Context, topic string) (map[string]string, error) {
	r, err := a.c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic},
	}})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range r.Resources[0].ConfigEntries {
		out[e.ConfigName] = e.ConfigValue
	}
	return out, r.Resources[0].Error
}

func (a admin) SetConfig(ctx context.Context, topic, name, value string) error {
	r, err := a.c.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err != nil {
		return err
	}
	return r.Resources[0].Error
}

func (a admin) Groups(ctx context.Context) ([]string, error) {
	r, err := a.c.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, g := range r.Groups {
		out = append(out, g.GroupID)
	}
	return out, r.Error
}

func (a admin) Members(ctx context.Context, group, topic string) ([][]int32, error) {
	r, err := a.c.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, err
	}
	var out [][]int32
	for _, m := range r.Groups[0].Members {
		var held []int32
		for _, t := range m.MemberAssignments.Topics {
			if t.Topic == topic {
				for _, p := range t.Partitions {
					held = append(held, int32(p))
				}
			}
		}
		out = append(out, held)
	}
	return out, r.Groups[0].Error
}

func (a admin) Offsets(ctx context.Context, group, topic string) (map[int32]int64, error) {
	r, err := a.c.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1, 2, 3}}})
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, p := range r.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		if p.CommittedOffset >= 0 {
			out[int32(p.Partition)] = p.CommittedOffset
		}
	}
	return out, r.Error
}

func (a admin) SetOffsets(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	var list []kafka.OffsetCommit
	for p, at := range offsets {
		list = append(list, kafka.OffsetCommit{Partition: int(p), Offset: at})
	}
	r, err := a.c.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: list}})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range r.Topics[topic] {
		errs = append(errs, p.Error)
	}
	return errors.Join(errs...)
}

func (a admin) DeleteOffset(ctx context.Context, group, topic string, partition int32) error {
	r, err := a.c.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{GroupID: group, Topics: map[string][]int{topic: {int(partition)}}})
	if err != nil {
		return err
	}
	errs := []error{r.Error}
	for _, p := range r.Topics[topic] {
		errs = append(errs, p.Error)
	}
	return errors.Join(errs...)
}

func (a admin) DeleteGroup(ctx context.Context, group string) error {
	r, err := a.c.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return first(r.Errors)
}

func (a admin) Close() error {
	a.t.CloseIdleConnections()
	return nil
}

// Transactional says why there is none.
func (driver) Transactional(context.Context, string, string) (gokit.Transactional, error) {
	return nil, gokit.Skip("kafka-go has the requests of transactions, but its records carry no producer")
}
