package cloud

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// beyond is what the contract does not ask for: nothing of one tenant in front
// of the other, and nothing of one credential in front of its sibling.
func beyond() []scenario {
	return []scenario{
		{name: "topic ids", keys: both(), run: topicIDs},
		{name: "producer ids", keys: both(), run: producerIDs},
		{name: "group ids and members", keys: both(), run: groupIDs},
		{name: "transactional ids", keys: both(), apis: []int16{endTxn}, run: transactionalIDs},
		{name: "listed and described transactions", keys: both(), apis: []int16{describeProducers, describeTransactions, listTransactions}, run: listedTransactions},
		{name: "configs", keys: both(), apis: []int16{describeConfigs, incrementalConfigs}, run: configs},
		{name: "log directories", keys: both(), apis: []int16{describeLogDirs}, run: logDirectories},
		{name: "error texts", keys: both(), cell: true, run: errorTexts},
		{name: "fetch sessions", keys: both(), run: fetchSessions},
		{name: "throttles", keys: both(), admin: true, run: throttles},
		{name: "logs", keys: both(), cell: true, log: true, run: logs},
		{name: "rights of two credentials", keys: []string{rig.Acme, rig.Consume, rig.Produce, rig.NoRead}, run: rights},
	}
}

// byID asks for a topic by its id alone.
func byID(w *rig.Wire, id [16]byte) kmsg.MetadataResponseTopic {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 12, true
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}}
	return w.Ask(req).(*kmsg.MetadataResponse).Topics[0]
}

func topicIDs(t *testing.T, s *system) {
	topic := s.name("ids")
	conns := map[string]*rig.Wire{rig.Acme: s.Login(t, rig.Acme), rig.Globex: s.Login(t, rig.Globex)}
	ids := map[string][16]byte{}
	for key, w := range conns {
		ids[key] = makeTopic(t, w, topic)
		store(t, w, topic, noProducer(), "of "+key)
		if got := byID(w, ids[key]); got.ErrorCode != 0 || *got.Topic != topic {
			t.Errorf("%s: its own id: %+v", key, got)
		}
	}
	if ids[rig.Acme] == ids[rig.Globex] || ids[rig.Acme] == [16]byte{} {
		t.Errorf("equal names have ids %x and %x", ids[rig.Acme], ids[rig.Globex])
	}
	for key, foreign := range map[string][16]byte{rig.Acme: ids[rig.Globex], rig.Globex: ids[rig.Acme]} {
		w := conns[key]
		if got := byID(w, foreign); got.ErrorCode != 100 || len(got.Partitions) != 0 || got.Topic != nil {
			t.Errorf("%s: Metadata of another's id: %+v", key, got)
		}
		read := fetchRequest("", 0, 0)
		read.Version, read.Topics[0].TopicID = 13, foreign
		if got := w.Ask(read).(*kmsg.FetchResponse).Topics[0].Partitions[0]; got.ErrorCode != 100 || len(got.RecordBatches) != 0 {
			t.Errorf("%s: Fetch of another's id: %+v", key, got)
		}
		write := kmsg.NewPtrProduceRequest()
		write.Version, write.Acks, write.TimeoutMillis = 13, -1, 30_000
		write.Topics = []kmsg.ProduceRequestTopic{{TopicID: foreign, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: records(noProducer(), "lost")}}}}
		if got := w.Ask(write).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.ErrorCode != 100 {
			t.Errorf("%s: Produce to another's id: %+v", key, got)
		}
		wantValues(t, w, topic, "of "+key)
	}
}

// Both tenants use one producer id: neither is the other's duplicate, gap or
// fence.
func producerIDs(t *testing.T, s *system) {
	topic := s.name("producers")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	p := rig.Producer{ID: 4711, Epoch: 7}
	send := func(w *rig.Wire, seq int32, epoch int16, value string, want int64) {
		t.Helper()
		if got := store(t, w, topic, rig.Producer{ID: p.ID, Epoch: epoch, Seq: seq}, value); got != want {
			t.Errorf("%q is at %d, want %d", value, got, want)
		}
	}
	send(acme, 0, 7, "a0", 0)
	send(acme, 1, 7, "a1", 1)
	send(globex, 0, 7, "g0", 0)
	send(acme, 2, 7, "a2", 2)
	send(globex, 1, 7, "g1", 1)
	send(globex, 0, 9, "later epoch", 2)
	send(acme, 3, 7, "a3", 3)
	wantValues(t, acme, topic, "a0", "a1", "a2", "a3")
	wantValues(t, globex, topic, "g0", "g1", "later epoch")
}

