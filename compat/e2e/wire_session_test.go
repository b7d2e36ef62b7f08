package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// sessionFetch is a Fetch at version 12 or by ids, in a session.
func sessionFetch(version int16, id [16]byte, session, epoch int32, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	req := wireFetch("session", 0, 0)
	req.Version, req.SessionID, req.SessionEpoch = version, session, epoch
	req.Topics[0].TopicID, req.Topics[0].Partitions = id, parts
	if len(parts) == 0 {
		req.Topics = nil
	}
	return req
}

// told prints what an answer tells: partition:code/start-end(records).
func told(tb testing.TB, resp *kmsg.FetchResponse) (out string) {
	tb.Helper()
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			out += fmt.Sprintf(" %d:%d/%d-%d(%d)", p.Partition, p.ErrorCode, p.LogStartOffset, p.HighWatermark, len(wireValues(tb, p.RecordBatches)))
		}
	}
	return fmt.Sprintf("code %d%s", resp.ErrorCode, out)
}

// sessions runs a test by names and by ids.
func sessions(t *testing.T, change func(*config.Config), run func(t *testing.T, r *rig.Rig, version int16)) {
	for _, version := range []int16{7, 12, 13, 17} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			r := rig.Start(t, func(o *rig.Options) { o.Config = change })
			r.Login(t, rig.Acme).Ask(wireMetadata("session"))
			run(t, r, version)
		})
	}
}

// A session begins with everything and goes on with what has changed: records, a
// new end, an error; what was forgotten is not told any more (KIP-227).
func TestWireSession(t *testing.T) {
	sessions(t, nil, func(t *testing.T, r *rig.Rig, version int16) {
		w := r.Login(t, rig.Acme)
		id := wireTopicID(w, "session")
		wireMustStore(t, w, "session", 1, wireBatch{values: []string{"a", "b"}})
		epoch, session := int32(0), int32(0)
		forget := func(partition int32) kmsg.FetchRequestForgottenTopic {
			return kmsg.FetchRequestForgottenTopic{Topic: "session", TopicID: id, Partitions: []int32{partition}}
		}
		step := func(what, want string, forgotten []kmsg.FetchRequestForgottenTopic, parts ...kmsg.FetchRequestTopicPartition) {
			t.Helper()
			req := sessionFetch(version, id, session, epoch, parts...)
			req.ForgottenTopics = forgotten
			resp := w.Ask(req).(*kmsg.FetchResponse)
			if got := told(t, resp); got != want || resp.SessionID == 0 || epoch > 0 && resp.SessionID != session {
				t.Fatalf("%s: %s in session %d; want %s in %d", what, got, resp.SessionID, want, session)
			}
			session = resp.SessionID
			epoch++
		}
		step("all", "code 0 0:0/0-0(0) 1:0/0-2(2) 9:3/-1--1(0)", nil, wireFetchPart(0, 0), wireFetchPart(1, 0), wireFetchPart(9, 0))
		step("an error is told again", "code 0 9:3/-1--1(0)", nil, wireFetchPart(1, 2))
		step("what is forgotten is not", "code 0", []kmsg.FetchRequestForgottenTopic{forget(9), forget(3)})
		step("nothing has changed", "code 0", nil)
		wireMustStore(t, w, "session", 0, wireBatch{values: []string{"c"}})
		step("records", "code 0 0:0/0-1(1)", nil)
		step("asked for from there on", "code 0", nil, wireFetchPart(0, 1))
		step("a new partition is told", "code 0 2:0/0-0(0)", nil, wireFetchPart(2, 0))
		step("out of range", "code 0 2:1/-1--1(0)", nil, wireFetchPart(2, 7))
		step("and back", "code 0 2:0/0-0(0)", nil, wireFetchPart(2, 0))
		step("nothing again", "code 0", nil)

		// Another epoch is 71, and leaves the session where it was.
		for _, wrong := range []int32{epoch + 1, epoch - 1, math.MaxInt32, math.MinInt32} {
			resp := w.Ask(sessionFetch(version, id, session, wrong)).(*kmsg.FetchResponse)
			if resp.ErrorCode != 71 || len(resp.Topics) != 0 || resp.SessionID != 0 {
				t.Fatalf("epoch %d in place of %d: %s", wrong, epoch, told(t, resp))
			}
		}
		step("the right epoch", "code 0", nil)
		// What is forgotten to the last partition has ended.
		req := sessionFetch(version, id, session, epoch)
		req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{forget(0), forget(1), forget(2)}
		if resp := w.Ask(req).(*kmsg.FetchResponse); resp.ErrorCode != 0 || resp.SessionID != 0 || len(resp.Topics) != 0 {
			t.Errorf("all forgotten: %s in session %d", told(t, resp), resp.SessionID)
		}
		if resp := w.Ask(sessionFetch(version, id, session, epoch+1)).(*kmsg.FetchResponse); resp.ErrorCode != 70 {
			t.Errorf("afterwards: %s", told(t, resp))
		}
	})
}

