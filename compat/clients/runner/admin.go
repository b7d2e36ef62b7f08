package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/demo"
)

// doomed is how many topics, and how many groups, there are to be deleted: every
// block deletes one of each.
const doomed = 32

// What an administrator is to leave behind, by README.md one folder up.
const (
	adminPartitions   = 3
	adminRetention    = "3600000"
	adminRetentionNew = "7200000"
)

var (
	adminOffsets    = map[int32]int64{0: 5, 1: 2}
	adminOffsetsAll = map[int32]int64{0: 5, 1: 2, 2: 3} // of a client that cannot delete one
	ofRefused       = regexp.MustCompile(`never stamped anew`)
)

// administered is what there is for administrators to list, to look at and to
// delete. A client cannot know the names without listing them.
type administered struct {
	prefix string          // of the topics and groups to be deleted
	left   map[string]bool // those that nobody has claimed to have deleted
	group  string          // one that has a member for as long as the run lasts
	member *kgo.Client     // of that group
	judge  *kadm.Client    // looks at what is left
}

func (f *fixtures) administer(ctx context.Context, d *demo.Demo) (err error) {
	a := &administered{prefix: f.run + "-doomed-", group: f.run + "-alive", left: map[string]bool{}}
	f.admin = a
	c, err := d.Kafka("ACME")
	if err != nil {
		return err
	}
	a.judge = kadm.NewClient(c)
	names := make([]string, doomed)
	for i := range names {
		names[i] = a.prefix + strconv.Itoa(i)
		a.left["topic "+names[i]], a.left["group "+names[i]] = true, true
	}
	made, err := a.judge.CreateTopics(ctx, 1, 1, nil, names...)
	if err := errors.Join(err, made.Error()); err != nil {
		return fmt.Errorf("topics to delete: %w", err)
	}
	for _, group := range names {
		var offsets kadm.Offsets
		offsets.AddOffset(f.groupTopic, 0, 1, -1)
		if err := a.judge.CommitAllOffsets(ctx, group, offsets); err != nil {
			return fmt.Errorf("groups to delete: %w", err)
		}
	}
	return a.live(ctx, d, f.groupTopic)
}

// live joins the group that clients describe.
func (a *administered) live(ctx context.Context, d *demo.Demo, topic string) (err error) {
	holds := make(chan []int32, 1)
	a.member, err = d.Kafka("ACME", kgo.ConsumerGroup(a.group), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.RangeBalancer()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			select {
			case holds <- p[topic]:
			default: // a later one: the group has one member, so it is the same
			}
		}))
	if err != nil {
		return err
	}
	select {
	case held := <-holds:
		if len(held) != partitions {
			return fmt.Errorf("the member that clients look at holds %v", held)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the member that clients look at is given nothing: %w", ctx.Err())
	}
}

// close ends what a run's administration needs.
func (a *administered) close() {
	if a.member != nil {
		a.member.Close()
	}
	if a.judge != nil {
		a.judge.Close()
	}
}

// takeAdmin reads the lines of administrators.
func (b *block) takeAdmin(word string, words []string) string {
	check := words[0]
	switch {
	case word == "gone" && len(words) == 2 && b.gone[check] == "":
		b.gone[check] = words[1]
	case word == "config" && len(words) == 3:
		if b.configs[check] == nil {
			b.configs[check] = map[string]string{}
		}
		b.configs[check][words[1]] = words[2]
	default:
		return word + " has other words"
	}
	return ""
}

// judgeAdmin looks at what administrators left behind.
func (j judge) judgeAdmin(ctx context.Context, b *block) {
	for check, look := range map[string]func(context.Context, *block) error{
		"admin-topics": j.adminTopics, "admin-configs": j.adminConfigs, "admin-groups": j.adminGroups,
	} {
		if b.results[check].Verdict != "pass" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, readTimeout)
		if err := look(limited, b); err != nil {
			b.refute(check, "%s", err.Error())
		}
		cancel()
	}
}

