package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// deleteGroups deletes groups and returns their codes, in the order asked.
func deleteGroups(t *testing.T, w *rig.Wire, version int16, groups ...string) []int16 {
	t.Helper()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = version, groups
	resp := w.Ask(req).(*kmsg.DeleteGroupsResponse)
	var codes []int16
	for i, g := range resp.Groups {
		if g.Group != groups[i] {
			t.Fatalf("group %d is %q, want %q", i, g.Group, groups[i])
		}
		codes = append(codes, g.ErrorCode)
	}
	if len(codes) != len(groups) {
		t.Fatalf("%d of %d groups are answered", len(codes), len(groups))
	}
	return codes
}

// offsetDelete deletes offsets and returns its code and, where that is 0, those
// of the partitions.
func offsetDelete(t *testing.T, w *rig.Wire, group string, positions ...at) (code int16, codes []int16) {
	t.Helper()
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	for _, a := range positions {
		rt := kmsg.NewOffsetDeleteRequestTopic()
		rt.Topic = a.topic
		rt.Partitions = []kmsg.OffsetDeleteRequestTopicPartition{{Partition: a.partition}}
		req.Topics = append(req.Topics, rt)
	}
	resp := w.Ask(req).(*kmsg.OffsetDeleteResponse)
	for i, rt := range resp.Topics {
		if rt.Topic != positions[i].topic || len(rt.Partitions) != 1 || rt.Partitions[0].Partition != positions[i].partition {
			t.Fatalf("%+v is answered for %+v", rt, positions[i])
		}
		codes = append(codes, rt.Partitions[0].ErrorCode)
	}
	if resp.ErrorCode == 0 && len(codes) != len(positions) || resp.ErrorCode != 0 && len(codes) != 0 {
		t.Fatalf("code %d with %d topics", resp.ErrorCode, len(codes))
	}
	return resp.ErrorCode, codes
}

func TestDeleteGroups(t *testing.T) {
	r := rig.Start(t)
	w, globex := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	row := wireRow(t, 42)
	for version := row.Min; version <= row.Max; version++ {
		wide := make([]at, 400)
		for i := range wide {
			wide[i] = at{topic: "t", partition: int32(i), offset: 1}
		}
		mustCommit(t, w, "g:", wide...)
		mustCommit(t, w, "g", at{topic: "t", offset: 2})
		mustCommit(t, globex, "g:", at{topic: "t", offset: 3})
		if got := deleteGroups(t, w, version, "g:", "none", "", strings.Repeat("x", 256), "g:"); !slices.Equal(got, []int16{0, 69, 24, 24, 69}) {
			t.Errorf("v%d: codes %v", version, got)
		}
		if got := committed(t, w, offsetRequest(7, "g:")); len(got) != 0 {
			t.Errorf("v%d: left are %v", version, got)
		}
		for _, other := range []struct {
			w     *rig.Wire
			group string
			want  string
		}{{w, "g", "t/0=2"}, {globex, "g:", "t/0=3"}} {
			if got := committed(t, other.w, offsetRequest(7, other.group)); !slices.Equal(got, []string{other.want}) {
				t.Errorf("v%d: another group reads %v, want %s", version, got, other.want)
			}
		}
	}
	if got := deleteGroups(t, r.Login(t, rig.Produce), 2, "g"); !slices.Equal(got, []int16{30}) {
		t.Errorf("without consume: codes %v", got)
	}
	many, want := make([]string, 103), make([]int16, 103)
	for i := range many {
		many[i], want[i] = fmt.Sprintf("none%d", i), 69
	}
	copy(want[100:], []int16{15, 15, 15})
	if got := deleteGroups(t, w, 2, many...); !slices.Equal(got, want) {
		t.Errorf("103 groups: codes %v", got)
	}
	if got := deleteGroups(t, w, 2); len(got) != 0 {
		t.Errorf("no groups: codes %v", got)
	}
}

// A deletion that fails halfway is retriable, and done when it is repeated.
func TestDeleteGroupsHalfway(t *testing.T) {
	r, f := faulty(t)
	w := r.Login(t, rig.Acme)
	for _, status := range []int{-1, 503, 429} {
		mustCommit(t, w, "g", at{topic: "t", offset: 1})
		f.set(func(f *cellFaults) { f.refuse = refusing("/api/v1/kv", `"delete"`, status) })
		if got := deleteGroups(t, w, 2, "g"); !slices.Equal(got, []int16{15}) {
			t.Errorf("%d: codes %v, want 15", status, got)
		}
		if code, _ := offsetDelete(t, w, "g", at{topic: "t"}); code != 15 {
			t.Errorf("%d: offsets are answered %d, want 15", status, code)
		}
		f.set(func(f *cellFaults) { f.refuse = nil })
		if got := deleteGroups(t, w, 2, "g"); !slices.Equal(got, []int16{0}) {
			t.Errorf("%d: codes %v when repeated", status, got)
		}
	}
	for status, code := range map[int]int16{403: 30, 500: -1} {
		f.set(func(f *cellFaults) { f.refuse = refusing("/api/v1/kv", "", status) })
		if got := deleteGroups(t, w, 2, "g"); !slices.Equal(got, []int16{code}) {
			t.Errorf("%d: codes %v, want %d", status, got, code)
		}
		if got, _ := offsetDelete(t, w, "g", at{topic: "t"}); got != code {
			t.Errorf("%d: offsets are answered %d, want %d", status, got, code)
		}
	}
}

func TestOffsetDelete(t *testing.T) {
	r := rig.Start(t)
	w, globex := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	mustCommit(t, w, "g", at{topic: "t", offset: 1}, at{topic: "t", partition: 1, offset: 2}, at{topic: "u", offset: 3})
	mustCommit(t, globex, "g", at{topic: "t", offset: 4})
	code, codes := offsetDelete(t, w, "g", at{topic: "t"}, at{topic: "t", partition: 7}, at{topic: "t", partition: -1},
		at{topic: "__consumer_offsets"}, at{topic: "a b"}, at{topic: "t"}, at{topic: "none"})
	if code != 0 || !slices.Equal(codes, []int16{0, 0, 3, 3, 3, 0, 0}) {
		t.Errorf("code %d, codes %v", code, codes)
	}
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"t/1=2", "u/0=3"}) {
		t.Errorf("left are %v", got)
	}
	if got := committed(t, globex, offsetRequest(7, "g")); !slices.Equal(got, []string{"t/0=4"}) {
		t.Errorf("the other tenant reads %v", got)
	}
	// The group stays when its last offset goes.
	for range 2 {
		if code, codes := offsetDelete(t, w, "g", at{topic: "t", partition: 1}, at{topic: "u"}); code != 0 || !slices.Equal(codes, []int16{0, 0}) {
			t.Errorf("code %d, codes %v", code, codes)
		}
	}
	for group, want := range map[string]int16{"none": 69, "": 24, strings.Repeat("x", 256): 24} {
		if code, _ := offsetDelete(t, w, group, at{topic: "t"}); code != want {
			t.Errorf("group %.10q: code %d, want %d", group, code, want)
		}
	}
	if code, _ := offsetDelete(t, r.Login(t, rig.Produce), "g", at{topic: "t"}); code != 30 {
		t.Errorf("without consume: code %d", code)
	}
	for n, want := range map[int]int16{4096: 0, 4097: 42} {
		many := make([]at, n)
		for i := range many {
			many[i] = at{topic: "t", partition: int32(i)}
		}
		if code, _ := offsetDelete(t, w, "g", many...); code != want {
			t.Errorf("%d partitions: code %d, want %d", n, code, want)
		}
	}
}
