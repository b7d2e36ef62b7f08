package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestTransaction(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs})
	ctx := context.Background()
	fence := mustKV(t, b, put("fence", `"open"`))[0].Version
	list := append(items("q", "0", "a", "b"), items("r", "7", "c")...)
	ops := []KVOp{put("fence", `"committed"`).expecting(fence).must(), put("offset", "1"), put("lost", "1").expecting(99), getMany("offset")}
	r, err := b.Transaction(ctx, tenantA, list, ops)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "success", []any{r.Success, verdicts(r.Pushes), len(r.KV)}, []any{true, "q0 q1 q0", 4})
	want(t, "keys", []any{r.KV[0].Applied, r.KV[1].Applied, r.KV[2].Applied, r.KV[2].Reason, keysOf(r.KV[3].Rows)}, []any{true, true, false, KVAbsent, "offset"})

	lost, err := b.Transaction(ctx, tenantA, append(list, items("new", "0", "x")...), ops)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "verdict", []any{lost.Success, lost.Reason, lost.FailedIndex, lost.KVReason, lost.Version, string(lost.Value), len(lost.Pushes), len(lost.KV)},
		[]any{false, ReasonPrecondition, 4, KVVersion, r.KV[0].Version, `"committed"`, 0, 0})
	check := func(b *Broker) {
		t.Helper()
		want(t, "records", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"})), "0:a 1:b")
		want(t, "queues", len(b.Queues(tenantA)), 2)
		want(t, "fence", string(mustKV(t, b, get("fence"))[0].Value), `"committed"`)
	}
	check(b)
	closeBroker(t, b)
	b = open(t, Config{FS: fs})
	check(b)

	r, err = b.Transaction(ctx, tenantA, nil, []KVOp{put("fence", "1")})
	want(t, "keys alone", []any{r.Success, len(r.Pushes), len(r.KV), err}, []any{true, 0, 1, nil})
	r, err = b.Transaction(ctx, tenantA, items("q", "0", "c"), nil)
	want(t, "records alone", []any{r.Success, verdicts(r.Pushes), len(r.KV), err}, []any{true, "q2", 0, nil})
	r, err = b.Transaction(ctx, tenantA, nil, nil)
	want(t, "nothing", []any{r.Success, err}, []any{true, nil})
	if r.TransactionID == [16]byte{} {
		t.Error("no transaction id")
	}
	r, err = b.Transaction(ctx, tenantA, keyed("0", "t", "t"), []KVOp{put("k", "1")})
	want(t, "duplicates", []any{r.Success, verdicts(r.Pushes), err}, []any{true, "q3 d3", nil})
	r, err = b.Transaction(ctx, tenantA, keyed("0", "t"), []KVOp{put("k", "2")})
	want(t, "all duplicate", []any{r.Success, verdicts(r.Pushes), string(mustKV(t, b, get("k"))[0].Value), err}, []any{true, "d3", "2", nil})
}

func TestTransactionLimits(t *testing.T) {
	ops := func(n int) []KVOp {
		list := make([]KVOp, n)
		for i := range list {
			list[i] = put(fmt.Sprintf("k%d", i), "1")
		}
		return list
	}
	ctx := context.Background()
	for _, c := range []struct {
		limit  int
		ops    []KVOp
		items  []PushItem
		reason string
	}{
		{0, ops(64), nil, ""},
		{0, ops(65), nil, ReasonTooManyOps},
		{1024, ops(1024), nil, ""},
		{1024, ops(1025), nil, ReasonTooManyOps},
		{0, []KVOp{getMany(make([]string, 257)...)}, nil, ReasonBadKey},
		{0, []KVOp{getMany(numbered(256)...)}, nil, ""},
		{0, []KVOp{getMany(numbered(257)...)}, nil, ReasonTooManyKeys},
		{0, []KVOp{getPrefix("p")}, nil, ReasonUnknownOp},
		{0, []KVOp{put("a", "1"), put("a", "2")}, items("q", "0", "x"), ReasonDuplicateKey},
	} {
		b := open(t, Config{MaxTxnKVOps: c.limit})
		r, err := b.Transaction(ctx, tenantA, c.items, c.ops)
		var refused *KVError
		errors.As(err, &refused)
		if c.reason == "" && (err != nil || !r.Success) || c.reason != "" && (refused == nil || refused.Reason != c.reason) {
			t.Errorf("limit %d, %d operations: %v, %v, expected %q", c.limit, len(c.ops), r.Success, err, c.reason)
		}
		want(t, "queues", len(b.Queues(tenantA)), 0)
		want(t, "announced", b.MaxTxnKVOps(), max(c.limit, 64))
	}
	b := open(t, Config{})
	if _, err := b.Transaction(ctx, tenantA, items("", "0", "x"), []KVOp{put("a", "1")}); !errors.Is(err, ErrBadRequest) {
		t.Errorf("an item without a queue: %v", err)
	}
	want(t, "nothing was written", mustKV(t, b, get("a"))[0].Found, false)
	for _, cfg := range []Config{{MaxTxnKVOps: 63}, {MaxTxnKVOps: 1025}, {MaxTxnKVOps: -1}, {RetentionInterval: -1}} {
		cfg.FS, cfg.Dir = vfs.NewMem(), "data"
		if b, err := Open(cfg); err == nil {
			closeBroker(t, b)
			t.Errorf("opened with %+v", cfg)
		}
	}
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("k", i)
	}
	return list
}