func (j judge) adminTopics(ctx context.Context, b *block) error {
	a := j.fix.admin
	topic, gone := b.topics["admin-topics"], b.gone["admin-topics"]
	if !strings.HasPrefix(topic, j.fix.run+"-") {
		return fmt.Errorf("its topic %q does not start with the run's prefix", topic)
	}
	if err := a.claim("topic " + gone); err != nil {
		return err
	}
	listed, err := a.judge.ListTopics(ctx)
	if err := errors.Join(err, listed[topic].Err); err != nil {
		return err
	}
	if listed.Has(gone) {
		return fmt.Errorf("%s is still there", gone)
	}
	if n := len(listed[topic].Partitions); n != adminPartitions {
		return fmt.Errorf("%s has %d partitions, want %d", topic, n, adminPartitions)
	}
	configs, err := a.configs(ctx, topic)
	if err == nil && configs["retention.ms"] != adminRetention {
		err = fmt.Errorf("%s was made with a retention.ms of %s, want %s", topic, configs["retention.ms"], adminRetention)
	}
	return err
}

func (j judge) adminConfigs(ctx context.Context, b *block) error {
	topic := b.topics["admin-configs"]
	if !strings.HasPrefix(topic, j.fix.run+"-") {
		return fmt.Errorf("its topic %q does not start with the run's prefix", topic)
	}
	configs, err := j.fix.admin.configs(ctx, topic)
	if err != nil {
		return err
	}
	if configs["retention.ms"] != adminRetentionNew {
		return fmt.Errorf("retention.ms is %s, want %s", configs["retention.ms"], adminRetentionNew)
	}
	if seen := b.configs["admin-configs"]; !maps.Equal(seen, configs) {
		return fmt.Errorf("the client saw %v, want %v", seen, configs)
	}
	return nil
}

func (j judge) adminGroups(ctx context.Context, b *block) error {
	a := j.fix.admin
	gone := b.gone["admin-groups"]
	if err := a.claim("group " + gone); err != nil {
		return err
	}
	groups, err := a.judge.ListGroups(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(groups.Groups(), gone) {
		return fmt.Errorf("%s is still there", gone)
	}
	if left, err := a.judge.FetchOffsets(ctx, gone); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s still has %d topics with offsets", gone, len(left)))
	}
	if members := b.members["admin-groups"]; b.cannot["member.admin-groups"] == "" || len(members) > 0 {
		if why := shared(members, 1); why != "" {
			return fmt.Errorf("the group that was described: %s", why)
		}
	}
	want := adminOffsets
	if b.cannot["delete.admin-groups"] != "" {
		want = adminOffsetsAll
	}
	return a.committed(ctx, b.groups["admin-groups"], j.fix.groupTopic, want)
}

// claim takes a name off the list of what is to be deleted.
func (a *administered) claim(what string) error {
	if !a.left[what] {
		return fmt.Errorf("%q was not there to be deleted, or another client deleted it", what)
	}
	delete(a.left, what)
	return nil
}

func (a *administered) configs(ctx context.Context, topic string) (map[string]string, error) {
	described, err := a.judge.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	r, err := described.On(topic, nil)
	if err := errors.Join(err, r.Err); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, c := range r.Configs {
		out[c.Key] = c.MaybeValue()
	}
	return out, nil
}

// committed checks that a group has these offsets and no others.
func (a *administered) committed(ctx context.Context, group, topic string, want map[int32]int64) error {
	offsets, err := a.judge.FetchOffsets(ctx, group)
	if err := errors.Join(err, offsets.Error()); err != nil {
		return fmt.Errorf("what group %q has committed: %w", group, err)
	}
	got := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.At >= 0 {
			got[o.Partition] = o.At
		}
	})
	if !maps.Equal(got, want) {
		return fmt.Errorf("group %q has committed %v, want %v", group, got, want)
	}
	return nil
}
