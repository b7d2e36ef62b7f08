package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/proxyclient"
)

func TestWidths(t *testing.T) {
	r := newRig(t)
	for name, live := range map[string]int{"default": 0, "live": 7, "floor": 2, "lower": 9, "one": 1, "huge": 1 << 30, "other": 1, "odd": 1, "zero": 0, "max": 1} {
		r.queue("acme", name, live)
	}
	r.cell.set(func(f *fakeCell) {
		f.records["acme"] = []proxyclient.KVRow{
			record("floor", "id-floor", 12),
			record("gone", "id-gone", 50),
			record("lower", "id-lower", 3),
			record("max", "id-max", 1<<40),
			{Key: "qk:topiccfg:odd", Value: []byte(`{"partitions":"twelve"}`)},
			record("one", "id-one", 1),
			record("other", "id-of-an-earlier-queue", 50),
			record("zero", "id-zero", 0),
		}
	})
	r.wants("widths", r.get("acme.1"),
		"default:4 floor:12 huge:100 live:7 lower:9 max:100 odd:4 one:1 other:4 zero:4")
	r.calls("acme.1", 1, 4) // two rows a page
}

// The window a topic was made with is in its record; without one there is none.
func TestWindows(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"both", "none", "odd", "off", "only", "other"} {
		r.queue("acme", name, 1)
	}
	row := func(topic, value string) proxyclient.KVRow {
		return proxyclient.KVRow{Key: "qk:topiccfg:" + topic, Value: []byte(value)}
	}
	r.cell.set(func(f *fakeCell) {
		f.records["acme"] = []proxyclient.KVRow{
			row("both", `{"qid":"id-both","partitions":12,"set":{"dedupWindowSeconds":900,"retentionSeconds":5}}`),
			row("odd", `{"qid":"id-odd","partitions":9,"set":{"dedupWindowSeconds":"long"}}`),
			row("off", `{"qid":"id-off","set":{"dedupWindowSeconds":0}}`),
			row("only", `{"qid":"id-only","partitions":null,"set":{"dedupWindowSeconds":7}}`),
			row("other", `{"qid":"of-an-earlier-queue","partitions":12,"set":{"dedupWindowSeconds":900}}`),
		}
	})
	list, err := r.Catalog.Get(t.Context(), r.as("acme.1"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, topic := range list.Topics() {
		got += fmt.Sprintf(" %s:%d/%d", topic.Name, topic.Width, topic.Window)
	}
	r.wants("windows", got, " both:12/900 none:4/0 odd:9/0 off:4/0 only:4/7 other:4/0")
}

// The scan has its own, slower time.
func TestWidthsAreScannedEveryThirtySeconds(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.get("acme.1")
	r.cell.set(func(f *fakeCell) { f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)} })
	for range 9 {
		r.advance(3 * time.Second)
		r.wants("known widths", r.get("acme.1"), "a:4")
	}
	r.calls("acme.1", 10, 1)
	r.advance(3 * time.Second)
	r.wants("scanned again", r.fresh("acme.1"), "a:12")
	r.calls("acme.1", 11, 2)
}

// A queue that somebody else has made is not shown narrower than it was declared
// for longer than a moment: its record is looked for at once, and a second time
// where it was not there yet.
func TestWidthsOfANewQueue(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "old", 1)
	r.wants("at first", r.get("acme.1"), "old:4")
	r.advance(3 * time.Second)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)} })
	r.wants("with its record", r.fresh("acme.1"), "a:12 old:4")
	r.calls("acme.1", 2, 2)

	r.queue("acme", "b", 1)
	r.advance(2*time.Second - 1)
	r.wants("scanned a moment ago", r.fresh("acme.1"), "a:12 b:4 old:4")
	r.calls("acme.1", 3, 2)
	r.advance(1)
	r.wants("the record is on its way", r.fresh("acme.1"), "a:12 b:4 old:4")
	r.calls("acme.1", 4, 3)
	r.cell.set(func(f *fakeCell) {
		f.records["acme"] = append(f.records["acme"], record("b", "id-b", 9))
	})
	r.wants("not yet asked again", r.fresh("acme.1"), "a:12 b:4 old:4")
	r.advance(2 * time.Second)
	r.wants("asked again", r.fresh("acme.1"), "a:12 b:9 old:4")
	r.calls("acme.1", 6, 4)

	// One that never gets a record costs no more than that.
	r.queue("acme", "native", 1)
	for range 8 {
		r.advance(3 * time.Second)
		r.fresh("acme.1")
	}
	r.calls("acme.1", 14, 6)
}

