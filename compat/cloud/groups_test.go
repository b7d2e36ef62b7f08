package cloud

import (
	"net/http"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

func groupScenarios() []scenario {
	return []scenario{
		{number: 3, name: "equal group ids move apart", keys: both(), run: groupsApart},
		{number: 4, name: "OffsetFetch knows its own cursor only", keys: both(), run: ownCursor},
		{number: 10, name: "two keys of a cluster are one tenant", keys: []string{rig.Acme, rig.Acme2}, cell: true, run: twoKeys},
		{number: 11, name: "offsets without the kv feature", keys: []string{rig.Acme}, cell: true, run: offsetsWithoutKV},
		{number: 13, name: "plain keys are gated and those of a gateway are not", keys: []string{rig.Acme}, cellOnly: true, run: plainKeys},
		{number: 16, name: "the listing of groups says kafka", keys: []string{rig.Acme}, cell: true, run: cellListsGroup},
	}
}

func groupsApart(t *testing.T, s *system) {
	topic, group := s.name("cursors"), s.name("same-group")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	for _, w := range []*rig.Wire{acme, globex} {
		makeTopic(t, w, topic)
		store(t, w, topic, noProducer(), "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	}
	for i, step := range []struct {
		w            *rig.Wire
		offset, a, g int64
	}{{acme, 3, 3, -1}, {globex, 7, 3, 7}, {acme, 4, 4, 7}, {globex, 8, 4, 8}} {
		if code := commit(step.w, group, topic, step.offset); code != 0 {
			t.Fatalf("commit %d: code %d", i, code)
		}
		wantCommitted(t, acme, group, topic, step.a)
		wantCommitted(t, globex, group, topic, step.g)
	}
	for who, w := range map[string]*rig.Wire{rig.Acme: acme, rig.Globex: globex} {
		if !slices.Contains(groupsListed(t, w), group) {
			t.Errorf("%s does not list the group it has committed", who)
		}
	}
	// One tenant's group ends; the other's is where it was.
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, []string{group}
	if code := acme.Ask(req).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode; code != 0 {
		t.Errorf("DeleteGroups: code %d", code)
	}
	wantCommitted(t, acme, group, topic, -1)
	wantCommitted(t, globex, group, topic, 8)
}

func ownCursor(t *testing.T, s *system) {
	topic, group := s.name("cursor"), s.name("of-acme")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	if code := commit(acme, group, topic, 1); code != 0 {
		t.Fatalf("commit: code %d", code)
	}
	wantCommitted(t, acme, group, topic, 1)
	wantCommitted(t, globex, group, topic, -1)
	all := kmsg.NewPtrOffsetFetchRequest()
	all.Version, all.Group = 7, group
	if got := globex.Ask(all).(*kmsg.OffsetFetchResponse); got.ErrorCode != 0 || len(got.Topics) != 0 {
		t.Errorf("all offsets of a group that is another's: %+v", got)
	}
}

func twoKeys(t *testing.T, s *system) {
	one, _ := s.cluster(t, rig.Acme)
	two, _ := s.cluster(t, rig.Acme2)
	if one != two {
		t.Errorf("/auth/me names %s and %s", one, two)
	}
	group := s.name("two-keys")
	first, second := s.Login(t, rig.Acme), s.Login(t, rig.Acme2)
	m := join(t, first, group)
	if got := describeGroup(second, group); got.State != "Stable" || len(got.Members) != 1 || got.Members[0].MemberID != m.id {
		t.Errorf("the other key sees %s with %d members", got.State, len(got.Members))
	}
	if code := m.heartbeat(second); code != 0 {
		t.Errorf("a heartbeat over the other key's connection: code %d", code)
	}
	if code := m.leave(second); code != 0 {
		t.Errorf("leaving over the other key's connection: code %d", code)
	}
	topic := s.name("two-keys")
	makeTopic(t, first, topic)
	for i, w := range []*rig.Wire{first, second} {
		if code := commit(w, group, topic, int64(i+1)); code != 0 {
			t.Errorf("commit %d: code %d", i, code)
		}
		wantCommitted(t, first, group, topic, int64(i+1))
		wantCommitted(t, second, group, topic, int64(i+1))
	}
}

func offsetsWithoutKV(t *testing.T, s *system) {
	w := s.Login(t, rig.Acme)
	topic, group := s.name("no-kv"), s.name("no-kv")
	makeTopic(t, w, topic)
	s.withoutKV(t, rig.Acme)
	s.plainKV(t, rig.Acme).want(t, "the plan has the feature", http.StatusForbidden, "feature_gated")
	if code := commit(w, group, topic, 5); code != 0 {
		t.Errorf("commit: code %d", code)
	}
	wantCommitted(t, w, group, topic, 5)
}

func plainKeys(t *testing.T, s *system) {
	s.withoutKV(t, rig.Acme)
	s.plainKV(t, rig.Acme).want(t, "a plain key", http.StatusForbidden, "feature_gated")
	s.call(t, rig.Acme, http.MethodPost, "/api/v1/kv",
		`{"operations":[{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:group:"}]}`).want(t, "a gateway's own", http.StatusOK, "rows")
	s.call(t, rig.Acme, http.MethodPost, "/api/v1/kv",
		`{"operations":[{"op":"getMany","ns":"queen-kafka","keys":["qk:x"]},{"op":"getMany","ns":"app","keys":["k"]}]}`).want(t, "both in one", http.StatusForbidden, "feature_gated")
}

func cellListsGroup(t *testing.T, s *system) {
	w := s.Login(t, rig.Acme)
	topic, group := s.name("listed-group"), s.name("listed-group")
	makeTopic(t, w, topic)
	store(t, w, topic, noProducer(), "v")
	if code := commit(w, group, topic, 1); code != 0 {
		t.Fatalf("commit: code %d", code)
	}
	s.call(t, rig.Acme, http.MethodGet, "/api/v1/consumer-groups", "").want(t, "the listing", http.StatusOK, group)
	s.call(t, rig.Acme, http.MethodGet, "/api/v1/consumer-groups", "").want(t, "its kind", http.StatusOK, `"kind":"kafka"`)
}
