package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	tenantA = Tenant{1}
	tenantB = Tenant{2}
)

// open opens a broker that the test closes.
func open(t testing.TB, cfg Config) *Broker {
	t.Helper()
	if cfg.FS == nil {
		cfg.FS = vfs.NewMem()
	}
	if cfg.Dir == "" {
		cfg.Dir = "data"
	}
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = 64 << 10
	}
	b, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBroker(t, b) })
	return b
}

func closeBroker(t testing.TB, b *Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func items(queue, partition string, payloads ...string) []PushItem {
	list := make([]PushItem, len(payloads))
	for i, p := range payloads {
		list[i] = PushItem{Queue: queue, Partition: partition, Payload: []byte(p)}
	}
	return list
}

func mustPush(t testing.TB, b *Broker, tenant Tenant, list []PushItem) []PushResult {
	t.Helper()
	r, err := b.Push(context.Background(), tenant, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetchOne(t testing.TB, b *Broker, tenant Tenant, e FetchEntry) FetchResult {
	t.Helper()
	if e.MaxBytes == 0 {
		e.MaxBytes = 1 << 20
	}
	r, err := b.Fetch(context.Background(), tenant, FetchRequest{Entries: []FetchEntry{e}})
	if err != nil {
		t.Fatal(err)
	}
	return r[0]
}

func payloads(r FetchResult) string {
	var list []string
	for _, rec := range r.Records {
		list = append(list, fmt.Sprintf("%d:%s", rec.Offset, rec.Payload))
	}
	return strings.Join(list, " ")
}

func want(t testing.TB, what string, got, expected any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Errorf("%s: got %v, expected %v", what, got, expected)
	}
}

func TestPushAndFetch(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs})
	list := append(items("q", "0", "a", "b"), items("q", "7", "x")...)
	list = append(list, items("q", "0", "c")...)
	list[3].TransactionID = []byte("tx")
	r := mustPush(t, b, tenantA, list)
	for i, offset := range []int64{0, 1, 0, 2} {
		want(t, "offset", r[i].Offset, offset)
	}
	mustPush(t, b, tenantA, items("q", "0", "d"))
	mustPush(t, b, tenantB, items("q", "0", "other"))

	check := func(b *Broker) {
		t.Helper()
		got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: 1})
		want(t, "records", payloads(got), "1:b 2:c 3:d")
		want(t, "high watermark", got.HighWatermark, 4)
		want(t, "message id", got.Records[1].MessageID, r[3].MessageID)
		want(t, "transaction id", got.Records[1].TransactionID, "tx")
		want(t, "one push, one time", got.Records[0].AppendTime.Equal(got.Records[1].AppendTime), true)
		want(t, "partition 7", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "7"})), "0:x")
		want(t, "tenant B", payloads(fetchOne(t, b, tenantB, FetchEntry{Queue: "q", Partition: "0"})), "0:other")
		q, _ := b.Queue(tenantA, "q")
		want(t, "partitions", q.Partitions, 2)
		want(t, "bytes", q.RetainedBytes, 5)
		sizes, _ := b.PartitionSizes(tenantA, "q")
		want(t, "sizes", sizes, map[string]int64{"0": 4, "7": 1})
	}
	check(b)
	closeBroker(t, b)
	check(open(t, Config{FS: fs}))
}

