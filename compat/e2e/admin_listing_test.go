package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// There is no authoriser, in the sentences that tools compare.
func TestAdminACLs(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	for version := int16(1); version <= 3; version++ {
		describe := kmsg.NewPtrDescribeACLsRequest()
		describe.Version = version
		d := w.Ask(describe).(*kmsg.DescribeACLsResponse)
		if d.ErrorCode != 54 || adminText(d.ErrorMessage) != "No Authorizer is configured on the broker" || len(d.Resources) != 0 {
			t.Errorf("describe v%d: %+v", version, d)
		}
		create := kmsg.NewPtrCreateACLsRequest()
		create.Version, create.Creations = version, make([]kmsg.CreateACLsRequestCreation, 2)
		c := w.Ask(create).(*kmsg.CreateACLsResponse)
		remove := kmsg.NewPtrDeleteACLsRequest()
		remove.Version, remove.Filters = version, make([]kmsg.DeleteACLsRequestFilter, 2)
		r := w.Ask(remove).(*kmsg.DeleteACLsResponse)
		if len(c.Results) != 2 || len(r.Results) != 2 {
			t.Fatalf("v%d: %d and %d results", version, len(c.Results), len(r.Results))
		}
		for i := range 2 {
			for _, got := range []string{fmt.Sprintf("%d %s", c.Results[i].ErrorCode, adminText(c.Results[i].ErrorMessage)), fmt.Sprintf("%d %s", r.Results[i].ErrorCode, adminText(r.Results[i].ErrorMessage))} {
				adminWants(t, fmt.Sprintf("v%d", version), got, "54 No Authorizer is configured.")
			}
		}
		create.Creations, remove.Filters = nil, nil
		if len(w.Ask(create).(*kmsg.CreateACLsResponse).Results) != 0 || len(w.Ask(remove).(*kmsg.DeleteACLsResponse).Results) != 0 {
			t.Errorf("v%d: an empty request has results", version)
		}
	}
}

// Log directories: the cell's own sizes, at every version, and only this
// tenant's topics.
func TestAdminLogDirs(t *testing.T) {
	fault := &faultyCell{}
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = fault.at(t) })
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "a", 3)
	adminMade(t, w, "b", 2)
	adminMade(t, r.Login(t, rig.Globex), "theirs", 1)
	wireMustStore(t, w, "a", 1, wireBatch{values: []string{strings.Repeat("x", 3000)}})
	ask := func(version int16, topics ...kmsg.DescribeLogDirsRequestTopic) *kmsg.DescribeLogDirsResponse {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Version, req.Topics = version, topics
		return w.Ask(req).(*kmsg.DescribeLogDirsResponse)
	}
	sizes := func(resp *kmsg.DescribeLogDirsResponse) string {
		var out []string
		for _, d := range resp.Dirs {
			for _, topic := range d.Topics {
				for _, p := range topic.Partitions {
					kind := "0"
					if p.Size >= 3000 && p.Size < 6000 {
						kind = "3k"
					} else if p.Size != 0 {
						kind = fmt.Sprint(p.Size)
					}
					out = append(out, fmt.Sprintf("%s/%d:%s", topic.Topic, p.Partition, kind))
				}
			}
		}
		return strings.Join(out, " ")
	}
	for version := wireRow(t, 35).Min; version <= wireRow(t, 35).Max; version++ {
		all := ask(version)
		if len(all.Dirs) != 1 || all.Dirs[0].ErrorCode != 0 || all.Dirs[0].Dir != "queen" || version >= 4 && (all.Dirs[0].TotalBytes != -1 || all.Dirs[0].UsableBytes != -1) {
			t.Fatalf("v%d: %+v", version, all)
		}
		adminWants(t, "all", sizes(all), "a/0:0 a/1:3k a/2:0 b/0:0 b/1:0")
		some := ask(version, kmsg.DescribeLogDirsRequestTopic{Topic: "a", Partitions: []int32{2, 1, 1, 9, -1}}, kmsg.DescribeLogDirsRequestTopic{Topic: "theirs", Partitions: []int32{0}})
		adminWants(t, "some", sizes(some), "a/2:0 a/1:3k")
	}
	// Sizes are reused for a while; a failing cell is the request's error.
	calls := 0
	fault.set(func(path, _ string) (int, string) {
		if strings.HasSuffix(path, "/sizes") {
			calls++
			return 503, `{"error":"later"}`
		}
		return 0, ""
	})
	adminWants(t, "reused", sizes(ask(4)), "a/0:0 a/1:3k a/2:0 b/0:0 b/1:0")
	if calls != 0 {
		t.Errorf("%d calls", calls)
	}
	adminMade(t, w, "c", 1)
	if got := ask(3); got.ErrorCode != 7 || len(got.Dirs) != 0 {
		t.Errorf("v3, a cell that fails: %+v", got)
	}
	if got := ask(2); len(got.Dirs) != 1 || got.Dirs[0].ErrorCode != 7 {
		t.Errorf("v2, a cell that fails: %+v", got)
	}
}