// A tenant knows the other's group id and member id, and can do nothing with
// them.
func groupIDs(t *testing.T, s *system) {
	group := s.name("members")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	m := join(t, acme, group)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, group, m.id, m.generation
	remove := kmsg.NewPtrDeleteGroupsRequest()
	remove.Version, remove.Groups = 2, []string{group}
	offsets := kmsg.NewPtrOffsetDeleteRequest()
	offsets.Group, offsets.Topics = group, []kmsg.OffsetDeleteRequestTopic{{Topic: "any", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
	for _, x := range []struct {
		what string
		code int16
		want int16
	}{
		{"Heartbeat", m.heartbeat(globex), 25},
		{"SyncGroup", globex.Ask(sync).(*kmsg.SyncGroupResponse).ErrorCode, 25},
		{"LeaveGroup", m.leave(globex), 25},
		{"JoinGroup", globex.Ask(joinRequest(group, m.id)).(*kmsg.JoinGroupResponse).ErrorCode, 25},
		{"DeleteGroups", globex.Ask(remove).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode, 69},
		{"OffsetDelete", globex.Ask(offsets).(*kmsg.OffsetDeleteResponse).ErrorCode, 69},
	} {
		if x.code != x.want {
			t.Errorf("%s with another's member: code %d, want %d", x.what, x.code, x.want)
		}
	}
	if got := describeGroup(globex, group); got.State != "Dead" || len(got.Members) != 0 {
		t.Errorf("another's group is described as %+v", got)
	}
	if slices.Contains(groupsListed(t, globex), group) {
		t.Error("another's group is listed")
	}
	// A group of the same id beside it has members of its own.
	other := join(t, globex, group)
	if code := m.heartbeat(acme); code != 0 {
		t.Errorf("a heartbeat after all that: code %d", code)
	}
	if got := describeGroup(acme, group); got.State != "Stable" || len(got.Members) != 1 || got.Members[0].MemberID != m.id {
		t.Errorf("the group has become %+v", got)
	}
	if a, b := m.leave(acme), other.heartbeat(globex); a != 0 || b != 0 {
		t.Errorf("leaving: code %d; the other group's heartbeat: code %d", a, b)
	}
	other.leave(globex)
}

// answerText is an answer as JSON, with one name taken out of it.
func answerText(t *testing.T, resp kmsg.Response, name string) string {
	t.Helper()
	text, err := json.Marshal(resp)
	must(t, err)
	return strings.ReplaceAll(string(text), name, "NAME")
}

// Whatever is asked about what another tenant has is answered as for what nobody
// has, to the letter.
func errorTexts(t *testing.T, s *system) {
	theirs, nobodys := s.name("theirs"), s.name("nobody")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, theirs)
	store(t, acme, theirs, noProducer(), "v")
	if code := commit(acme, theirs, theirs, 1); code != 0 {
		t.Fatalf("commit: code %d", code)
	}
	defer join(t, acme, theirs).leave(acme)
	id, _ := s.cluster(t, rig.Acme)
	for _, request := range probes() {
		compared := map[string]string{}
		for _, name := range []string{theirs, nobodys} {
			req := request(name)
			compared[name] = answerText(t, globex.Ask(req), name)
			for _, secret := range []string{id, s.Key(rig.Acme), s.Key(rig.Globex)} {
				if strings.Contains(compared[name], secret) {
					t.Errorf("%s answers %s", kmsg.NameForKey(req.Key()), compared[name])
				}
			}
		}
		if compared[theirs] != compared[nobodys] {
			t.Errorf("%s\nof another's: %s\nof nobody's: %s", kmsg.NameForKey(request("").Key()), compared[theirs], compared[nobodys])
		}
	}
}

// probes are requests about a name, of topics and groups, that make nothing.
func probes() []func(name string) kmsg.Request {
	return []func(name string) kmsg.Request{
		func(name string) kmsg.Request {
			req := kmsg.NewPtrMetadataRequest()
			req.Version = 12
			req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
			return req
		},
		func(name string) kmsg.Request { return fetchRequest(name, 0, 0) },
		func(name string) kmsg.Request {
			req := kmsg.NewPtrListOffsetsRequest()
			req.Version, req.ReplicaID = 6, -1
			req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: name, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -1, CurrentLeaderEpoch: -1}}}}
			return req
		},
		func(name string) kmsg.Request {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Version, req.Group = 7, name
			return req
		},
		func(name string) kmsg.Request {
			req := kmsg.NewPtrDescribeGroupsRequest()
			req.Version, req.Groups = 5, []string{name}
			return req
		},
		func(name string) kmsg.Request {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Version, req.Groups = 2, []string{name}
			return req
		},
		func(name string) kmsg.Request {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Version, req.Group, req.MemberID = 3, name, name
			return req
		},
		func(name string) kmsg.Request {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.Version, req.CoordinatorKeys = 4, []string{name}
			return req
		},
	}
}

