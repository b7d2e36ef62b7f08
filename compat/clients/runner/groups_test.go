package main

import (
	"testing"
)

// What members held and read is judged, whatever the client says of itself.
func TestGroupEvidence(t *testing.T) {
	b := newBlock("c", "1")
	for _, line := range []string{
		"group group-3 g", "member group-3 0 0,1", "member group-3 1 2", "member group-3 2 3",
		"got group-resume 0 0", "rebalances group-static 1 1", "pass group-3",
	} {
		if problem := b.take(line); problem != "" {
			t.Errorf("%q: %s", line, problem)
		}
	}
	for _, line := range []string{"group group-3 again", "member group-3 0", "member group-3 0 x", "got group-resume 0", "rebalances group-static 1"} {
		if b.take(line) == "" {
			t.Errorf("%q is taken", line)
		}
	}
	if why := shared(b.members["group-3"], 3); why != "" {
		t.Error(why)
	}
	for name, members := range map[string][][]int32{
		"a member too few":     {{0, 1}, {2, 3}},
		"a partition of none":  {{0}, {1}, {2}},
		"a partition of two":   {{0, 1}, {1, 2}, {3}},
		"a member with none":   {{0, 1}, {2, 3}, {}},
		"a partition too many": {{0, 1}, {2, 3}, {4}},
	} {
		if shared(members, 3) == "" {
			t.Errorf("%s is taken for shared", name)
		}
	}
	if why := split([][]int32{{0, 1}, {2, 3}, {}}, 3); why != "" {
		t.Error(why)
	}
	if split([][]int32{{0, 1, 2}, {3}, {}}, 3) == "" {
		t.Error("one member holds more than its share, and that is taken for split")
	}
	var got []position
	for p := range int32(partitions) {
		for o := range int64(groupCount) {
			got = append(got, position{p, o})
		}
	}
	if why := once(got); why != "" {
		t.Error(why)
	}
	for name, bad := range map[string][]position{"one less": got[1:], "one twice": append(got[:len(got):len(got)], got[0]), "one beyond": append(got[:len(got):len(got)], position{0, groupCount})} {
		if once(bad) == "" {
			t.Errorf("%s is taken for once", name)
		}
	}
}
