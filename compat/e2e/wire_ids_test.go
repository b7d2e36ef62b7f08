package e2e

import (
	"net/http"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// byID asks for a topic by its id alone.
func byID(w *rig.Wire, version int16, id [16]byte) kmsg.MetadataResponseTopic {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, true
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}}
	return w.Ask(req).(*kmsg.MetadataResponse).Topics[0]
}

func fetchByID(w *rig.Wire, version int16, id [16]byte) kmsg.FetchResponseTopic {
	req := wireFetch("", 0, 0)
	req.Version, req.Topics[0].TopicID = version, id
	return w.Ask(req).(*kmsg.FetchResponse).Topics[0]
}

func produceByID(w *rig.Wire, id [16]byte, b wireBatch) kmsg.ProduceResponseTopic {
	req := wireProduce(-1, "", 0, b.bytes())
	req.Version, req.Topics[0].TopicID = 13, id
	return w.Ask(req).(*kmsg.ProduceResponse).Topics[0]
}

// wantUnknownID checks that nothing can be done with an id.
func wantUnknownID(tb testing.TB, what string, w *rig.Wire, id [16]byte) {
	tb.Helper()
	for version := int16(10); version <= 13; version++ {
		got := byID(w, version, id)
		if got.ErrorCode != 100 || got.TopicID != id || len(got.Partitions) != 0 {
			tb.Errorf("%s, Metadata v%d: %+v; want code 100", what, version, got)
		}
		if named := got.Topic != nil; named != (version < 12) || named && *got.Topic != "" {
			tb.Errorf("%s, Metadata v%d: name %v", what, version, got.Topic)
		}
	}
	for version := int16(13); version <= 17; version++ {
		got := fetchByID(w, version, id)
		if p := got.Partitions[0]; p.ErrorCode != 100 || got.TopicID != id || p.HighWatermark != -1 || len(p.RecordBatches) != 0 {
			tb.Errorf("%s, Fetch v%d: %+v; want code 100", what, version, got)
		}
	}
	got := produceByID(w, id, wireBatch{values: []string{"lost"}})
	if p := got.Partitions[0]; p.ErrorCode != 100 || got.TopicID != id || p.BaseOffset != -1 {
		tb.Errorf("%s, Produce: %+v; want code 100", what, got)
	}
}

// A topic is found, read and written by its id, and by no id but its tenant's
// own (KIP-516).
func TestWireTopicIDs(t *testing.T) {
	r := rig.Start(t)
	w, theirs := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
	w.Ask(wireMetadata("same"))
	theirs.Ask(wireMetadata("same"))
	id, foreign := wireTopicID(w, "same"), wireTopicID(theirs, "same")
	if id == [16]byte{} || foreign == [16]byte{} || id == foreign {
		t.Fatalf("ids %x and %x", id, foreign)
	}
	for version := int16(10); version <= 13; version++ {
		got := byID(w, version, id)
		if got.ErrorCode != 0 || got.Topic == nil || *got.Topic != "same" || got.TopicID != id || len(got.Partitions) != 4 {
			t.Errorf("Metadata v%d: %+v", version, got)
		}
		all := kmsg.NewPtrMetadataRequest()
		all.Version = version
		resp := w.Ask(all).(*kmsg.MetadataResponse)
		if len(resp.Topics) != 1 || resp.Topics[0].TopicID != id || resp.ErrorCode != 0 {
			t.Errorf("Metadata v%d, all: %+v", version, resp)
		}
	}
	if got := produceByID(w, id, wireBatch{values: []string{"v"}}); got.TopicID != id || got.Partitions[0].ErrorCode != 0 || got.Partitions[0].BaseOffset != 0 {
		t.Errorf("Produce: %+v", got)
	}
	for version := int16(13); version <= 17; version++ {
		got := fetchByID(w, version, id)
		if p := got.Partitions[0]; p.ErrorCode != 0 || got.TopicID != id || len(wireValues(t, p.RecordBatches)) != 1 {
			t.Errorf("Fetch v%d: %+v", version, got)
		}
	}
	wantUnknownID(t, "another tenant's", w, foreign)
	wantUnknownID(t, "ours, by another tenant", theirs, id)
	wantUnknownID(t, "nobody's", w, [16]byte{1})
	wantUnknownID(t, "the metadata log's", w, [16]byte{15: 1})
	if got := produceByID(w, [16]byte{}, wireBatch{values: []string{"v"}}); got.Partitions[0].ErrorCode != 100 {
		t.Errorf("Produce without an id: %+v", got)
	}
	if got := fetchByID(w, 13, [16]byte{}); got.Partitions[0].ErrorCode != 100 {
		t.Errorf("Fetch without an id: %+v", got)
	}
	if got := byID(w, 12, [16]byte{}); got.ErrorCode != 17 {
		t.Errorf("Metadata with neither name nor id: %+v", got)
	}
	if end := wireEnd(t, w, "same", 0); end != 1 {
		t.Errorf("%d records are stored, want 1", end)
	}
	if end := wireEnd(t, theirs, "same", 0); end != 0 {
		t.Errorf("%d records are stored at the other tenant, want none", end)
	}
}

