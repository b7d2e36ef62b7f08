package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// park starts a long poll and waits until it is parked.
func park(ctx context.Context, t *testing.T, b *Broker, r FetchRequest) <-chan parked {
	t.Helper()
	done := make(chan parked, 1)
	go func() {
		results, err := b.Fetch(ctx, tenantA, r)
		done <- parked{results, err}
	}()
	q := b.catalog.find(tenantA, r.Entries[0].Queue)
	awaitTrue(t, "the fetch is parked", q.watched)
	return done
}

type parked struct {
	results []FetchResult
	err     error
}

func (q *queue) watched() bool {
	q.mu.RLock()
	n := len(q.waiters.set)
	q.mu.RUnlock()
	for _, p := range q.partitions() {
		p.mu.Lock()
		n += len(p.waiters.set)
		p.mu.Unlock()
	}
	return n > 0
}

func poll(partition string, offset int64, minBytes int) FetchRequest {
	return FetchRequest{
		Entries: []FetchEntry{{Queue: "q", Partition: partition, Offset: offset, MaxBytes: 1 << 20}},
		MaxWait: 30 * time.Second, MinBytes: minBytes,
	}
}

// TestWake: a parked fetch is woken by the append, not by the end of its wait.
func TestWake(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	for try := int64(1); try <= 20; try++ {
		done := park(context.Background(), t, b, poll("0", try, 1))
		mustPush(t, b, tenantA, items("q", "0", "b"))
		pushed := time.Now()
		got := <-done
		want(t, "records", payloads(got.results[0]), fmt.Sprintf("%d:b", try))
		// Below the 30 s of the wait by a distance that no busy machine bridges.
		if took := time.Since(pushed); took > 20*time.Second {
			t.Fatalf("woken %v after the append", took)
		}
	}
}

func TestLongPollEnds(t *testing.T) {
	b := open(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mustPush(t, b, tenantA, items("q", "0", "a"))

	done := park(ctx, t, b, poll("new", 0, 1))
	mustPush(t, b, tenantA, items("q", "new", "n"))
	want(t, "a partition is made", payloads((<-done).results[0]), "0:n")

	done = park(ctx, t, b, poll("0", 1, 1))
	if _, err := b.Delete(ctx, tenantA, "q"); err != nil {
		t.Fatal(err)
	}
	want(t, "the queue is deleted", (<-done).results[0].Error, UnknownTopicOrPartition)

	mustPush(t, b, tenantA, items("q", "0", "a"))
	r := poll("0", 1, 1)
	r.MaxWait = time.Millisecond
	got, err := b.Fetch(ctx, tenantA, r)
	want(t, "time is up", []any{len(got), err, len(got[0].Records), got[0].HighWatermark}, []any{1, nil, 0, 1})
	if _, err = b.Fetch(ctx, tenantA, poll("0", 1, 0)); err != nil { // would take 30 s
		t.Error(err)
	}

	done = park(ctx, t, b, poll("0", 1, 1))
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the client has left: %v", got.err)
	}
	want(t, "nobody waits", b.catalog.find(tenantA, "q").watched(), false)

	done = park(context.Background(), t, b, poll("0", 1, 1))
	closeBroker(t, b)
	if got := <-done; !errors.Is(got.err, ErrClosed) {
		t.Errorf("the broker is closed: %v", got.err)
	}
	if _, err := b.Push(context.Background(), tenantA, items("q", "0", "a"), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("push: %v", err)
	}
}

// TestMinBytes parks until records worth 1,000 bytes are there, empty ones
// counting 1, and reads each of them once.
func TestMinBytes(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "start"))
	done := park(context.Background(), t, b, poll("0", 1, 1000))
	for i := range 10 {
		mustPush(t, b, tenantA, items("q", "0", strings.Repeat("x", 99+i%2), ""))
		select {
		case got := <-done:
			if i < 9 {
				t.Fatalf("answered after %d pushes: %v", i+1, got.err)
			}
			want(t, "records", len(got.results[0].Records), 20)
			return
		default:
		}
	}
	got := <-done
	want(t, "records", len(got.results[0].Records), 20)
}

