package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// Creating at every version: the width that was asked for is what Metadata shows
// at once, and from version 5 on what the answer says.
func TestAdminCreateTopics(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	row := wireRow(t, 19)
	for version := row.Min; version <= row.Max; version++ {
		declared, plain, zero := fmt.Sprintf("declared-%d", version), fmt.Sprintf("plain-%d", version), fmt.Sprintf("zero-%d", version)
		resp := adminCreate(w, version,
			adminTopic(declared, 7, "retention.ms=86400500", "cleanup.policy=delete", "segment.bytes=1024"),
			adminTopic(plain, -1), adminTopic(zero, 0))
		for i, name := range []string{declared, plain, zero} {
			width := []int{7, 4, 4}[i]
			r := resp.Topics[i]
			if r.Topic != name || r.ErrorCode != 0 || r.ErrorMessage != nil || adminWidth(w, name) != width {
				t.Errorf("v%d, %s: %+v with a width of %d, want %d", version, name, r, adminWidth(w, name), width)
			}
			if version < 5 {
				continue
			}
			echo := "cleanup.policy=delete min.insync.replicas=1"
			if i == 0 {
				echo += " retention.ms=86400000 segment.bytes=1024"
			}
			var got []string
			for _, c := range r.Configs {
				got = append(got, c.Name+"="+adminText(c.Value))
			}
			if int(r.NumPartitions) != width || r.ReplicationFactor != 1 || strings.Join(got, " ") != echo {
				t.Errorf("v%d, %s: %d partitions, %d replicas, %v", version, name, r.NumPartitions, r.ReplicationFactor, got)
			}
		}
	}
}

// What is refused, with its code; and nothing of it is made, or changed.
func TestAdminCreateTopicsRefused(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "there", 3, "retention.ms=5000")
	assigned := adminTopic("assigned", -1)
	assigned.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{0}}}
	for _, dry := range []bool{false, true} {
		for _, test := range []struct {
			topic kmsg.CreateTopicsRequestTopic
			code  int16
		}{
			{adminTopic("there", 9), 36},
			{adminTopic("there", -7), 36}, // that it is there comes first
			{adminTopic("minus-2", -2), 37},
			{adminTopic("wide", 1_000_001), 37},
			{adminTopic("widest", 2147483647), 37},
			{adminTopic("", 1), 17},
			{adminTopic(".", 1), 17},
			{adminTopic("..", 1), 17},
			{adminTopic("a b", 1), 17},
			{adminTopic("a/b", 1), 17},
			{adminTopic("né", 1), 17},
			{adminTopic("__x", 1), 17},
			{adminTopic("__consumer_offsets", 1), 17},
			{adminTopic(strings.Repeat("x", 250), 1), 17},
			{assigned, 39},
			{adminTopic("config", 1, "no.such.key=1"), 40},
			{adminTopic("config", 1, "retention.ms=5"), 40},
			{adminTopic("config", 1, "retention.ms=5000", "segment.ms=0"), 40},
		} {
			for _, version := range []int16{2, 6} {
				req := kmsg.NewPtrCreateTopicsRequest()
				req.Version, req.ValidateOnly, req.Topics = version, dry, []kmsg.CreateTopicsRequestTopic{test.topic}
				got := w.Ask(req).(*kmsg.CreateTopicsResponse).Topics[0]
				if got.ErrorCode != test.code || adminText(got.ErrorMessage) == "<null>" && test.code != 36 {
					t.Errorf("v%d, %.20q with %d partitions, dry %v: %+v, want code %d", version, test.topic.Topic, test.topic.NumPartitions, dry, got, test.code)
				}
				if version == 6 && (got.NumPartitions != -1 || got.ReplicationFactor != -1 || got.Configs != nil) {
					t.Errorf("%.20q: a refusal says %+v", test.topic.Topic, got)
				}
			}
		}
	}
	// One valid name at every limit.
	for _, name := range []string{"x", strings.Repeat("y", 249), "...", "_x", "-", "UPPER.lower-09_"} {
		adminMade(t, w, name, 1)
		if got := adminWidth(w, name); got != 1 {
			t.Errorf("%.20q has a width of %d", name, got)
		}
	}
	all := wireMetadata()
	all.Topics = nil
	if got := len(w.Ask(all).(*kmsg.MetadataResponse).Topics); got != 7 {
		t.Errorf("%d topics, want 7", got)
	}
	adminWants(t, "the topic that was there", adminDescribe(w, "there", "retention.ms"), "retention.ms=5000*")
	if got := adminWidth(w, "there"); got != 3 {
		t.Errorf("the topic that was there has a width of %d", got)
	}
}