func TestGroups(t *testing.T) {
	clock := newClock()
	b := open(t, Config{Clock: clock.now})
	mustPush(t, b, tenantA, append(items("orders", "0", "a", "b", "c"), items("orders", "1", "d")...))
	mustPush(t, b, tenantA, items("a:b", "0", "a", "b"))
	mustPush(t, b, tenantB, items("theirs", "0", "a"))
	commit := func(key, value string) KVOp {
		return KVOp{Kind: KVPut, NS: "queen-kafka", Key: key, Value: []byte(value), Forever: true}
	}
	mustKV(t, b,
		commit("qk:group:g:orders:0", `{"offset":1,"metadata":"","ts":1}`),
		commit("qk:group:g:orders:1", `{"offset":1}`),
		commit("qk:group:g:orders:2", `{"offset":9}`),
		commit("qk:group:g%3A1:a%3Ab:0", `{"offset":0}`),
		commit("qk:group:g:gone:0", `{"offset":0}`),
		commit("qk:group:text:orders:0", `{"offset":"1"}`),
		commit("qk:group:null:orders:0", `{"offset":null}`),
		commit("qk:group:none:orders:0", `{}`),
		commit("qk:group:case:orders:0", `{"Offset":1}`),
		commit("qk:group:array:orders:0", `[1]`),
		commit("qk:group:short:orders", `{"offset":1}`),
		commit("qk:group:bad%ZZ:orders:0", `{"offset":1}`),
		commit("qk:groups:g", `{"pt":"consumer","offset":1}`),
		commit("qk:group:expired:orders:0", `{"offset":1}`).lasting(1),
		KVOp{Kind: KVPut, NS: "other", Key: "qk:group:other:orders:0", Value: []byte(`{"offset":1}`), Forever: true},
	)
	clock.micros.Add(1e6)
	list, err := b.Groups(tenantA)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "groups", list, []GroupRow{
		{Group: "g", Queue: "orders", Partitions: 3, TotalLag: 2, PartitionsWithLag: 1},
		{Group: "g:1", Queue: "a:b", Partitions: 1, TotalLag: 2, PartitionsWithLag: 1},
	})
	list, err = b.Groups(tenantB)
	want(t, "another tenant", []any{len(list), err}, []any{0, nil})
}

// TestCallsAreWhole: what calls and transactions write together is seen
// together, and no increment is lost.
func TestCallsAreWhole(t *testing.T) {
	b := open(t, Config{})
	ctx := context.Background()
	const writers, rounds = 8, 40
	mustKV(t, b, put("p:a", "0"), put("p:b", "0"))
	done := make(chan error, writers+2)
	stop := make(chan struct{})
	for w := range writers {
		go func() {
			done <- func() error {
				for range rounds {
					ops := []KVOp{incr("p:a", 1), incr("p:b", 1)}
					var err error
					if w%2 == 0 {
						_, err = b.KV(ctx, tenantA, ops)
					} else {
						_, err = b.Transaction(ctx, tenantA, items("q", "0", "x"), ops)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for _, read := range [][]KVOp{{getPrefix("p:")}, {getMany("p:a", "p:b"), put("other", "1")}} {
		go func() {
			done <- func() error {
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					r, err := b.KV(ctx, tenantA, read)
					if err != nil {
						return err
					}
					if rows := r[0].Rows; string(rows[0].Value) != string(rows[1].Value) {
						return fmt.Errorf("seen apart: %s and %s", rows[0].Value, rows[1].Value)
					}
				}
			}()
		}()
	}
	for i := range writers + 2 {
		if i == writers {
			close(stop)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	want(t, "sum", string(mustKV(t, b, get("p:a"))[0].Value), writers*rounds)
	want(t, "records", fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"}).HighWatermark, writers/2*rounds)
}
