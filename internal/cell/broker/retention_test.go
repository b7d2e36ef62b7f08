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

func keepFor(t testing.TB, b *Broker, seconds int64, enabled bool) {
	t.Helper()
	_, err := b.Configure(context.Background(), tenantA, "q", func(o *Options) error {
		o.RetentionSeconds, o.RetentionEnabled = seconds, enabled
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRetention(t *testing.T) {
	fs, clock := vfs.NewMem(), newClock()
	b := open(t, Config{FS: fs, Clock: clock.now})
	for i := range 5 {
		mustPush(t, b, tenantA, items("q", "0", fmt.Sprintf("a%d", i), "bb"))
		clock.pass(10 * time.Second)
	}
	mustPush(t, b, tenantA, items("q", "1", "z"))
	bounds := func(what, partition string, start, next, bytes int64) {
		t.Helper()
		probe := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: partition, Offset: math.MaxInt64})
		sizes, _ := b.PartitionSizes(tenantA, "q")
		want(t, what, []any{probe.LogStartOffset, probe.HighWatermark, sizes[partition]}, []any{start, next, bytes})
	}
	pass := func() {
		t.Helper()
		tidyNow(t, b)
	}
	keepFor(t, b, 25, false)
	pass()
	bounds("off", "0", 0, 10, 20)
	keepFor(t, b, math.MaxInt64, true)
	pass()
	bounds("for ever", "0", 0, 10, 20)
	keepFor(t, b, 0, true)
	pass()
	bounds("no time given", "0", 0, 10, 20)
	keepFor(t, b, 30, true) // appended 50, 40, 30, 20 and 10 seconds ago
	pass()
	bounds("as old as is kept", "0", 4, 10, 12)
	clock.pass(time.Microsecond)
	pass()
	bounds("a moment later", "0", 6, 10, 8)
	want(t, "records", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 6})), "6:a3 7:bb 8:a4 9:bb")
	below := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 5})
	want(t, "below", []any{below.Error, len(below.Records), below.LogStartOffset}, []any{OffsetOutOfRange, 0, 6})
	times, err := b.OffsetsForTimes(context.Background(), tenantA, []TimeQuery{{Queue: "q", Partition: "0", Time: time.Unix(0, 0)}})
	want(t, "the first time", []any{times[0].Offset, err}, []any{6, nil})
	reopen := func() {
		t.Helper()
		closeBroker(t, b)
		b = open(t, Config{FS: fs, Clock: clock.now})
	}
	reopen()
	bounds("reopened", "0", 6, 10, 8)
	want(t, "rows", indexRows(t, b, chunkRows), 3)
	clock.pass(time.Hour)
	pass()
	bounds("all gone", "0", 10, 10, 0)
	bounds("all gone", "1", 1, 1, 0)
	reopen()
	bounds("all gone, reopened", "0", 10, 10, 0)
	want(t, "nothing is that late", fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 10}).Error, NoError)
	want(t, "offsets go on", mustPush(t, b, tenantA, items("q", "0", "next"))[0].Offset, 10)
	bounds("after a push", "0", 10, 11, 4)
	reopen()
	bounds("after a push, reopened", "0", 10, 11, 4)
	want(t, "records", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 10})), "10:next")
	if _, err := b.Delete(context.Background(), tenantA, "q"); err != nil {
		t.Fatal(err)
	}
	mustPush(t, b, tenantA, items("q", "0", "new"))
	bounds("made again", "0", 0, 1, 3)
}

// TestRetentionFreesFiles: what is below the start is reclaimed, and what is
// kept beside it is copied forward.
func TestRetentionFreesFiles(t *testing.T) {
	fs, clock := newWatchedFS(vfs.NewMem()), newClock()
	b := open(t, Config{FS: fs, Clock: clock.now, SegmentBytes: 16 << 10})
	keepFor(t, b, 60, true)
	filler := strings.Repeat("x", 2000)
	var kept []string
	for i := range 100 {
		mustPush(t, b, tenantA, items("q", fmt.Sprint(i%5), filler, filler))
		p := fmt.Sprintf("keep-%d", i)
		kept = append(kept, fmt.Sprintf("%d:%s", i, p))
		mustPush(t, b, tenantA, items("kept", "0", p))
	}
	clock.pass(2 * time.Minute)
	tidyNow(t, b)
	awaitTrue(t, "the files are unused", func() bool {
		inUse, _ := b.store.Files()
		return inUse <= 4
	})
	want(t, "kept", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "kept", Partition: "0"})), strings.Join(kept, " "))
	q, _ := b.Queue(tenantA, "q")
	want(t, "retained", []any{q.RetainedBytes, q.Partitions}, []any{0, 5})
	want(t, "chunks", indexRows(t, b, chunkRows), 100)
}

// TestRetentionMeetsReaders: a fetch that is parked at the end does not notice,
// and what one has gathered before the start rose is still given.
func TestRetentionMeetsReaders(t *testing.T) {
	clock := newClock()
	b := open(t, Config{Clock: clock.now})
	keepFor(t, b, 60, true)
	mustPush(t, b, tenantA, items("q", "0", "a"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	atEnd, gathering := park(ctx, t, b, poll("0", 1, 1)), park(ctx, t, b, poll("0", 0, 2))
	clock.pass(2 * time.Minute)
	tidyNow(t, b)
	want(t, "start", fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: math.MaxInt64}).LogStartOffset, 1)
	mustPush(t, b, tenantA, items("q", "0", "b"))
	want(t, "at the end", payloads((<-atEnd).results[0]), "1:b")
	if r := <-gathering; r.err != nil || payloads(r.results[0]) != "0:a 1:b" && r.results[0].Error != OffsetOutOfRange {
		t.Errorf("gathering: %v, %v", r.results, r.err)
	}
}

// TestRowsBelowTheStart opens a folder whose start was raised and whose rows
// below were not removed yet, as a power cut may leave it.
func TestRowsBelowTheStart(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs})
	for _, p := range []string{"a", "bb", "ccc"} {
		mustPush(t, b, tenantA, items("q", "0", p))
	}
	if err := b.trim(b.catalog.find(tenantA, "q").partition("0"), 2, 3); err != nil {
		t.Fatal(err)
	}
	want(t, "rows", indexRows(t, b, chunkRows), 3)
	closeBroker(t, b)
	b = open(t, Config{FS: fs})
	got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 2})
	sizes, _ := b.PartitionSizes(tenantA, "q")
	want(t, "what is left", []any{payloads(got), got.LogStartOffset, sizes["0"]}, []any{"2:ccc", 2, 3})
	awaitTrue(t, "the rows are removed", func() bool { return indexRows(t, b, chunkRows) == 1 })
	want(t, "offsets go on", mustPush(t, b, tenantA, items("q", "0", "d"))[0].Offset, 3)
}