// Field cases G: validate_only makes nothing and misses nothing.
func TestAdminCreateTopicsValidateOnly(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "there", 1)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.ValidateOnly = 6, true
	req.Topics = []kmsg.CreateTopicsRequestTopic{
		adminTopic("new", 9, "retention.ms=9000"), adminTopic("there", 1), adminTopic("twice", 1), adminTopic("a b", 1),
		adminTopic("minus", -1), adminTopic("zero", 0), adminTopic("twice", 2), adminTopic("minus-2", -2),
	}
	resp := w.Ask(req).(*kmsg.CreateTopicsResponse)
	for i, want := range []int16{0, 36, 42, 17, 0, 0, 42, 37} {
		if got := resp.Topics[i]; got.ErrorCode != want || got.Topic != req.Topics[i].Topic {
			t.Errorf("entry %d, %s: code %d, want %d", i, got.Topic, got.ErrorCode, want)
		}
	}
	if got := resp.Topics[0]; got.NumPartitions != 9 || len(got.Configs) != 3 {
		t.Errorf("what would be made: %+v", got)
	}
	all := wireMetadata()
	all.Topics = nil
	if got := wireTopicNames(w.Ask(all).(*kmsg.MetadataResponse)); len(got) != 1 {
		t.Errorf("topics %v", got)
	}
	// A key that may not make topics is told so, and not that all is well.
	w = r.Login(t, rig.Produce)
	if got := w.Ask(req).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != 29 {
		t.Errorf("without the right: code %d, want 29", got.ErrorCode)
	}
}

// The same name twice is refused each time and not made; the others are.
func TestAdminCreateTopicsTwice(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	for _, version := range []int16{2, 6} {
		one := fmt.Sprintf("one-%d", version)
		resp := adminCreate(w, version, adminTopic("twice", 1), adminTopic(one, 1), adminTopic("twice", 2), adminTopic("twice", 1))
		for i, want := range []int16{42, 0, 42, 42} {
			if got := resp.Topics[i].ErrorCode; got != want {
				t.Errorf("v%d, entry %d: code %d, want %d", version, i, got, want)
			}
		}
		if adminWidth(w, "twice") != -1 || adminWidth(w, one) != 1 {
			t.Errorf("v%d: the wrong topics were made", version)
		}
	}
}

// 101 topics in one request: a hundred are made, the last is put off, with the
// code its version knows.
func TestAdminCreateTopicsMany(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	for version, code := range map[int16]int16{5: 7, 6: 89} {
		var topics []kmsg.CreateTopicsRequestTopic
		for i := range 101 {
			topics = append(topics, adminTopic(fmt.Sprintf("v%d-%03d", version, i), 2))
		}
		resp := adminCreate(w, version, topics...)
		for i, r := range resp.Topics[:100] {
			if r.ErrorCode != 0 || r.NumPartitions != 2 {
				t.Fatalf("v%d, topic %d: %+v", version, i, r)
			}
		}
		if r := resp.Topics[100]; r.ErrorCode != code || resp.ThrottleMillis != 1000 || r.ErrorMessage == nil {
			t.Errorf("v%d: %+v, throttle %d", version, r, resp.ThrottleMillis)
		}
		if resp = adminCreate(w, version, topics[100]); resp.Topics[0].ErrorCode != 0 {
			t.Errorf("v%d: asked again: code %d", version, resp.Topics[0].ErrorCode)
		}
		names := make([]string, 101)
		for i := range names {
			names[i] = topics[i].Topic
		}
		deleted := adminDelete(w, names...)
		for i, r := range deleted.Topics {
			want := int16(0)
			if i == 100 {
				want = 7
			}
			if r.ErrorCode != want || *r.Topic != names[i] {
				t.Errorf("delete of %s: code %d, want %d", *r.Topic, r.ErrorCode, want)
			}
		}
		if deleted.ThrottleMillis != 1000 {
			t.Errorf("throttle %d", deleted.ThrottleMillis)
		}
	}
}

// Deleting: the results in order, a topic made again begins anew, without the
// width and the configs of the first.
func TestAdminDeleteTopics(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	row := wireRow(t, 20)
	for version := row.Min; version <= min(row.Max, 5); version++ {
		adminMade(t, w, "t", 9, "retention.ms=5000")
		wireMustStore(t, w, "t", 8, wireBatch{values: []string{"old"}})
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TopicNames = version, []string{"none", "t", "__x", "a b", "", "twice", "twice"}
		resp := w.Ask(req).(*kmsg.DeleteTopicsResponse)
		for i, want := range []int16{3, 0, 3, 3, 3, 42, 42} {
			if got := resp.Topics[i]; got.ErrorCode != want || *got.Topic != req.TopicNames[i] {
				t.Errorf("v%d, %q: code %d, want %d", version, *got.Topic, got.ErrorCode, want)
			}
			if version == 5 && (resp.Topics[i].ErrorMessage == nil) != (want == 0) {
				t.Errorf("%q: message %v", *resp.Topics[i].Topic, resp.Topics[i].ErrorMessage)
			}
		}
		if got := adminWidth(w, "t"); got != -1 {
			t.Errorf("v%d: the deleted topic has a width of %d", version, got)
		}
		adminMade(t, w, "t", -1)
		if adminWidth(w, "t") != 4 || wireEnd(t, w, "t", 0) != 0 {
			t.Errorf("v%d: the new topic has %d partitions", version, adminWidth(w, "t"))
		}
		adminWants(t, "the new topic", adminDescribe(w, "t", "retention.ms"), "retention.ms=-1")
		adminDelete(w, "t")
	}
	if got := len(adminDelete(w).Topics); got != 0 {
		t.Errorf("an empty request: %d results", got)
	}
}