// A session is its connection's: elsewhere its id is 70, of the same tenant as of
// another, and a full fetch there that names it takes nothing from its owner.
func TestWireSessionIsItsConnections(t *testing.T) {
	sessions(t, nil, func(t *testing.T, r *rig.Rig, version int16) {
		owner := r.Login(t, rig.Acme)
		id := wireTopicID(owner, "session")
		open := func(w *rig.Wire, session int32) int32 {
			resp := w.Ask(sessionFetch(version, id, session, 0, wireFetchPart(0, 0))).(*kmsg.FetchResponse)
			if resp.SessionID == 0 || resp.SessionID == session {
				t.Fatalf("session %d, asked with %d", resp.SessionID, session)
			}
			return resp.SessionID
		}
		session, epoch := open(owner, 0), int32(1)
		for _, key := range []string{rig.Acme, rig.Acme2, rig.Consume, rig.Globex} {
			w := r.Login(t, key)
			if resp := w.Ask(sessionFetch(version, id, session, epoch)).(*kmsg.FetchResponse); resp.ErrorCode != 70 {
				t.Errorf("%s goes on with it: %s", key, told(t, resp))
			}
			for _, end := range []int32{0, -1} { // a new one, or none
				w.Ask(sessionFetch(version, id, session, end, wireFetchPart(0, 0)))
			}
			if resp := owner.Ask(sessionFetch(version, id, session, epoch)).(*kmsg.FetchResponse); resp.ErrorCode != 0 || resp.SessionID != session {
				t.Fatalf("after %s its owner is told %s", key, told(t, resp))
			}
			epoch++
		}
		// Its owner may have another beside it, and end it by naming it.
		other := open(owner, 0)
		for _, s := range []struct{ id, epoch int32 }{{session, epoch}, {other, 1}} {
			if resp := owner.Ask(sessionFetch(version, id, s.id, s.epoch)).(*kmsg.FetchResponse); resp.ErrorCode != 0 || resp.SessionID != s.id {
				t.Errorf("one of two sessions: %s", told(t, resp))
			}
		}
		next := open(owner, session)
		if resp := owner.Ask(sessionFetch(version, id, session, epoch+1)).(*kmsg.FetchResponse); resp.ErrorCode != 70 {
			t.Errorf("a session that was begun anew goes on: %s", told(t, resp))
		}
		if resp := owner.Ask(sessionFetch(version, id, next, -1, wireFetchPart(0, 0))).(*kmsg.FetchResponse); resp.ErrorCode != 0 || resp.SessionID != 0 || len(resp.Topics) != 1 {
			t.Errorf("the last fetch of a session: %s in %d", told(t, resp), resp.SessionID)
		}
		if resp := owner.Ask(sessionFetch(version, id, next, 1)).(*kmsg.FetchResponse); resp.ErrorCode != 70 {
			t.Errorf("a session that was ended goes on: %s", told(t, resp))
		}
	})
}

