package cloud

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// What one credential of a tenant may do is warm and at hand; its siblings may
// not do it through that.
func rights(t *testing.T, s *system) {
	topic, group := s.name("rights"), s.name("rights")
	full, reads, writes := s.Login(t, rig.Acme), s.Login(t, rig.Consume), s.Login(t, rig.Produce)
	makeTopic(t, full, topic)
	m := join(t, full, group)
	for range 2 {
		store(t, full, topic, noProducer(), "v")
		fetch(full, topic)
		if p := produceOne(reads, topic, records(noProducer(), "not to be")).Topics[0].Partitions[0]; p.ErrorCode != 29 {
			t.Errorf("Produce without produce: code %d, want 29", p.ErrorCode)
		}
		if p := fetch(writes, topic); p.ErrorCode != 29 || len(p.RecordBatches) != 0 {
			t.Errorf("Fetch without consume: code %d, want 29", p.ErrorCode)
		}
		if code := commit(writes, group+"-2", topic, 1); code != 30 {
			t.Errorf("OffsetCommit without consume: code %d, want 30", code)
		}
		if _, code := committed(writes, group, topic); code != 30 {
			t.Errorf("OffsetFetch without consume: code %d, want 30", code)
		}
		if code := m.heartbeat(writes); code != 30 {
			t.Errorf("Heartbeat without consume: code %d, want 30", code)
		}
		if code := m.leave(writes); code != 30 {
			t.Errorf("LeaveGroup without consume: code %d, want 30", code)
		}
		if code := writes.Ask(joinRequest(group, "")).(*kmsg.JoinGroupResponse).ErrorCode; code != 30 {
			t.Errorf("JoinGroup without consume: code %d, want 30", code)
		}
		if got := describeGroup(writes, group); got.ErrorCode != 30 || len(got.Members) != 0 {
			t.Errorf("DescribeGroups without consume: %+v, want 30", got)
		}
		made := s.name("made-by-a-sibling")
		if got := metadata(reads, true, made).Topics[0]; got.ErrorCode != 29 {
			t.Errorf("a topic made without admin: code %d, want 29", got.ErrorCode)
		}
		if got := s.Dial(t).Authenticate("u", s.Key(rig.NoRead)); got.ErrorCode != 58 {
			t.Errorf("a login without read: code %d, want 58", got.ErrorCode)
		}
	}
	if code := m.heartbeat(full); code != 0 {
		t.Errorf("the group's member: code %d", code)
	}
	wantValues(t, full, topic, "v", "v")
	m.leave(full)
}

// endBadly has a connection ended by the gateway, each tenant's for a reason of
// its own.
func (s *system) endBadly(t *testing.T, key string) {
	t.Helper()
	w := s.Login(t, key)
	frame := []byte{0x7f, 0xff, 0xff, 0xff} // too large
	if key == rig.Globex {
		frame = rig.Frame(kmsg.NewPtrMetadataRequest(), 1, "cloud")
		frame = append(frame[:len(frame)-1:len(frame)-1], 0x7f) // names that are not there
	}
	w.SendRaw(frame)
	w.WantClosed()
}

// No line of the log holds a token, and a line about one tenant nothing of the
// other.
func logs(t *testing.T, s *system) {
	names := map[string]string{rig.Acme: s.name("only-acme"), rig.Globex: s.name("only-globex")}
	ids := map[string]string{}
	for key, own := range names {
		ids[key], _ = s.cluster(t, key)
		w := s.Login(t, key)
		makeTopic(t, w, own)
		store(t, w, own, noProducer(), own)
		broken := records(noProducer(), own)
		broken[len(broken)-1]++
		produceOne(w, own, broken)
		commit(w, own, own, 1)
		fetch(w, own)
		m := join(t, w, own)
		m.leave(w)
		bad := s.Dial(t)
		bad.Authenticate(s.Key(key), s.Key(key)+"x") // the token in the wrong place
		must(t, bad.Close())
		s.endBadly(t, key)
	}
	// A reason is logged once in some seconds, so who was not mentioned ends another
	// connection now and then.
	lines, last := map[string]int{}, time.Now()
	rig.Eventually(t, "lines about both tenants", func() bool {
		again := time.Since(last) > time.Second
		for key, id := range ids {
			lines[key] = strings.Count(strings.Join(s.log.all(), "\n"), id)
			if lines[key] == 0 && again {
				last = time.Now()
				s.endBadly(t, key)
			}
		}
		return lines[rig.Acme] > 0 && lines[rig.Globex] > 0
	})
	for _, line := range s.log.all() {
		for _, key := range []string{rig.Acme, rig.Acme2, rig.Consume, rig.Produce, rig.Txn, rig.NoRead, rig.Globex} {
			if strings.Contains(line, s.Key(key)) {
				t.Errorf("a line holds the token of %s", key)
			}
		}
		for key, other := range map[string]string{rig.Acme: rig.Globex, rig.Globex: rig.Acme} {
			if strings.Contains(line, ids[key]) && (strings.Contains(line, names[other]) || strings.Contains(line, ids[other])) {
				t.Errorf("a line about %s: %s", key, line)
			}
		}
	}
	t.Logf("%d lines, about acme %d, about globex %d", len(s.log.all()), lines[rig.Acme], lines[rig.Globex])
}
