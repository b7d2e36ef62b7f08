package cloud

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/internal/cell"
)

func limitScenarios() []scenario {
	return []scenario{
		{number: 8, name: "a cap shows as throttle and fails nothing", keys: both()[:1], admin: true, run: capShows},
		{number: 9, name: "both clusters are metered", keys: both(), admin: true, run: metered},
	}
}

func storageScenario() scenario {
	return scenario{number: 12, name: "a storage cap refuses records only", keys: both()[:1], admin: true, run: storageCap}
}

// oneRequest lets a cluster have one request a second.
func oneRequest() map[string]string {
	return map[string]string{"max_req_per_sec": "1", "req_burst": "1"}
}

func capShows(t *testing.T, s *system) {
	topic := s.name("capped")
	w := s.Login(t, rig.Acme)
	makeTopic(t, w, topic)
	// Connected before the cap, as the login asks the cell as well.
	c := s.Kafka(t, rig.Acme, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, c.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: []byte("before")}).FirstErr())
	lift := s.limit(t, rig.Acme, oneRequest())
	throttled := int32(0)
	rig.Eventually(t, "a request in a row of them is throttled", func() bool {
		throttled = produceOne(w, topic, records(noProducer(), "raw")).ThrottleMillis
		return throttled > 0
	})
	for i := range 2 {
		must(t, c.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: fmt.Append(nil, "client ", i)}).FirstErr())
	}
	lift()
	have := map[string]bool{}
	for _, v := range values(t, fetch(w, topic)) {
		have[v] = true
	}
	if !have["before"] || !have["client 0"] || !have["client 1"] {
		t.Errorf("the work is not complete: %v", have)
	}
	t.Logf("throttle_time_ms %d", throttled)
}

// usage is what a cluster has used this month, by class.
func (s *system) usage(t *testing.T, slug string) map[string]cell.UsageInfo {
	t.Helper()
	out := map[string]cell.UsageInfo{}
	for _, u := range s.do(t, cell.AdminRequest{Op: cell.OpUsage, Cluster: slug}).Usage {
		out[u.Class] = u
	}
	return out
}

func metered(t *testing.T, s *system) {
	topic := s.name("metered")
	sizes := map[string]int64{rig.Acme: 3, rig.Globex: 2}
	for key, n := range sizes {
		_, slug := s.cluster(t, key)
		w := s.Login(t, key)
		makeTopic(t, w, topic)
		before := s.usage(t, slug)
		store(t, w, topic, noProducer(), []string{"1", "2", "3"}[:n]...)
		produced := s.usage(t, slug)
		if got := produced["push"].Msgs - before["push"].Msgs; got != n {
			t.Errorf("%s: Produce of %d records books %d messages", key, n, got)
		}
		fetch(w, topic)
		after := s.usage(t, slug)
		var requests int64
		for class, u := range after {
			if got := u.Msgs - produced[class].Msgs; got != 0 {
				t.Errorf("%s: Fetch books %d messages as %s", key, got, class)
			}
			requests += u.Reqs - produced[class].Reqs
		}
		if requests == 0 {
			t.Errorf("%s: Fetch books no request", key)
		}
		if got := after["read"].Msgs; got != 0 {
			t.Errorf("%s: %d messages are read", key, got)
		}
	}
}

func storageCap(t *testing.T, s *system) {
	topic, group := s.name("full"), s.name("full")
	w := s.Login(t, rig.Acme)
	makeTopic(t, w, topic)
	store(t, w, topic, noProducer(), "more than the sixty-four bytes that the cap of this scenario lets a cluster keep")
	lift := s.limit(t, rig.Acme, map[string]string{"max_retained_bytes": "64"})
	refused := func() bool {
		return produceOne(w, topic, records(noProducer(), "refused")).Topics[0].Partitions[0].ErrorCode != 0
	}
	rig.Eventually(t, "the cap is felt", refused)
	if code := commit(w, group, topic, 1); code != 0 {
		t.Errorf("commit under the cap: code %d", code)
	}
	wantCommitted(t, w, group, topic, 1)
	lift()
	rig.Eventually(t, "the release is felt", func() bool { return !refused() })
}
