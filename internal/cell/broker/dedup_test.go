package broker

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keyed makes items whose payloads and transaction ids are the same texts.
func keyed(partition string, ids ...string) []PushItem {
	list := make([]PushItem, len(ids))
	for i, id := range ids {
		list[i] = PushItem{Queue: "q", Partition: partition, Payload: []byte(id), TransactionID: []byte(id)}
	}
	return list
}

// sequences makes the keys of a producer's records.
func sequences(producer, epoch int, partition string, first, count int) []string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = fmt.Sprintf("qe:%d:%d:%s:%d", producer, epoch, partition, first+i)
	}
	return ids
}

// verdicts renders results: "q3" for queued at 3, "d0" for a duplicate of 0.
func verdicts(results []PushResult) string {
	var list []string
	for _, r := range results {
		list = append(list, fmt.Sprintf("%c%d", "qdf"[r.Status], r.Offset))
	}
	return strings.Join(list, " ")
}

func window(t testing.TB, b *Broker, seconds int64) {
	t.Helper()
	_, err := b.Configure(context.Background(), tenantA, "q", func(o *Options) error { o.DedupWindowSeconds = seconds; return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestDuplicates(t *testing.T) {
	fs, clock := vfs.NewMem(), newClock()
	b := open(t, Config{FS: fs, Clock: clock.now})
	push := func(what, expected string, list []PushItem) {
		t.Helper()
		want(t, what, verdicts(mustPush(t, b, tenantA, list)), expected)
	}
	s := func(first, count int) []PushItem { return keyed("0", sequences(7, 0, "0", first, count)...) }
	push("first", "q0 q1 q2 q3", s(0, 4))
	push("all again", "d0 d1 d2 d3", s(0, 4))
	push("part of it", "d1 d2", s(1, 2))
	push("beginning before its end", "d2 d3 q4 q5", s(2, 4))
	push("over all", "d0 d1 d2 d3 d4 d5 q6", s(0, 7))
	push("another epoch", "q7", keyed("0", "qe:7:1:0:0"))
	push("another producer", "q8", keyed("0", "qe:8:0:0:0"))
	push("another partition", "q0", keyed("1", "qe:7:0:1:0"))
	push("a key of another partition is a text", "q1 d1", keyed("1", "qe:7:0:0:0", "qe:7:0:0:0"))
	push("other ways to write it are other keys", "q9 q10 q11 q12",
		keyed("0", "qe:07:0:0:0", "qe:7:0:0:00", "qe:7:0:0:+0", "qe:7:0:0:0:"))
	push("texts", "q13 q14", keyed("0", "a", "b"))
	push("texts again", "d14 d13 q15", keyed("0", "b", "a", "c"))
	push("twice in one push", "q16 q17 d16 d17 q18 d18", keyed("0", "x", "y", "x", "y", "qe:9:0:0:5", "qe:9:0:0:5"))
	push("ranges that meet in one push", "q19 q20 d20 q21 d19",
		keyed("0", "qe:9:0:0:6", "qe:9:0:0:7", "qe:9:0:0:7", "qe:9:0:0:8", "qe:9:0:0:6"))
	mixed := append(items("q", "0", "plain"), keyed("0", "a", "qe:7:0:0:3", "qe:7:0:0:7")...)
	push("some with keys", "q22 d13 d3 q23", append(mixed, items("q", "2", "elsewhere")...)[:4])
	push("none has a key", "q24 q25", items("q", "0", "p", "p"))
	want(t, "records", len(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"}).Records), 26)
	got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 22})
	want(t, "what is stored", payloads(got), "22:plain 23:qe:7:0:0:7 24:p 25:p")
	r, err := b.Push(context.Background(), tenantB, s(0, 1), nil)
	want(t, "another tenant", []any{verdicts(r), err}, []any{"q0", nil})

	closeBroker(t, b)
	b = open(t, Config{FS: fs, Clock: clock.now})
	push("after reopening", "d0 d5 d6 d16 d13 d18 q26", keyed("0", "qe:7:0:0:0", "qe:7:0:0:5", "qe:7:0:0:6", "x", "a", "qe:9:0:0:5", "new"))
	clock.pass(time.Hour)
	push("behind the window", "q27 q28 q29 q30 q31 q32 q33", s(0, 7))
	push("and again", "d27 d33 d29", keyed("0", "qe:7:0:0:0", "qe:7:0:0:6", "qe:7:0:0:2"))
	if _, err := b.Delete(context.Background(), tenantA, "q"); err != nil {
		t.Fatal(err)
	}
	push("a queue made again", "q0 q1", s(0, 2))
}

// TestMessageIDsOfDuplicates: what Push says and what Fetch shows agree, and no
// id is given twice.
func TestMessageIDsOfDuplicates(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, keyed("0", sequences(1, 0, "0", 10, 3)...))
	list := append(keyed("0", sequences(1, 0, "0", 8, 6)...), items("q", "1", "a", "b")...)
	r := mustPush(t, b, tenantA, list)
	want(t, "verdicts", verdicts(r), "q3 q4 d0 d1 d2 q5 q0 q1")
	seen := make(map[[16]byte]bool)
	for i := range r {
		if seen[r[i].MessageID] {
			t.Errorf("item %d has an id that another has", i)
		}
		seen[r[i].MessageID] = true
	}
	got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 3})
	for i, at := range []int{0, 1, 5} {
		want(t, "id", got.Records[i].MessageID, r[at].MessageID)
		want(t, "transaction id", got.Records[i].TransactionID, string(list[at].TransactionID))
	}
}