// A cell without sizes: no directory, and no error. At most so many topics are
// asked for.
func TestAdminLogDirsBounds(t *testing.T) {
	fault := &faultyCell{}
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = fault.at(t)
		o.Config = func(c *config.Config) { c.Limits.SizeCalls = 3 }
	})
	w := r.Login(t, rig.Acme)
	for i := range 5 {
		adminMade(t, w, fmt.Sprint("t", i), 1)
	}
	calls, status := 0, 0
	fault.set(func(path, _ string) (int, string) {
		if !strings.HasPrefix(path, "GET /api/v1/resources/queues/") {
			return 0, ""
		}
		calls++
		return status, `{"code":"no_such_route"}`
	})
	ask := func() *kmsg.DescribeLogDirsResponse {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Version = 4
		return w.Ask(req).(*kmsg.DescribeLogDirsResponse)
	}
	status = 404
	if got := ask(); got.ErrorCode != 0 || len(got.Dirs) != 0 {
		t.Errorf("a cell without sizes: %+v", got)
	}
	calls, status = 0, 0
	if got := ask(); len(got.Dirs) != 1 || len(got.Dirs[0].Topics) != 3 || calls != 3 {
		t.Errorf("%d calls: %+v", calls, got)
	}
	if got := ask(); len(got.Dirs) != 1 || len(got.Dirs[0].Topics) != 5 || calls != 5 {
		t.Errorf("then %d calls: %+v", calls, got)
	}
}

// What has configs: topics and the broker; version 0 asks for client metrics.
func TestAdminListConfigResources(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "a", 1)
	adminMade(t, r.Login(t, rig.Globex), "theirs", 1)
	for _, test := range []struct {
		version int16
		types   []int8
		code    int16
		want    string
	}{
		{0, nil, 0, ""},
		{1, nil, 0, "4:0 2:a"},
		{1, []int8{2}, 0, "2:a"},
		{1, []int8{4}, 0, "4:0"},
		{1, []int8{8, 16, 32}, 0, ""},
		{1, []int8{2, 1}, 35, ""},
		{1, []int8{-1}, 35, ""},
	} {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = test.version, test.types
		resp := w.Ask(req).(*kmsg.ListConfigResourcesResponse)
		var out []string
		for _, c := range resp.ConfigResources {
			out = append(out, fmt.Sprintf("%d:%s", c.Type, c.Name))
		}
		if got := strings.Join(out, " "); resp.ErrorCode != test.code || got != test.want {
			t.Errorf("v%d %v: code %d, %q; want %d, %q", test.version, test.types, resp.ErrorCode, got, test.code, test.want)
		}
	}
}

