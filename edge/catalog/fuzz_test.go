package catalog

import (
	"testing"

	"github.com/queen-mq/queen-edge/proxyclient"
)

// FuzzTopicRecord: whatever lies under a topic record's key, reading it declares
// one legal width or window for that topic, or nothing.
func FuzzTopicRecord(f *testing.F) {
	for _, value := range []string{
		`{"qid":"q-1","partitions":12,"config":{"retention.ms":"1000"}}`, `{"partitions":1}`, `{"qid":null,"partitions":3}`,
		`{"set":{"dedupWindowSeconds":900}}`, `{"partitions":2,"set":{"dedupWindowSeconds":-1,"retentionSeconds":"x"}}`,
		`{"partitions":2,"set":[]}`, `{"partitions":0}`, `{"partitions":-9223372036854775808}`, `{"partitions":1e99}`, `{"partitions":"3"}`, `[]`, `null`, ``, `{"qid":7}`,
		`{"qid":null,"partitions":3,"pending":true,"at":1790000000000}`, `{"partitions":3,"pending":true,"at":-9223372036854775808}`,
	} {
		f.Add("qk:topiccfg:t", []byte(value))
	}
	f.Add("other", []byte(`{"partitions":2}`))
	const most = 100
	c := New(nil, Config{DefaultPartitions: 4, MaxPartitions: most, MaxTenants: 1})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		found := c.declare(nil, proxyclient.KVRow{Key: key, Value: value})
		if len(found) > 1 {
			t.Fatalf("one record declares %d widths", len(found))
		}
		for _, w := range found {
			if w.n < 0 || w.n > most || w.window < 0 || w.n == 0 && w.window == 0 {
				t.Errorf("%q declares a width of %d and a window of %d", value, w.n, w.window)
			}
			if got, ok := found.of(w.topic, w.queueID, c.cfg.Clock()); !ok || got != w {
				t.Errorf("%q: the width is not found again", value)
			}
		}
	})
}
