package gokit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Administrator is a client that has an administration.
type Administrator interface {
	Admin(ctx context.Context, token string) (Admin, error)
}

// Admin is an administration that has logged in. Offsets are by partition.
type Admin interface {
	CreateTopic(ctx context.Context, topic string, partitions int, configs map[string]string) error
	Topics(ctx context.Context) ([]string, error)
	Partitions(ctx context.Context, topic string) (int, error)
	// AddPartitions raises a topic to so many.
	AddPartitions(ctx context.Context, topic string, total int) error
	DeleteTopic(ctx context.Context, topic string) error
	Configs(ctx context.Context, topic string) (map[string]string, error)
	SetConfig(ctx context.Context, topic, name, value string) error
	Groups(ctx context.Context) ([]string, error)
	// Members are the partitions that each member of a group holds of a topic.
	Members(ctx context.Context, group, topic string) ([][]int32, error)
	Offsets(ctx context.Context, group, topic string) (map[int32]int64, error)
	SetOffsets(ctx context.Context, group, topic string, offsets map[int32]int64) error
	DeleteOffset(ctx context.Context, group, topic string, partition int32) error
	DeleteGroup(ctx context.Context, group string) error
	Close() error
}

func (b *block) adminSteps() []step {
	return []step{
		{"admin-topics", b.adminCheck(b.adminTopics)},
		{"admin-configs", b.adminCheck(b.adminConfigs)},
		{"admin-groups", b.adminCheck(b.adminGroups)},
	}
}

func (b *block) adminCheck(do func(ctx context.Context, a Admin, check string) error) func(context.Context, string) error {
	return func(ctx context.Context, check string) error {
		driver, ok := b.Driver.(Administrator)
		if !ok {
			return Skip("its folder does not drive administration")
		}
		a, err := driver.Admin(ctx, token("ACME"))
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, a, check), a.Close())
	}
}

func (b *block) adminTopics(ctx context.Context, a Admin, check string) error {
	topic := b.topic(check)
	if err := a.CreateTopic(ctx, topic, 2, map[string]string{"retention.ms": "3600000"}); err != nil {
		return err
	}
	if n, err := a.Partitions(ctx, topic); err != nil || n != 2 {
		return errors.Join(err, fmt.Errorf("%d partitions, want 2", n))
	}
	if err := a.AddPartitions(ctx, topic, 3); err != nil {
		return err
	}
	if n, err := a.Partitions(ctx, topic); err != nil || n != 3 {
		return errors.Join(err, fmt.Errorf("%d partitions, want 3", n))
	}
	return b.delete(ctx, check, a.Topics, a.DeleteTopic)
}

// delete deletes one of the things that are there to be deleted. Their names are
// not told: they are to be listed.
func (b *block) delete(ctx context.Context, check string, list func(context.Context) ([]string, error), remove func(context.Context, string) error) error {
	names, err := list(ctx)
	if err != nil {
		return err
	}
	prefix := os.Getenv("COMPAT_DOOMED")
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	if i < 0 {
		return fmt.Errorf("none of %v begins with %s", names, prefix)
	}
	if err := remove(ctx, names[i]); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "gone %s %s\n", check, names[i])
	return nil
}

func (b *block) adminConfigs(ctx context.Context, a Admin, check string) error {
	topic := b.topic(check)
	if err := a.CreateTopic(ctx, topic, 1, nil); err != nil {
		return err
	}
	before, err := a.Configs(ctx, topic)
	if err != nil || before["retention.ms"] != "-1" {
		return errors.Join(err, fmt.Errorf("retention.ms is %q, want -1", before["retention.ms"]))
	}
	if err := a.SetConfig(ctx, topic, "retention.ms", "7200000"); err != nil {
		return err
	}
	refusal := a.SetConfig(ctx, topic, "message.timestamp.type", "LogAppendTime")
	if refusal == nil {
		return errors.New("what cannot be was allowed")
	}
	fmt.Fprintf(b.out, "said %s %s\n", check, oneLine(refusal.Error()))
	after, err := a.Configs(ctx, topic)
	for name, value := range after {
		fmt.Fprintf(b.out, "config %s %s %s\n", check, name, value)
	}
	return err
}

func (b *block) adminGroups(ctx context.Context, a Admin, check string) error {
	topic, group := groupTopic(), b.group(check)
	members, err := a.Members(ctx, os.Getenv("COMPAT_ALIVE_GROUP"), topic)
	if (err != nil) != (b.Cannot["member."+check] != "") {
		return errors.Join(err, fmt.Errorf("%d members are described", len(members)))
	}
	for i, held := range members {
		fmt.Fprintf(b.out, "member %s %d %s\n", check, i, heldForm(held))
	}
	if err := a.SetOffsets(ctx, group, topic, map[int32]int64{0: 1, 1: 2, 2: 3}); err != nil {
		return err
	}
	if err := a.SetOffsets(ctx, group, topic, map[int32]int64{0: 5}); err != nil {
		return err
	}
	if err := a.DeleteOffset(ctx, group, topic, 2); err != nil {
		return err
	}
	got, err := a.Offsets(ctx, group, topic)
	if err != nil || len(got) != 2 || got[0] != 5 || got[1] != 2 {
		return errors.Join(err, fmt.Errorf("offsets %v, want 5 and 2", got))
	}
	return b.delete(ctx, check, a.Groups, a.DeleteGroup)
}

func heldForm(held []int32) string {
	words := make([]string, len(held))
	for i, p := range held {
		words[i] = strconv.Itoa(int(p))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ",")
}