// Topics by partitions: sorted, limited, gone on with; and nothing is made.
func TestAdminDescribeTopicPartitions(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	adminMade(t, w, "a", 3)
	adminMade(t, w, "b", 5)
	adminMade(t, w, "c", 1)
	type cursor = kmsg.DescribeTopicPartitionsRequestCursor
	for _, test := range []struct {
		names  []string
		limit  int32
		cursor *cursor
		want   string
	}{
		{nil, 2000, nil, "a:0-2 b:0-4 c:0-0"},
		{[]string{"c", "a", "c"}, 2000, nil, "a:0-2 c:0-0"},
		{nil, 3, nil, "a:0-2 b: next b/0"},
		{nil, 4, nil, "a:0-2 b:0-0 next b/1"},
		{nil, 4, &cursor{Topic: "b", Partition: 1}, "b:1-4 c: next c/0"},
		{nil, 9, &cursor{Topic: "b", Partition: 1}, "b:1-4 c:0-0"},
		{nil, 9, &cursor{Topic: "aa", Partition: 7}, "b:0-4 c:0-0"},
		{nil, 9, &cursor{Topic: "b", Partition: 99}, "b: c:0-0"},
		{nil, 9, &cursor{Topic: "z"}, ""},
		{nil, 0, nil, "a:0-0 next a/1"},
		{nil, -5, nil, "a:0-0 next a/1"},
		{[]string{"none", "a b", "__x", "", "a"}, 2000, nil, "=17 __x=3 a:0-2 a b=17 none=3"},
	} {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit, req.Cursor = test.limit, test.cursor
		for _, name := range test.names {
			req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
		}
		resp := w.Ask(req).(*kmsg.DescribeTopicPartitionsResponse)
		var out []string
		for _, topic := range resp.Topics {
			if topic.ErrorCode != 0 {
				out = append(out, fmt.Sprintf("%s=%d", *topic.Topic, topic.ErrorCode))
				continue
			}
			text := *topic.Topic + ":"
			if n := len(topic.Partitions); n > 0 {
				text += fmt.Sprintf("%d-%d", topic.Partitions[0].Partition, topic.Partitions[n-1].Partition)
			}
			for _, p := range topic.Partitions {
				if p.LeaderID != 0 || p.LeaderEpoch != -1 || !slices.Equal(p.Replicas, []int32{0}) || !slices.Equal(p.ISR, []int32{0}) {
					t.Errorf("%s: %+v", *topic.Topic, p)
				}
			}
			out = append(out, text)
		}
		if resp.NextCursor != nil {
			out = append(out, fmt.Sprintf("next %s/%d", resp.NextCursor.Topic, resp.NextCursor.Partition))
		}
		adminWants(t, fmt.Sprint(test.names, test.limit, test.cursor), strings.Join(out, " "), test.want)
	}
	if got := adminWidth(w, "none"); got != -1 {
		t.Errorf("describing has made a topic of %d partitions", got)
	}
}

// Bounded answers: 10,000 names in one Metadata and no more, 200,000 partitions
// in one listing and no more.
func TestAdminLargeListings(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	names := make([]string, 10_050)
	for i := range names {
		names[i] = fmt.Sprintf("none-%05d", i)
	}
	req := wireMetadata(names...)
	req.AllowAutoTopicCreation = false
	resp := w.Ask(req).(*kmsg.MetadataResponse)
	if len(resp.Topics) != 10_000 || resp.Topics[9_999].ErrorCode != 3 || *resp.Topics[9_999].Topic != names[9_999] {
		t.Errorf("%d topics", len(resp.Topics))
	}
	for i := range 6 {
		adminMade(t, w, fmt.Sprintf("wide-%d", i), 40_000)
	}
	all := wireMetadata()
	all.Topics = nil
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	id := w.Send(all)
	answer, err := w.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	got := all.ResponseKind().(*kmsg.MetadataResponse)
	if err := got.ReadFrom(answer[5:]); err != nil || id == 0 {
		t.Fatal(err)
	}
	if n := len(got.Topics); n != 5 {
		t.Errorf("%d topics of 40,000 partitions in one listing, want 5", n)
	}
	taken := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("200,000 partitions: an answer of %d MiB, %d MiB allocated", len(answer)>>20, taken)
	if len(answer) > 16<<20 {
		t.Errorf("an answer of %d bytes", len(answer))
	}
	logs := kmsg.NewPtrDescribeLogDirsRequest()
	logs.Version = 4
	dirs := w.Ask(logs).(*kmsg.DescribeLogDirsResponse)
	if n := len(dirs.Dirs[0].Topics); n != 5 {
		t.Errorf("%d topics in the log directories, want 5", n)
	}
	parts := kmsg.NewPtrDescribeTopicPartitionsRequest()
	parts.ResponsePartitionLimit = 1_000_000
	described := w.Ask(parts).(*kmsg.DescribeTopicPartitionsResponse)
	if n := len(described.Topics[0].Partitions); n != 2000 || described.NextCursor == nil || described.NextCursor.Partition != 2000 {
		t.Errorf("%d partitions described, then %+v", n, described.NextCursor)
	}
}

