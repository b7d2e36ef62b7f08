package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// What is committed at any version is read at any version.
func TestCommitEveryVersion(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	commits, fetches := wireRow(t, 8), wireRow(t, 9)
	for version := commits.Min; version <= commits.Max; version++ {
		offset := int64(100 + version)
		req := commitRequest(version, "g", at{"orders", 0, offset, kmsg.StringPtr("m")}, at{topic: "orders", partition: 2, offset: offset})
		req.RetentionTimeMillis = -1 // on the wire up to version 4
		req.Topics[0].Partitions[0].LeaderEpoch = 7
		if got := commitCodes(t, w, req); !slices.Equal(got, []int16{0, 0}) {
			t.Fatalf("v%d: codes %v", version, got)
		}
		for read := fetches.Min; read <= fetches.Max; read++ {
			want := []string{at{"orders", 0, offset, kmsg.StringPtr("m")}.String(), "orders/1=-1", at{topic: "orders", partition: 2, offset: offset}.String()}
			if got := committed(t, w, offsetRequest(read, "g", "orders")); !slices.Equal(got, want) {
				t.Errorf("committed at v%d, read at v%d: %v, want %v", version, read, got, want)
			}
			if read >= 2 {
				want := []string{want[0], want[2]}
				if got := committed(t, w, offsetRequest(read, "g")); !slices.Equal(got, want) {
					t.Errorf("committed at v%d, all read at v%d: %v, want %v", version, read, got, want)
				}
			}
		}
	}
}

// Retention −1 and any other keep an offset for good; metadata comes back as it
// was, null as "" (case F of the field cases).
func TestCommitMetadataAndRetention(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	four := strings.Repeat("é", 2048)
	for _, retention := range []int64{-1, 0, 1, 1 << 60} {
		for _, text := range []*string{nil, kmsg.StringPtr(""), kmsg.StringPtr("a\"\\\x00\x1b é 😀"), &four} {
			req := commitRequest(2, "g", at{"orders", 1, retention % 1000, text})
			req.RetentionTimeMillis = retention
			if got := commitCodes(t, w, req); !slices.Equal(got, []int16{0}) {
				t.Fatalf("codes %v", got)
			}
			want := []string{at{"orders", 1, retention % 1000, text}.String()}
			if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, want) {
				t.Errorf("read %.80q, want %.80q", got, want)
			}
		}
	}
	long := four + "x"
	if got := commitCodes(t, w, commitRequest(8, "g", at{"orders", 0, 5, &long}, at{topic: "orders", partition: 2, offset: 5})); !slices.Equal(got, []int16{12, 0}) {
		t.Errorf("4097 bytes of metadata: codes %v, want [12 0]", got)
	}
}

// Each partition is judged by itself, and nothing of a refused one is kept.
func TestCommitCodes(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	long := strings.Repeat("t", 249)
	for _, group := range []string{"", strings.Repeat("é", 256)} {
		if got := commitCodes(t, w, commitRequest(8, group, at{topic: "a", offset: 1}, at{topic: "b", offset: 1})); !slices.Equal(got, []int16{24, 24}) {
			t.Errorf("group of %d bytes: codes %v", len(group), got)
		}
		for _, version := range []int16{1, 2, 7, 8, 10} {
			want := []string{"code 24", "a/0=-1", "a/1=-1", "a/2=-1"}
			switch {
			case version == 1:
				want = []string{"a/0=-1 code 24", "a/1=-1 code 24", "a/2=-1 code 24"}
			case version >= 8:
				want = []string{"code 24"}
			}
			if got := committed(t, w, offsetRequest(version, group, "a")); !slices.Equal(got, want) {
				t.Errorf("v%d: %v, want %v", version, got, want)
			}
		}
		if got := committed(t, w, offsetRequest(7, group)); !slices.Equal(got, []string{"code 24"}) {
			t.Errorf("all of group of %d bytes: %v", len(group), got)
		}
	}
	group := strings.Repeat("é", 100) // 600 bytes escaped: longer than any key
	for _, x := range []struct {
		group string
		at    at
		code  int16
	}{
		{"g", at{topic: "nobody-made-this", offset: 5}, 0},
		{"g", at{topic: "t", partition: 1 << 30, offset: 1 << 62}, 0},
		{"g", at{topic: "t", offset: -1}, 0},
		{"g", at{topic: "t", offset: -2}, 28},
		{"g", at{topic: "t", partition: -1, offset: 1}, 3},
		{"g", at{topic: "", offset: 1}, 3},
		{"g", at{topic: "a b", offset: 1}, 3},
		{"g", at{topic: "__consumer_offsets", offset: 1}, 3},
		{"g", at{topic: long + "t", offset: 1}, 3},
		{"g", at{topic: long, offset: 1}, 0},
		{group, at{topic: "t", offset: 1}, 28},
		{strings.Repeat("g", 255), at{topic: long, offset: 1}, 28},
		{strings.Repeat("g", 250), at{topic: "t", offset: 1}, 0},
	} {
		if got := commitCodes(t, w, commitRequest(8, x.group, x.at)); !slices.Equal(got, []int16{x.code}) {
			t.Errorf("%.20q, %.60q: codes %v, want %d", x.group, x.at.String(), got, x.code)
		}
	}
	req := offsetRequest(7, "g", "__consumer_offsets", "a b", "", "t")
	req.Topics[3].Partitions = []int32{-1, 0, 7}
	want := []string{
		"__consumer_offsets/0=-1", "__consumer_offsets/1=-1", "__consumer_offsets/2=-1", "a b/0=-1", "a b/1=-1", "a b/2=-1",
		"/0=-1", "/1=-1", "/2=-1", "t/-1=-1", "t/0=-1", "t/7=-1",
	}
	if got := committed(t, w, req); !slices.Equal(got, want) {
		t.Errorf("read %q", got)
	}
	if got := committed(t, w, offsetRequest(7, group, "t")); !slices.Equal(got, []string{"t/0=-1", "t/1=-1", "t/2=-1"}) {
		t.Errorf("a group that cannot be stored: %v", got)
	}
	if got := committed(t, w, offsetRequest(7, "unknown")); len(got) != 0 {
		t.Errorf("all of an unknown group: %v", got)
	}
}