// A login's listing may show such a queue first: its record is looked for as well.
func TestWidthsOfANewQueueThatALoginSaw(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "old", 1)
	r.wants("at first", r.get("acme.1"), "old:4")
	r.advance(2 * time.Second)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)} })
	r.Warm(r.as("acme.2"), []proxyclient.Queue{{Name: "old", ID: "id-old"}, {Name: "a", ID: "id-a"}}, r.clock())
	r.wants("after the login", r.get("acme.2"), "a:12 old:4")
	r.calls("acme.2", 0, 1)
	r.advance(3 * time.Second)
	r.wants("and later", r.get("acme.2"), "a:12 old:4")
	r.calls("acme.2", 1, 2) // and the second look at a new one
}

// A reserved name, or one that Kafka cannot say, is not looked for.
func TestWidthsOfWhatIsNoTopic(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "old", 1)
	r.get("acme.1")
	r.advance(3 * time.Second)
	r.queue("acme", "__reserved", 1)
	r.queue("acme", "not legal", 1)
	r.wants("old", r.fresh("acme.1"), "old:4")
	r.calls("acme.1", 2, 1)
}

func TestWidthsOfACellWithoutKV(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.kvErr[""] = status(404) })
	r.wants("no KV", r.get("acme.1"), "a:4")
	r.advance(3 * time.Second)
	r.get("acme.1")
	r.calls("acme.1", 2, 1)
}

// A scan that fails keeps the widths that are known: losing one would narrow a
// topic and send keys elsewhere.
func TestFailedScanKeepsWidths(t *testing.T) {
	for name, fault := range map[string]func(*fakeCell){
		"down":      func(f *fakeCell) { f.kvErr[""] = errDown },
		"limited":   func(f *fakeCell) { f.kvErr[""] = status(429) },
		"failing":   func(f *fakeCell) { f.kvErr[""] = status(500) },
		"refused":   func(f *fakeCell) { f.kvErr[""] = status(403) },
		"truncated": func(f *fakeCell) { f.truncated, f.records["acme"] = true, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.queue("acme", "a", 1)
			r.queue("acme", "b", 1)
			r.cell.set(func(f *fakeCell) {
				f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12), record("b", "id-b", 13)}
			})
			r.get("acme.1")
			r.cell.set(fault)
			for range 3 {
				r.advance(30 * time.Second)
				r.wants("kept", r.get("acme.1"), "a:12 b:13")
			}
		})
	}
}

// The first scan that could not be made is not "nobody declared a width": the
// list is refused for now, by both ways of reading.
func TestFirstScanFails(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) {
		f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)}
		f.kvErr[""] = status(503)
	})
	for _, read := range []func(string) string{r.get, r.fresh} {
		if got := read("acme.1"); got == "a:4" {
			t.Error("a topic was narrowed")
		}
		r.advance(3 * time.Second)
	}
	r.cell.set(func(f *fakeCell) { f.kvErr[""] = nil })
	r.wants("when it can", r.get("acme.1"), "a:12")
}

// A credential that may not read the records (a producer's: the cell wants
// consume) is served what is known, else the defaults. A sibling is not.
func TestCredentialThatMayNotReadRecords(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) {
		f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 12)}
		f.kvErr["acme.producer"] = status(403)
	})
	r.wants("the producer, nothing known", r.get("acme.producer"), "a:4")
	r.wants("again", r.get("acme.producer"), "a:4")
	r.calls("acme.producer", 1, 1)
	r.wants("a sibling", r.get("acme.1"), "a:12")
	r.wants("the producer, widths known", r.get("acme.producer"), "a:12")
	for range 5 {
		r.advance(3 * time.Second)
		r.wants("later", r.get("acme.producer"), "a:12")
	}
	r.calls("acme.producer", 6, 1) // a refused scan costs a request: not every time
	// And it does not keep the sibling's scans away.
	r.cell.set(func(f *fakeCell) { f.records["acme"] = []proxyclient.KVRow{record("a", "id-a", 20)} })
	r.advance(30 * time.Second)
	r.get("acme.producer")
	r.advance(3 * time.Second)
	r.wants("scanned by the sibling", r.get("acme.1"), "a:20")
}

// More records than a scan takes: what was seen counts, and the scan is not
// repeated at every listing.
func TestTruncatedFirstScan(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "t000", 1)
	r.queue("acme", "t099", 1)
	r.cell.set(func(f *fakeCell) {
		for i := range 100 { // 50 pages
			name := fmt.Sprintf("t%03d", i)
			f.records["acme"] = append(f.records["acme"], record(name, "id-"+name, 12))
		}
	})
	r.wants("what was seen", r.get("acme.1"), "t000:12 t099:4")
	scans := r.cell.scanned("acme.1")
	r.advance(3 * time.Second)
	r.get("acme.1")
	if again := r.cell.scanned("acme.1"); scans != 32 || again != scans {
		t.Errorf("%d pages, then %d", scans, again)
	}
}

func TestScanThatDoesNotGetOn(t *testing.T) {
	r := newRig(t)
	r.queue("acme", "a", 1)
	r.cell.set(func(f *fakeCell) { f.truncated = true })
	r.wants("served", r.get("acme.1"), "a:4")
	r.calls("acme.1", 1, 1)
}