// franz-go's admin client, from nothing to nothing.
func TestAdminWithKadm(t *testing.T) {
	r := rig.Start(t)
	adm := kadm.NewClient(r.Kafka(t, rig.Acme))
	ctx := rig.Context(t)
	fresh := kadm.WithAuthorizedOps(ctx) // asks every time, where the client would answer from memory
	value := func(s string) *string { return &s }
	made, err := adm.CreateTopics(ctx, 6, 1, map[string]*string{"retention.ms": value("86400000"), "cleanup.policy": value("compact,delete")}, "orders", "bills")
	if err != nil || made.Error() != nil {
		t.Fatal(err, made.Error())
	}
	if got := made["orders"]; got.NumPartitions != 6 || got.ReplicationFactor != 1 || adminText(got.Configs["retention.ms"].Value) != "86400000" {
		t.Errorf("made: %+v", got)
	}
	if _, err := adm.CreateTopic(ctx, 6, 1, nil, "orders"); kerr.TopicAlreadyExists != err {
		t.Errorf("made twice: %v", err)
	}
	topics, err := adm.ListTopics(fresh)
	if err != nil || len(topics) != 2 || len(topics["orders"].Partitions) != 6 {
		t.Errorf("listed: %v, %v", topics, err)
	}
	altered, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: value("60000")}, {Op: kadm.SubtractConfig, Name: "cleanup.policy", Value: value("compact")},
	}, "orders")
	if err != nil || altered[0].Err != nil {
		t.Errorf("altered: %+v, %v", altered, err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "orders", "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		if c.Name == "none" {
			if c.Err != kerr.UnknownTopicOrPartition {
				t.Errorf("described: %v", c.Err)
			}
			continue
		}
		got := map[string]string{}
		for _, kv := range c.Configs {
			got[kv.Key] = kv.MaybeValue()
		}
		if got["retention.ms"] != "60000" || got["cleanup.policy"] != "delete" {
			t.Errorf("described: %v", got)
		}
	}
	if _, err := adm.DescribeBrokerConfigs(ctx, 0); err != nil {
		t.Errorf("broker: %v", err)
	}
	wider, err := adm.UpdatePartitions(ctx, 9, "orders")
	if err != nil || wider.Error() != nil {
		t.Errorf("widened: %v, %v", wider, err)
	}
	if res, err := adm.CreatePartitions(ctx, 1, "bills"); err != nil || res["bills"].Err != nil {
		t.Errorf("one more: %v, %v", res, err)
	}
	if topics, err = adm.ListTopics(fresh); err != nil || len(topics["orders"].Partitions) != 9 || len(topics["bills"].Partitions) != 7 {
		t.Errorf("widened: %v, %v", topics, err)
	}
	logs, err := adm.DescribeAllLogDirs(ctx, nil)
	if err != nil || len(logs[0]["queen"].Topics) != 2 {
		t.Errorf("log directories: %+v, %v", logs, err)
	}
	gone, err := adm.DeleteTopics(ctx, "orders", "bills", "none")
	if err != nil || gone["orders"].Err != nil || gone["bills"].Err != nil || gone["none"].Err != kerr.UnknownTopicOrPartition {
		t.Errorf("deleted: %+v, %v", gone, err)
	}
	if topics, err = adm.ListTopics(fresh); err != nil || len(topics) != 0 {
		t.Errorf("at the end: %v, %v", topics, err)
	}
}