// A delete is not undone by what a producer still believes: the next produce
// makes a topic of its own, with the default width.
func TestAdminDeleteThenProduce(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	wireMustStore(t, w, "auto", 0, wireBatch{values: []string{"1"}})
	if got := adminDelete(w, "auto").Topics[0].ErrorCode; got != 0 {
		t.Fatalf("code %d", got)
	}
	if got := wireMustStore(t, w, "auto", 0, wireBatch{values: []string{"2"}}); got != 0 {
		t.Errorf("the new topic begins at offset %d", got)
	}
	// It was made by being produced to, and can be altered all the same.
	if got := adminAlter(w, "auto", false, "retention.ms=7000"); got.ErrorCode != 0 {
		t.Errorf("alter: code %d, %s", got.ErrorCode, adminText(got.ErrorMessage))
	}
	adminWants(t, "altered", adminDescribe(w, "auto", "retention.ms"), "retention.ms=7000*")
}

// Widening, in Apache Kafka's sentences, at every version.
func TestAdminCreatePartitions(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "t", 3, "retention.ms=5000")
	wireMustStore(t, w, "untracked", 0, wireBatch{values: []string{"x"}})
	row := wireRow(t, 37)
	width := 3
	for version := row.Min; version <= row.Max; version++ {
		ask := func(dry bool, name string, count int32, assigned ...int32) kmsg.CreatePartitionsResponseTopic {
			topic := kmsg.NewCreatePartitionsRequestTopic()
			topic.Topic, topic.Count = name, count
			for _, node := range assigned {
				topic.Assignment = append(topic.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: []int32{node}})
			}
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.Version, req.ValidateOnly, req.Topics = version, dry, []kmsg.CreatePartitionsRequestTopic{topic}
			return w.Ask(req).(*kmsg.CreatePartitionsResponse).Topics[0]
		}
		for _, dry := range []bool{true, false} {
			for _, test := range []struct {
				name     string
				count    int32
				assigned []int32
				code     int16
				text     string
			}{
				{"t", int32(width), nil, 37, fmt.Sprintf("Topic already has %d partition(s).", width)},
				{"t", int32(width), []int32{0}, 37, fmt.Sprintf("Topic already has %d partition(s).", width)},
				{"t", 1, nil, 37, fmt.Sprintf("The topic t currently has %d partition(s); 1 would not be an increase.", width)},
				{"t", 0, nil, 37, fmt.Sprintf("The topic t currently has %d partition(s); 0 would not be an increase.", width)},
				{"t", -1, nil, 37, fmt.Sprintf("The topic t currently has %d partition(s); -1 would not be an increase.", width)},
				{"t", 100, []int32{0}, 39, ""},
				{"t", 1_000_001, nil, 37, ""},
				{"none", 5, nil, 3, "<null>"},
				{"__x", 5, nil, 3, "<null>"},
				{"a b", 5, nil, 3, "<null>"},
			} {
				got := ask(dry, test.name, test.count, test.assigned...)
				if got.ErrorCode != test.code || test.text != "" && adminText(got.ErrorMessage) != test.text || got.Topic != test.name {
					t.Errorf("v%d, %s to %d, dry %v: %d %q; want %d %q", version, test.name, test.count, dry,
						got.ErrorCode, adminText(got.ErrorMessage), test.code, test.text)
				}
			}
			got := ask(dry, "t", int32(width+2))
			if got.ErrorCode != 0 || got.ErrorMessage != nil {
				t.Errorf("v%d, dry %v: %d %q", version, dry, got.ErrorCode, adminText(got.ErrorMessage))
			}
			if !dry {
				width += 2
			}
			if got := adminWidth(w, "t"); got != width {
				t.Errorf("v%d, dry %v: a width of %d, want %d", version, dry, got, width)
			}
		}
		if got := wireMustStore(t, w, "t", int32(width-1), wireBatch{values: []string{"x"}}); got != 0 {
			t.Errorf("v%d: the new partition begins at offset %d", version, got)
		}
	}
	// The configs stay, and altering them leaves the width.
	adminWants(t, "configs", adminDescribe(w, "t", "retention.ms"), "retention.ms=5000*")
	adminAlter(w, "t", false)
	if got := adminWidth(w, "t"); got != width {
		t.Errorf("after an alter a width of %d, want %d", got, width)
	}
	// A topic that declares nothing follows the default until it is widened.
	if got := adminWiden(w, "untracked", 6); got.ErrorCode != 0 || adminWidth(w, "untracked") != 6 {
		t.Errorf("a topic made by producing: code %d, a width of %d", got.ErrorCode, adminWidth(w, "untracked"))
	}
	twice := kmsg.NewPtrCreatePartitionsRequest()
	twice.Version = 3
	twice.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 90}, {Topic: "t", Count: 91}}
	for _, got := range w.Ask(twice).(*kmsg.CreatePartitionsResponse).Topics {
		if got.ErrorCode != 42 {
			t.Errorf("twice in one request: code %d, want 42", got.ErrorCode)
		}
	}
}
