package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// admin is kadm.
type admin struct{ *kadm.Client }

func (driver) Admin(_ context.Context, token string) (gokit.Admin, error) {
	c, err := client(token)
	if err != nil {
		return nil, err
	}
	return admin{kadm.NewClient(c)}, nil
}

func (a admin) CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error {
	given := map[string]*string{}
	for name, value := range configs {
		given[name] = kadm.StringPtr(value)
	}
	_, err := a.Client.CreateTopic(ctx, int32(partitions), 1, given, topic)
	return err
}

func (a admin) Topics(ctx context.Context) ([]string, error) {
	listed, err := a.ListTopics(ctx)
	return listed.Names(), err
}

func (a admin) Partitions(ctx context.Context, topic string) (int, error) {
	listed, err := a.ListTopics(ctx, topic)
	return len(listed[topic].Partitions), errors.Join(err, listed.Error())
}

func (a admin) AddPartitions(ctx context.Context, topic string, total int) error {
	changed, err := a.UpdatePartitions(ctx, total, topic)
	return errors.Join(err, changed.Error())
}

func (a admin) DeleteTopic(ctx context.Context, topic string) error {
	_, err := a.Client.DeleteTopic(ctx, topic)
	return err
}

func (a admin) Configs(ctx context.Context, topic string) (map[string]string, error) {
	described, err := a.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	r, err := described.On(topic, nil)
	out := map[string]string{}
	for _, c := range r.Configs {
		out[c.Key] = c.MaybeValue()
	}
	return out, errors.Join(err, r.Err)
}

func (a admin) SetConfig(ctx context.Context, topic, name, value string) error {
	altered, err := a.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	if err != nil {
		return err
	}
	r, err := altered.On(topic, nil)
	if err == nil && r.Err != nil {
		err = fmt.Errorf("%w (%s)", r.Err, r.ErrMessage)
	}
	return err
}

func (a admin) Groups(ctx context.Context) ([]string, error) {
	listed, err := a.ListGroups(ctx)
	return listed.Groups(), err
}

func (a admin) Members(ctx context.Context, group, topic string) ([][]int32, error) {
	described, err := a.DescribeGroups(ctx, group)
	if err := errors.Join(err, described.Error()); err != nil {
		return nil, err
	}
	var out [][]int32
	for _, m := range described[group].Members {
		var held []int32
		if c, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range c.Topics {
				if t.Topic == topic {
					held = append(held, t.Partitions...)
				}
			}
		}
		out = append(out, held)
	}
	return out, nil
}

func (a admin) Offsets(ctx context.Context, group, topic string) (map[int32]int64, error) {
	offsets, err := a.FetchOffsets(ctx, group)
	if err := errors.Join(err, offsets.Error()); err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for p, o := range offsets[topic] {
		out[p] = o.At
	}
	return out, nil
}

func (a admin) SetOffsets(ctx context.Context, group, topic string, offsets map[int32]int64) error {
	var all kadm.Offsets
	for p, at := range offsets {
		all.AddOffset(topic, p, at, -1)
	}
	return a.CommitAllOffsets(ctx, group, all)
}

func (a admin) DeleteOffset(ctx context.Context, group, topic string, partition int32) error {
	var set kadm.TopicsSet
	set.Add(topic, partition)
	deleted, err := a.DeleteOffsets(ctx, group, set)
	return errors.Join(err, deleted.Error())
}

func (a admin) DeleteGroup(ctx context.Context, group string) error {
	_, err := a.Client.DeleteGroup(ctx, group)
	return err
}

func (a admin) Close() error {
	a.Client.Close()
	return nil
}