func TestFetchLimits(t *testing.T) {
	b := open(t, Config{SegmentBytes: 1 << 20})
	var list []PushItem
	for i := range 12_000 {
		list = append(list, PushItem{Queue: "q", Partition: "many", Payload: fmt.Appendf(nil, "%05d", i)})
	}
	big := bytes.Repeat([]byte("b"), 3<<20) // larger than a segment
	for range 4 {
		list = append(list, PushItem{Queue: "q", Partition: "big", Payload: big})
	}
	mustPush(t, b, tenantA, list)

	got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "many", Offset: 500, MaxBytes: 8 << 20})
	want(t, "records of an entry", len(got.Records), 10_000)
	want(t, "first", string(got.Records[0].Payload), "00500")
	got = fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "many", Offset: 11_990, MaxBytes: 23})
	want(t, "whole records within MaxBytes", payloads(got), "11990:11990 11991:11991 11992:11992 11993:11993")
	for maxBytes, n := range map[int]int{1: 1, 3 << 20: 1, 6 << 20: 2, 7 << 20: 2, 1 << 30: 2} {
		got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "big", MaxBytes: maxBytes})
		want(t, fmt.Sprintf("big records in %d bytes", maxBytes), len(got.Records), n)
	}

	r := FetchRequest{Entries: make([]FetchEntry, 40)}
	for i := range r.Entries {
		r.Entries[i] = FetchEntry{Queue: "q", Partition: "big", Offset: int64(i % 3), MaxBytes: 8 << 20}
	}
	all, err := b.Fetch(context.Background(), tenantA, r)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i := range all {
		total += len(all[i].Records)
	}
	if total < len(all) || total > len(all)+12 {
		t.Errorf("%d records of 3 MiB for %d entries: 64 MiB should bound the call, one record each", total, len(all))
	}
}

func TestRefusedPushes(t *testing.T) {
	b := open(t, Config{})
	ctx := context.Background()
	for name, list := range map[string][]PushItem{
		"long queue":       items(strings.Repeat("q", 512), "0", "a"),
		"long partition":   items("q", strings.Repeat("p", 511), "a"),
		"long transaction": {{Queue: "q", Partition: "0", TransactionID: bytes.Repeat([]byte("t"), 5000)}},
	} {
		if _, err := b.Push(ctx, tenantA, list, nil); !errors.Is(err, ErrNameTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, list := range map[string][]PushItem{"no queue": items("", "0", "a"), "no partition": items("q", "", "a")} {
		if _, err := b.Push(ctx, tenantA, list, nil); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Configure(ctx, tenantA, strings.Repeat("q", 512), nil); !errors.Is(err, ErrNameTooLong) {
		t.Errorf("configure: %v", err)
	}
	// All or nothing: the second item refuses the first.
	if _, err := b.Push(ctx, tenantA, append(items("q", "0", "a"), items("q", "", "b")...), nil); err == nil {
		t.Error("a push with a bad item was taken")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.Push(canceled, tenantA, items("q", "0", "a"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	want(t, "queues", len(b.Queues(tenantA)), 0)
	r, err := b.Push(ctx, tenantA, nil, nil)
	want(t, "empty push", []any{len(r), err}, []any{0, nil})
}

func TestOffsetsForTimes(t *testing.T) {
	clock := &fakeClock{now: time.Unix(1000, 0)}
	b := open(t, Config{Clock: clock.Now})
	at := func(s int64, payloads ...string) {
		clock.Set(time.Unix(s, 0))
		mustPush(t, b, tenantA, items("q", "0", payloads...))
	}
	at(1000, "a", "b")
	at(1010, "c")
	at(1005, "d") // the clock went back: append times do not
	at(1020, "e", "f")
	for _, c := range []struct {
		time   time.Time
		offset int64
		at     int64
	}{
		{time.Unix(0, 0), 0, 1000},
		{time.Unix(1000, 0), 0, 1000},
		{time.Unix(1000, 1), 2, 1010},
		{time.Unix(1010, 0), 2, 1010},
		{time.Unix(1011, 0), 4, 1020},
		{time.Unix(1020, 0), 4, 1020},
		{time.Unix(1021, 0), -1, 0},
	} {
		r, err := b.OffsetsForTimes(context.Background(), tenantA, []TimeQuery{{Queue: "q", Partition: "0", Time: c.time}})
		if err != nil {
			t.Fatal(err)
		}
		want(t, c.time.String(), []any{r[0].Offset, r[0].HighWatermark, r[0].Error}, []any{c.offset, 6, NoError})
		if c.offset >= 0 {
			want(t, c.time.String(), r[0].AppendTime.Unix(), c.at)
		}
	}
	r, err := b.OffsetsForTimes(context.Background(), tenantA, []TimeQuery{{Queue: "q", Partition: "1"}, {Queue: "p", Partition: "0"}})
	want(t, "unwritten and unknown", []any{r[0].Offset, r[0].Error, r[1].Offset, r[1].Error, err}, []any{-1, NoError, -1, UnknownTopicOrPartition, nil})
	if _, err := b.OffsetsForTimes(context.Background(), tenantA, make([]TimeQuery, 1025)); !errors.Is(err, ErrTooMany) {
		t.Errorf("1025 queries: %v", err)
	}
}

type fakeClock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