// A member of a generation that nobody knows is 22, so that it joins again; a
// group without members takes commits of who is none.
func TestCommitOfStrangers(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	for _, version := range []int16{2, 9} {
		for _, by := range []struct {
			generation int32
			member     string
		}{{1, "m"}, {0, ""}, {-1, "m"}, {5, ""}} {
			req := commitRequest(version, "g", at{topic: "t", offset: 1})
			req.Generation, req.MemberID = by.generation, by.member
			if got := commitCodes(t, w, req); !slices.Equal(got, []int16{22}) {
				t.Errorf("v%d, %+v: codes %v, want 22", version, by, got)
			}
		}
	}
}

// Two keys of one tenant share offsets, and two tenants do not; who may not
// consume is told so.
func TestCommitTenants(t *testing.T) {
	r := rig.Start(t)
	acme, acme2, globex := r.Login(t, rig.Acme), r.Login(t, rig.Acme2), r.Login(t, rig.Globex)
	makeTopic(t, r, rig.Acme, "orders")
	makeTopic(t, r, rig.Globex, "orders")
	mustCommit(t, acme, "g", at{topic: "orders", offset: 10})
	if got := committed(t, globex, offsetRequest(7, "g")); len(got) != 0 {
		t.Errorf("the other tenant reads %v", got)
	}
	mustCommit(t, globex, "g", at{topic: "orders", offset: 99})
	mustCommit(t, acme2, "g", at{topic: "orders", partition: 1, offset: 11})
	want := []string{"orders/0=10", "orders/1=11"}
	for _, w := range []*rig.Wire{acme, acme2, r.Login(t, rig.Consume)} {
		if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	if got := committed(t, globex, offsetRequest(7, "g")); !slices.Equal(got, []string{"orders/0=99"}) {
		t.Errorf("the other tenant reads %v", got)
	}
	producer := r.Login(t, rig.Produce)
	if got := commitCodes(t, producer, commitRequest(8, "g", at{topic: "orders", offset: 1})); !slices.Equal(got, []int16{30}) {
		t.Errorf("commit without consume: codes %v", got)
	}
	if got := committed(t, producer, offsetRequest(7, "g")); !slices.Equal(got, []string{"code 30"}) {
		t.Errorf("read without consume: %v", got)
	}
}

// 300 partitions are one commit, and one read.
func TestCommitWide(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	positions := make([]at, 300)
	want := make([]string, 300)
	fetch := offsetRequest(7, "wide", "t")
	fetch.Topics[0].Partitions = nil
	for i := range positions {
		positions[i] = at{topic: "t", partition: int32(i), offset: int64(i * i)}
		want[i] = positions[i].String()
		fetch.Topics[0].Partitions = append(fetch.Topics[0].Partitions, int32(i))
	}
	mustCommit(t, w, "wide", positions...)
	if got := committed(t, w, fetch); !slices.Equal(got, want) {
		t.Errorf("read %v", got)
	}
	all := committed(t, w, offsetRequest(7, "wide"))
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("all are %v", all)
	}
}

// Group names that would meet if they were not escaped do not.
func TestCommitGroupNames(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	groups := []string{
		"a", "a:", ":a", "a:t", "a:t:0", "a%3A", "a%3At", "a/b", "a%2Fb", "é", "e\u0301", "%C3%A9", "a b", "a\x00", "a.", "A", "%", "%%", "%25",
		":", "::", "s", "s:a", strings.Repeat("é", 70),
	}
	for i, group := range groups {
		mustCommit(t, w, group, at{topic: "t", offset: int64(i)})
	}
	for i, group := range groups {
		want := []string{at{topic: "t", offset: int64(i)}.String()}
		if got := committed(t, w, offsetRequest(7, group)); !slices.Equal(got, want) {
			t.Errorf("group %q reads %v, want %v", group, got, want)
		}
	}
}