// Where a tenant has no more room its own idle session makes some, and gets 70;
// another tenant's never does, and finds its own room.
func TestWireSessionEviction(t *testing.T) {
	small := func(c *config.Config) {
		c.Limits.FetchSessions, c.Limits.FetchSessionIdle = 4, 0
	}
	sessions(t, small, func(t *testing.T, r *rig.Rig, version int16) {
		r.Login(t, rig.Globex).Ask(wireMetadata("session"))
		var conns []*rig.Wire
		var ids []int32
		for _, key := range []string{rig.Globex, rig.Acme, rig.Acme2, rig.Acme} {
			w := r.Login(t, key)
			resp := w.Ask(sessionFetch(version, wireTopicID(w, "session"), 0, 0, wireFetchPart(0, 0))).(*kmsg.FetchResponse)
			if resp.SessionID == 0 {
				t.Fatalf("no session for %s", key)
			}
			conns, ids = append(conns, w), append(ids, resp.SessionID)
		}
		for i, want := range []int16{0, 70, 0, 0} {
			if resp := conns[i].Ask(sessionFetch(version, [16]byte{}, ids[i], 1)).(*kmsg.FetchResponse); resp.ErrorCode != want {
				t.Errorf("session %d: %s, want code %d", i, told(t, resp), want)
			}
		}
	})
}

// Without room a fetch is what it was before there were sessions.
func TestWireSessionNoRoom(t *testing.T) {
	none := func(c *config.Config) { c.Limits.FetchSessionBytes = 1 }
	sessions(t, none, func(t *testing.T, r *rig.Rig, version int16) {
		w := r.Login(t, rig.Acme)
		id := wireTopicID(w, "session")
		for range 3 {
			resp := w.Ask(sessionFetch(version, id, 0, 0, wireFetchPart(0, 0))).(*kmsg.FetchResponse)
			if resp.SessionID != 0 || told(t, resp) != "code 0 0:0/0-0(0)" {
				t.Errorf("%s in session %d", told(t, resp), resp.SessionID)
			}
		}
	})
}

// A session's long poll waits for all of its partitions, named or not.
func TestWireSessionLongPoll(t *testing.T) {
	sessions(t, nil, func(t *testing.T, r *rig.Rig, version int16) {
		w, producer := r.Login(t, rig.Acme), r.Login(t, rig.Acme)
		id := wireTopicID(w, "session")
		offsets := [4]int64{}
		session := w.Ask(sessionFetch(version, id, 0, 0, wireFetchPart(0, 0), wireFetchPart(1, 0), wireFetchPart(2, 0), wireFetchPart(3, 0))).(*kmsg.FetchResponse).SessionID
		var changed []kmsg.FetchRequestTopicPartition // what a consumer asks for next
		for i, partition := range []int32{2, 0, 2} {
			req := sessionFetch(version, id, session, int32(i)+1, changed...)
			req.MinBytes, req.MaxWaitMillis = 1, int32((30 * time.Second).Milliseconds())
			sent := w.Send(req)
			wireMustStore(t, producer, "session", partition, wireBatch{values: []string{"v"}})
			offsets[partition]++
			want := fmt.Sprintf("code 0 %d:0/0-%d(1)", partition, offsets[partition])
			if got := told(t, w.Receive(req, sent).(*kmsg.FetchResponse)); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
			changed = []kmsg.FetchRequestTopicPartition{wireFetchPart(partition, offsets[partition])}
		}
	})
}

// Named by ids, a session goes on by ids: 106 otherwise. A topic that is gone is
// told as 100.
func TestWireSessionIDs(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("session"))
	id := wireTopicID(w, "session")
	named := w.Ask(sessionFetch(12, id, 0, 0, wireFetchPart(0, 0))).(*kmsg.FetchResponse)
	byID := w.Ask(sessionFetch(13, id, 0, 0, wireFetchPart(0, 0))).(*kmsg.FetchResponse)
	for _, test := range []struct {
		session *kmsg.FetchResponse
		version int16
		code    int16
	}{{named, 13, 106}, {byID, 12, 106}, {named, 12, 0}, {byID, 13, 0}} {
		if resp := w.Ask(sessionFetch(test.version, id, test.session.SessionID, 1)).(*kmsg.FetchResponse); resp.ErrorCode != test.code {
			t.Errorf("v%d: %s, want code %d", test.version, told(t, resp), test.code)
		}
	}
	deleteQueue(t, r, rig.Acme, "session")
	epoch := int32(2)
	rig.Eventually(t, "the topic is known to be gone", func() bool {
		got := told(t, w.Ask(sessionFetch(13, id, byID.SessionID, epoch)).(*kmsg.FetchResponse))
		epoch++
		return got == "code 0 0:100/-1--1(0)"
	})
}
