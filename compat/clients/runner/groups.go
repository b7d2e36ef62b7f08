package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/queen-mq/queen-edge/compat/demo"
)

// position is a record's place in the topic that groups read.
type position struct {
	partition int32
	offset    int64
}

// takeGroup reads the lines of group checks.
func (b *block) takeGroup(word string, words []string) string {
	check := words[0]
	var numbers []int
	for _, text := range words[1:] {
		n, err := strconv.Atoi(text)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	switch {
	case word == "group" && len(words) == 2 && b.groups[check] == "":
		b.groups[check] = words[1]
	case word == "got" && len(words) == 3 && len(numbers) == 2:
		b.got[check] = append(b.got[check], position{int32(numbers[0]), int64(numbers[1])})
	case word == "rebalances" && len(words) == 3 && len(numbers) == 2:
		b.rebalances[check] = [2]int{numbers[0], numbers[1]}
	case word == "member" && len(words) == 3:
		held, err := heldOf(words[2])
		if err != nil {
			return "a member holds partitions, or none"
		}
		b.members[check] = append(b.members[check], held)
	default:
		return word + " has other words"
	}
	return ""
}

func heldOf(text string) ([]int32, error) {
	if text == "none" {
		return nil, nil
	}
	var held []int32
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, err
		}
		held = append(held, int32(n))
	}
	return held, nil
}

// judgeGroups looks at what the members of a client's groups held and read, and
// at what the groups have committed.
func (j judge) judgeGroups(ctx context.Context, b *block) {
	for check, n := range map[string]int{"group-3": 3, "group-10": 10, "group-cooperative": 3, "group-killed": 1, "group-static": 2} {
		why := shared(b.members[check], n)
		if check == "group-cooperative" && b.cannot["balance"] != "" {
			why = split(b.members[check], n)
		}
		if why != "" {
			b.refute(check, "%s", why)
		}
	}
	if r, ok := b.rebalances["group-static"]; !ok || r[0] != r[1] || r[0] == 0 {
		b.refute("group-static", "the member that stays was given partitions %d times before and %d after", r[0], r[1])
	}
	if why := once(b.got["group-resume"]); why != "" {
		b.refute("group-resume", "%s", why)
	}
	if b.results["group-resume"].Verdict != "pass" {
		return
	}
	if err := committedAll(ctx, j.demo, b.groups["group-resume"], j.fix.groupTopic); err != nil {
		b.refute("group-resume", "%s", err.Error())
	}
}

// shared says how the members do not share the partitions; "" if they do. Where
// there are enough partitions each has one.
func shared(members [][]int32, n int) string {
	idle := 0
	for _, held := range members {
		if len(held) == 0 {
			idle++
		}
	}
	if idle != max(n-partitions, 0) {
		return fmt.Sprintf("%d of %d members hold nothing", idle, n)
	}
	return split(members, n)
}

// split says how the partitions are not split among the members: each is held
// by one of them, and none holds more than its share, rounded up.
func split(members [][]int32, n int) string {
	var all []int32
	most := 0
	for _, held := range members {
		all = append(all, held...)
		most = max(most, len(held))
	}
	slices.Sort(all)
	switch {
	case len(members) != n:
		return fmt.Sprintf("%d members are shown, want %d", len(members), n)
	case !slices.Equal(all, []int32{0, 1, 2, 3}):
		return fmt.Sprintf("the members hold %v together", all)
	case most > (partitions+n-1)/n:
		return fmt.Sprintf("one of %d members holds %d partitions", n, most)
	}
	return ""
}

// once says which record was not seen exactly once.
func once(got []position) string {
	seen := map[position]int{}
	for _, p := range got {
		seen[p]++
	}
	for p := range int32(partitions) {
		for o := range int64(groupCount) {
			if n := seen[position{p, o}]; n != 1 {
				return fmt.Sprintf("partition %d, offset %d was seen %d times", p, o, n)
			}
		}
	}
	if len(got) != partitions*groupCount {
		return fmt.Sprintf("%d records were seen, want %d", len(got), partitions*groupCount)
	}
	return ""
}

// committedAll checks that a group has committed the end of every partition.
func committedAll(ctx context.Context, d *demo.Demo, group, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c, err := d.Kafka("ACME")
	if err != nil {
		return err
	}
	defer c.Close()
	offsets, err := kadm.NewClient(c).FetchOffsets(ctx, group)
	if err != nil {
		return fmt.Errorf("what group %q has committed: %w", group, err)
	}
	for p := range int32(partitions) {
		if o, ok := offsets.Lookup(topic, p); !ok || o.At != groupCount {
			return fmt.Errorf("group %q has committed %d of partition %d, want %d", group, o.At, p, groupCount)
		}
	}
	return nil
}
