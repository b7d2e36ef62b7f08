package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// The id that a topic is created with is the one Metadata gives; what is only
// validated has none (CreateTopics 7).
func TestAdminCreateTopicsID(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	made := adminCreate(w, 7, adminTopic("made", 3), adminTopic("a b", 1))
	if id := made.Topics[0].TopicID; id == [16]byte{} || id != wireTopicID(w, "made") {
		t.Errorf("made with id %x, Metadata says %x", id, wireTopicID(w, "made"))
	}
	if r := made.Topics[1]; r.ErrorCode != 17 || r.TopicID != [16]byte{} {
		t.Errorf("a topic that is not made: %+v", r)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.ValidateOnly, req.Topics = 7, true, []kmsg.CreateTopicsRequestTopic{adminTopic("dry", 1)}
	if r := w.Ask(req).(*kmsg.CreateTopicsResponse).Topics[0]; r.ErrorCode != 0 || r.TopicID != [16]byte{} {
		t.Errorf("validated only: %+v", r)
	}
}

// Topics are deleted by name or by id (DeleteTopics 6): by nobody else's id, by
// no earlier topic's, and none that is named twice, in whatever way.
func TestAdminDeleteTopicsByID(t *testing.T) {
	r := rig.Start(t)
	w, theirs := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	for _, name := range []string{"a", "b", "c", "d"} {
		adminMade(t, w, name, 1)
	}
	adminMade(t, theirs, "a", 1)
	foreign := wireTopicID(theirs, "a")
	named := func(name string) kmsg.DeleteTopicsRequestTopic {
		return kmsg.DeleteTopicsRequestTopic{Topic: &name}
	}
	ids := make(map[string][16]byte)
	id := func(name string) kmsg.DeleteTopicsRequestTopic {
		if _, known := ids[name]; !known {
			ids[name] = wireTopicID(w, name)
		}
		return kmsg.DeleteTopicsRequestTopic{TopicID: ids[name]}
	}
	both := named("d")
	both.TopicID = id("d").TopicID
	drop := func(topics ...kmsg.DeleteTopicsRequestTopic) (out []string) {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.Topics = 6, topics
		resp := w.Ask(req).(*kmsg.DeleteTopicsResponse)
		for i, topic := range resp.Topics {
			if want := topics[i].TopicID; topic.TopicID != want {
				t.Errorf("entry %d: id %x, want %x", i, topic.TopicID, want)
			}
			out = append(out, fmt.Sprint(adminText(topic.Topic), " ", topic.ErrorCode))
		}
		return out
	}
	got := drop(id("a"), named("b"), id("c"), named("c"), both, kmsg.DeleteTopicsRequestTopic{},
		kmsg.DeleteTopicsRequestTopic{TopicID: foreign}, kmsg.DeleteTopicsRequestTopic{TopicID: [16]byte{9}}, named("none"), named(""))
	want := []string{"a 0", "b 0", "c 42", "c 42", "d 42", "<null> 42", "<null> 100", "<null> 100", "none 3", " 3"}
	if !slices.Equal(got, want) {
		t.Errorf("deleted: %q, want %q", got, want)
	}
	for name, width := range map[string]int{"a": -1, "b": -1, "c": 1, "d": 1} {
		if got := adminWidth(w, name); got != width {
			t.Errorf("%s has a width of %d, want %d", name, got, width)
		}
	}
	if got := adminWidth(theirs, "a"); got != 1 {
		t.Errorf("the other tenant's topic has a width of %d", got)
	}
	adminMade(t, w, "a", 2)
	if got := drop(id("a")); !slices.Equal(got, []string{"<null> 100"}) || adminWidth(w, "a") != 2 {
		t.Errorf("an earlier topic's id: %q, a width of %d", got, adminWidth(w, "a"))
	}
	if got := drop(id("c"), id("c")); !slices.Equal(got, []string{"c 42", "c 42"}) {
		t.Errorf("one id twice: %q", got)
	}
	if got := drop(id("c"), id("d")); !slices.Equal(got, []string{"c 0", "d 0"}) {
		t.Errorf("by id: %q", got)
	}
}