// A session is nobody else's, whoever names it.
func fetchSessions(t *testing.T, s *system) {
	topic := s.name("session")
	owner, other := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, owner, topic)
	makeTopic(t, other, topic)
	first := fetchRequest(topic, 0, 0)
	first.SessionEpoch = 0
	session := owner.Ask(first).(*kmsg.FetchResponse).SessionID
	if session == 0 {
		t.Fatal("no session")
	}
	store(t, owner, topic, noProducer(), "v")
	for _, epoch := range []int32{1, -1} { // going on with it, and ending it
		steal := fetchRequest(topic, 0, 0)
		steal.SessionID, steal.SessionEpoch = session, epoch
		if epoch > 0 {
			steal.Topics = nil
		}
		resp := other.Ask(steal).(*kmsg.FetchResponse)
		if epoch > 0 && (resp.ErrorCode != 70 || len(resp.Topics) != 0) {
			t.Errorf("another's session goes on: %+v", resp)
		}
		for _, topic := range resp.Topics {
			if len(topic.Partitions[0].RecordBatches) != 0 {
				t.Errorf("another's session yields records: %+v", resp)
			}
		}
	}
	next := fetchRequest(topic, 0, 0)
	next.SessionID, next.SessionEpoch, next.Topics = session, 1, nil
	resp := owner.Ask(next).(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 || resp.SessionID != session || len(resp.Topics) != 1 || len(values(t, resp.Topics[0].Partitions[0])) != 1 {
		t.Errorf("its owner goes on with %+v", resp)
	}
}

// While one tenant is over its rate the other is not told to wait.
func throttles(t *testing.T, s *system) {
	topic := s.name("throttles")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	defer s.limit(t, rig.Acme, oneRequest())()
	throttled, i := 0, 0
	rig.Eventually(t, "one tenant is told to wait, again and again", func() bool {
		if produceOne(acme, topic, records(noProducer(), "a")).ThrottleMillis > 0 {
			throttled++
		}
		got := produceOne(globex, topic, records(noProducer(), fmt.Sprint("g", i)))
		if p := got.Topics[0].Partitions[0]; got.ThrottleMillis != 0 || p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Fatalf("the other tenant is told to wait %d ms, code %d, offset %d", got.ThrottleMillis, p.ErrorCode, p.BaseOffset)
		}
		read := globex.Ask(fetchRequest(topic, 0, 0)).(*kmsg.FetchResponse)
		if read.ThrottleMillis != 0 || len(values(t, read.Topics[0].Partitions[0])) != i+1 {
			t.Fatalf("the other tenant's Fetch waits %d ms", read.ThrottleMillis)
		}
		i++
		return throttled >= 3
	})
}

// A config of one tenant's topic is not that of another's of the same name.
func configs(t *testing.T, s *system) {
	topic := s.name("configs")
	ctx := rig.Context(t)
	admins := map[string]*kadm.Client{}
	for _, key := range both() {
		makeTopic(t, s.Login(t, key), topic)
		admins[key] = kadm.NewClient(s.Kafka(t, key))
	}
	retention := func(key string) string {
		t.Helper()
		got, err := admins[key].DescribeTopicConfigs(ctx, topic)
		must(t, err)
		for _, c := range got[0].Configs {
			if c.Key == "retention.ms" {
				return c.MaybeValue()
			}
		}
		t.Fatalf("%s: no retention.ms (%v)", key, got[0].Err)
		return ""
	}
	before := retention(rig.Globex)
	value := "86400000"
	altered, err := admins[rig.Acme].AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic)
	must(t, err)
	must(t, altered[0].Err)
	rig.Eventually(t, "the new value", func() bool { return retention(rig.Acme) == value })
	if got := retention(rig.Globex); got != before || got == value {
		t.Errorf("the other's topic has retention.ms %s, before it was %s", got, before)
	}
	unknown, err := admins[rig.Globex].DescribeTopicConfigs(ctx, s.name("listed-acme"))
	must(t, err)
	if unknown[0].Err == nil || len(unknown[0].Configs) != 0 {
		t.Errorf("configs of another's topic: %+v", unknown[0])
	}
}

// A topic's size is not that of another tenant's topic of the same name.
func logDirectories(t *testing.T, s *system) {
	topic := s.name("sizes")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	makeTopic(t, acme, topic)
	makeTopic(t, globex, topic)
	store(t, acme, topic, noProducer(), "some bytes of one tenant")
	size := func(w *rig.Wire) (bytes int64, told bool) {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Version = 4
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topic, Partitions: []int32{0}}}
		resp := w.Ask(req).(*kmsg.DescribeLogDirsResponse)
		if resp.ErrorCode != 0 || len(resp.Dirs) == 0 { // a cell may not tell
			return 0, resp.ErrorCode == 0
		}
		return resp.Dirs[0].Topics[0].Partitions[0].Size, true
	}
	acmes, a := size(acme)
	globexs, g := size(globex)
	if !a || !g || globexs != 0 || s.own && acmes == 0 {
		t.Errorf("sizes %d (%v) and %d (%v); the second has no records", acmes, a, globexs, g)
	}
}