func TestBounds(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "a", "b"))
	for _, c := range []struct {
		name   string
		entry  FetchEntry
		err    EntryError
		hw     int64
		number int
	}{
		{"probe", FetchEntry{Queue: "q", Partition: "0", Offset: math.MaxInt64}, OffsetOutOfRange, 2, 0},
		{"at the end", FetchEntry{Queue: "q", Partition: "0", Offset: 2}, NoError, 2, 0},
		{"behind the end", FetchEntry{Queue: "q", Partition: "0", Offset: 3}, OffsetOutOfRange, 2, 0},
		{"unwritten", FetchEntry{Queue: "q", Partition: "1"}, NoError, 0, 0},
		{"unwritten, 5", FetchEntry{Queue: "q", Partition: "1", Offset: 5}, OffsetOutOfRange, 0, 0},
		{"unwritten, probe", FetchEntry{Queue: "q", Partition: "1", Offset: math.MaxInt64}, OffsetOutOfRange, 0, 0},
		{"no queue", FetchEntry{Queue: "p", Partition: "0"}, UnknownTopicOrPartition, 0, 0},
		{"one byte", FetchEntry{Queue: "q", Partition: "0", MaxBytes: 1}, NoError, 2, 1},
		{"all", FetchEntry{Queue: "q", Partition: "0"}, NoError, 2, 2},
	} {
		got := fetchOne(t, b, tenantA, c.entry)
		want(t, c.name, []any{got.Error, got.HighWatermark, got.LogStartOffset, len(got.Records)}, []any{c.err, c.hw, 0, c.number})
	}
	if _, err := b.Fetch(context.Background(), tenantA, FetchRequest{Entries: []FetchEntry{{Queue: "q", Partition: "0", Offset: -1}}}); !errors.Is(err, ErrBadRequest) {
		t.Errorf("negative offset: %v", err)
	}
	if _, err := b.Fetch(context.Background(), tenantA, FetchRequest{Entries: make([]FetchEntry, 1025)}); !errors.Is(err, ErrTooMany) {
		t.Errorf("1025 entries: %v", err)
	}
}

func TestConfigureAndDelete(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs})
	ctx := context.Background()
	q, err := b.Configure(ctx, tenantA, "q", func(o *Options) error { o.RetentionSeconds = 60; return nil })
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Configure(ctx, tenantA, "q", func(o *Options) error { o.DedupWindowSeconds = 0; return nil })
	if err != nil {
		t.Fatal(err)
	}
	want(t, "id", again.ID, q.ID)
	want(t, "merged", []any{again.Options.RetentionSeconds, again.Options.DedupWindowSeconds, again.Options.TTL}, []any{60, 0, 3600})
	refusal := errors.New("no")
	if _, err := b.Configure(ctx, tenantA, "new", func(*Options) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("refused change: %v", err)
	}
	want(t, "queues", len(b.Queues(tenantA)), 1)
	mustPush(t, b, tenantA, items("q", "0", "a", "b"))
	closeBroker(t, b)

	b = open(t, Config{FS: fs})
	same, _ := b.Queue(tenantA, "q")
	want(t, "after reopening", []any{same.ID, same.Options, same.CreatedAt}, []any{q.ID, again.Options, q.CreatedAt})
	existed, err := b.Delete(ctx, tenantA, "q")
	want(t, "delete", []any{existed, err}, []any{true, nil})
	existed, err = b.Delete(ctx, tenantA, "q")
	want(t, "delete twice", []any{existed, err}, []any{false, nil})
	want(t, "gone", fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"}).Error, UnknownTopicOrPartition)
	want(t, "first offset", mustPush(t, b, tenantA, items("q", "0", "c"))[0].Offset, 0)
	reborn, _ := b.Queue(tenantA, "q")
	if reborn.ID == q.ID {
		t.Error("a recreated queue kept its id")
	}
	want(t, "records", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"})), "0:c")
}

func TestLongPollWakes(t *testing.T) {
	b := open(t, Config{})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	type answer struct {
		r   []FetchResult
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := b.Fetch(context.Background(), tenantA, FetchRequest{
			Entries: []FetchEntry{
				{Queue: "q", Partition: "0", Offset: 1, MaxBytes: 100},
				{Queue: "q", Partition: "1", Offset: 0, MaxBytes: 100},
			},
			MaxWait: 20 * time.Second, MinBytes: 3,
		})
		done <- answer{r, err}
	}()
	mustPush(t, b, tenantA, items("q", "0", "b"))
	mustPush(t, b, tenantA, items("q", "1", "c"))
	select {
	case <-done:
		t.Fatal("answered with 2 bytes of 3")
	default:
	}
	mustPush(t, b, tenantA, items("q", "1", ""))
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	want(t, "records", payloads(got.r[0])+"|"+payloads(got.r[1]), "1:b|0:c 1:")
}