// A Metadata request may mix names and ids; an id counts before a name.
func TestWireTopicIDsMixed(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("a", "b"))
	a, b := wireTopicID(w, "a"), wireTopicID(w, "b")
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	req.Topics = []kmsg.MetadataRequestTopic{
		{TopicID: a}, {Topic: kmsg.StringPtr("b")}, {TopicID: a}, {Topic: kmsg.StringPtr("a"), TopicID: b}, {TopicID: [16]byte{9}},
	}
	resp := w.Ask(req).(*kmsg.MetadataResponse)
	if got := len(resp.Topics); got != 4 {
		t.Fatalf("%d topics, want b, a, b and one unknown: %+v", got, resp.Topics)
	}
	for i, want := range []struct {
		name string
		id   [16]byte
		code int16
	}{{"b", b, 0}, {"a", a, 0}, {"b", b, 0}, {"", [16]byte{9}, 100}} {
		got, name := resp.Topics[i], ""
		if got.Topic != nil {
			name = *got.Topic
		}
		if name != want.name || got.TopicID != want.id || got.ErrorCode != want.code {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
}

// An id is the same after a restart of the gateway and of the cell. A topic that
// is deleted and made anew has another one, and the old one is nobody's.
func TestWireTopicIDsLive(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("live"))
	wireMustStore(t, w, "live", 0, wireBatch{values: []string{"old"}})
	old := wireTopicID(w, "live")
	r.StopGateway(t)
	r.StopCell(t)
	r.StartCell(t)
	r.StartGateway(t)
	w = r.Login(t, rig.Acme)
	if again := wireTopicID(w, "live"); again != old {
		t.Errorf("id %x after a restart, %x before", again, old)
	}
	if p := fetchByID(w, 13, old).Partitions[0]; p.ErrorCode != 0 || p.HighWatermark != 1 {
		t.Errorf("by the id from before the restart: %+v", p)
	}

	deleteQueue(t, r, rig.Acme, "live")
	w = restarted(t, r)
	wantUnknownID(t, "a deleted topic's", w, old)
	w.Ask(wireMetadata("live"))
	wireMustStore(t, w, "live", 0, wireBatch{values: []string{"new"}})
	if now := wireTopicID(w, "live"); now == old || now == [16]byte{} {
		t.Errorf("the new topic has id %x, the old one had %x", now, old)
	}
	wantUnknownID(t, "an earlier topic's", w, old)
	if end := wireEnd(t, w, "live", 0); end != 1 {
		t.Errorf("%d records in the new topic, want 1", end)
	}
}

// While the cell cannot be asked, what is asked for by id gets a code that
// clients come back after: nobody knows whether the topic is there.
func TestWireTopicIDsUnread(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) { c.Limits.CatalogEntries = 1 }
	})
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("unread"))
	id := wireTopicID(w, "unread")
	r.Login(t, rig.Globex).Ask(wireMetadata("other")) // the one listing kept is theirs now
	relay.cut.Store(true)
	if got := byID(w, 12, id); got.ErrorCode != 5 || got.TopicID != id {
		t.Errorf("Metadata: %+v, want code 5", got)
	}
	if p := fetchByID(w, 13, id).Partitions[0]; p.ErrorCode != 6 || p.HighWatermark != -1 || p.RecordBatches == nil {
		t.Errorf("Fetch: %+v, want code 6", p)
	}
	if got := produceByID(w, id, wireBatch{values: []string{"v"}}); got.Partitions[0].ErrorCode != 5 || got.TopicID != id {
		t.Errorf("Produce: %+v, want code 5", got)
	}
	relay.cut.Store(false)
	rig.Eventually(t, "the listing is read again", func() bool { return byID(w, 12, id).ErrorCode == 0 })
	if p := fetchByID(w, 13, id).Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("Fetch afterwards: %+v", p)
	}
}

// restarted starts the gateway anew, which forgets every listing, and logs in.
func restarted(tb testing.TB, r *rig.Rig) *rig.Wire {
	tb.Helper()
	r.StopGateway(tb)
	r.StartGateway(tb)
	return r.Login(tb, rig.Acme)
}

// deleteQueue drops a queue at the cell itself.
func deleteQueue(tb testing.TB, r *rig.Rig, key, name string) {
	tb.Helper()
	req, err := http.NewRequest(http.MethodDelete, r.CellURL+"/api/v1/resources/queues/"+name, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key(key))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		tb.Fatalf("deleting %s: HTTP %d", name, resp.StatusCode)
	}
}