// TestLargePushWithDuplicates takes duplicates out of a push of many chunks.
func TestLargePushWithDuplicates(t *testing.T) {
	b := open(t, Config{SegmentBytes: 8 << 20})
	const n = 1000
	pad := strings.Repeat("x", 2000)
	list := keyed("0", sequences(1, 0, "0", 0, n)...)
	for i := range list {
		list[i].Payload = []byte(fmt.Sprintf("%d-%s", i, pad))
	}
	mustPush(t, b, tenantA, list[300:500])
	r := mustPush(t, b, tenantA, list)
	want(t, "edges", verdicts([]PushResult{r[0], r[299], r[300], r[499], r[500], r[999]}), "q200 q499 d0 d199 q500 q999")
	for i := range r {
		got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: r[i].Offset, MaxBytes: 1})
		if string(got.Records[0].Payload) != string(list[i].Payload) {
			t.Fatalf("offset %d holds %.20s", r[i].Offset, got.Records[0].Payload)
		}
	}
}

func TestNoWindow(t *testing.T) {
	b := open(t, Config{})
	window(t, b, 0)
	ids := append(sequences(1, 0, "0", 0, 2), "a", "a")
	want(t, "verdicts", verdicts(mustPush(t, b, tenantA, keyed("0", ids...))), "q0 q1 q2 q3")
	want(t, "again", verdicts(mustPush(t, b, tenantA, keyed("0", ids...))), "q4 q5 q6 q7")
	want(t, "rows", indexRows(t, b, rangeRows)+indexRows(t, b, singleRows), 0)
	window(t, b, math.MaxInt64)
	want(t, "a window without end", verdicts(mustPush(t, b, tenantA, keyed("0", ids...))), "q8 q9 q10 d10")
	want(t, "again", verdicts(mustPush(t, b, tenantA, keyed("0", ids...))), "d8 d9 d10 d10")
}

// TestKeysAreFew: one row per push and partition, removed when the window has
// passed or the queue is deleted.
func TestKeysAreFew(t *testing.T) {
	clock := newClock()
	b := open(t, Config{Clock: clock.now})
	window(t, b, 100)
	for i := range 10 {
		list := append(keyed("0", sequences(1, 0, "0", i*50, 50)...), keyed("1", sequences(1, 0, "1", i*50, 50)...)...)
		mustPush(t, b, tenantA, list)
		clock.pass(5 * time.Second)
	}
	mustPush(t, b, tenantA, keyed("0", "a", "b"))
	want(t, "rows", []int{indexRows(t, b, rangeRows), indexRows(t, b, singleRows)}, []int{20, 2})
	clock.pass(70 * time.Second) // 120 s after the first, 75 s after the last
	tidyNow(t, b)
	want(t, "rows later", []int{indexRows(t, b, rangeRows), indexRows(t, b, singleRows)}, []int{10, 2})
	want(t, "verdicts", verdicts(mustPush(t, b, tenantA, keyed("0", "qe:1:0:0:249", "qe:1:0:0:250", "a"))), "q502 d250 d500")
	if _, err := b.Delete(context.Background(), tenantA, "q"); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the rows are gone", func() bool { return indexRows(t, b, rangeRows)+indexRows(t, b, singleRows) == 0 })
}

// TestDuplicatesWithinAGroup sends the same keys from many callers at once:
// each is stored once, whatever falls into one group.
func TestDuplicatesWithinAGroup(t *testing.T) {
	b := open(t, Config{})
	const callers, rounds = 16, 20
	round := func(i int) []string { return append(sequences(1, 0, "0", i*3, 5), fmt.Sprint("t", i)) }
	done := make(chan [][]PushResult, callers)
	for range callers {
		go func() {
			var all [][]PushResult
			for i := range rounds {
				r, err := b.Push(context.Background(), tenantA, keyed("0", round(i)...), nil)
				if err != nil {
					t.Error(err)
				}
				all = append(all, r)
			}
			done <- all
		}()
	}
	offsets := make(map[string]int64)
	queued := 0
	for range callers {
		for i, r := range <-done {
			for j, id := range round(i) {
				if at, seen := offsets[id]; seen && at != r[j].Offset {
					t.Fatalf("round %d: %s is at %d and at %d", i, id, at, r[j].Offset)
				}
				offsets[id] = r[j].Offset
				if r[j].Status == Queued {
					queued++
				}
			}
		}
	}
	want(t, "stored once", queued, len(offsets))
	want(t, "records", fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"}).HighWatermark, queued)
}

// TestKeysTakeNoRoom: of a run of sequences only the first is spelled out, and
// all are read back, also from the middle of a chunk and from an older blob.
func TestKeysTakeNoRoom(t *testing.T) {
	b := open(t, Config{})
	ids := append(sequences(1<<40, 3, "0", 95, 10), "text", "", "qe:1:0:0:7", "qe:1:0:0:9")
	list := keyed("0", ids...)
	for i := range list {
		list[i].Payload = []byte("p")
	}
	mustPush(t, b, tenantA, list)
	for from := range ids {
		got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: int64(from)})
		for i, rec := range got.Records {
			want(t, "id", rec.TransactionID, ids[from+i])
		}
	}
	p := push{items: list}
	if err := p.sort(); err != nil {
		t.Fatal(err)
	}
	p.encode()
	spelled := blobHeader + len(ids)*3 + len(ids[0]+"textqe:1:0:0:7qe:1:0:0:9")
	want(t, "bytes", len(p.lanes[0].blobs[0].Data), spelled)

	old := append([]byte{oldBlobFormat}, make([]byte, blobHeader-1)...)
	old = append(old, "\x01\x02tx1\x01\x002"...)
	s := span{to: 2, maxBytes: 100, maxRecords: 10}
	records, _, err := s.take(&chunk{count: 2}, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "older format", []any{records[0].TransactionID, string(records[0].Payload), records[1].TransactionID, string(records[1].Payload)}, []any{"tx", "1", "", "2"})
}
