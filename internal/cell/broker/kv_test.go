package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const ns = "test"

// testClock is a clock that a test moves.
type testClock struct{ micros atomic.Int64 }

func newClock() *testClock {
	c := new(testClock)
	c.micros.Store(time.Date(2026, 10, 2, 9, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *testClock) now() time.Time { return time.UnixMicro(c.micros.Load()) }

func (c *testClock) pass(d time.Duration) { c.micros.Add(d.Microseconds()) }

func put(key, value string) KVOp {
	return KVOp{Kind: KVPut, NS: ns, Key: key, Value: []byte(value), Forever: true}
}

func (o KVOp) expecting(n int64) KVOp { o.Expect = Int(n); return o }

func (o KVOp) must() KVOp { o.Required = true; return o }

func (o KVOp) lasting(seconds int64) KVOp {
	o.Forever, o.TTLSeconds = false, Int(seconds)
	return o
}

func del(key string) KVOp { return KVOp{Kind: KVDelete, NS: ns, Key: key} }

func get(key string) KVOp { return KVOp{Kind: KVGet, NS: ns, Key: key} }

func getMany(keys ...string) KVOp { return KVOp{Kind: KVGetMany, NS: ns, Keys: keys} }

func getPrefix(prefix string) KVOp { return KVOp{Kind: KVGetPrefix, NS: ns, Prefix: prefix} }

func incr(key string, by int64) KVOp {
	return KVOp{Kind: KVIncr, NS: ns, Key: key, By: Int(by), Forever: true}
}

func mustKV(t testing.TB, b *Broker, ops ...KVOp) []KVResult {
	t.Helper()
	r, err := b.KV(context.Background(), tenantA, ops)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestConditions is the table of cell-http §4.3.
func TestConditions(t *testing.T) {
	const other = 1 << 40
	for _, c := range []struct {
		name    string
		there   string // value of the row; empty: none
		expired bool
		op      KVOp
		match   bool // expect the row's version
		applied bool
		reason  KVReason
		value   string // of the result; "old" stands for the row's
		version string // of the result: new, old or 0
		left    string // value of the row afterwards
	}{
		{"put", "", false, put("k", "1"), false, true, "", "1", "new", "1"},
		{"put over a row", "7", false, put("k", "1"), false, true, "", "1", "new", "1"},
		{"put, expect 0, absent", "", false, put("k", "1").expecting(0), false, true, "", "1", "new", "1"},
		{"put, expect 0, expired", "7", true, put("k", "1").expecting(0), false, true, "", "1", "new", "1"},
		{"put, expect 0, present", "7", false, put("k", "1").expecting(0), false, false, KVExists, "7", "old", "7"},
		{"put, expect its version", "7", false, put("k", "1"), true, true, "", "1", "new", "1"},
		{"put, expect another version", "7", false, put("k", "1").expecting(other), false, false, KVVersion, "7", "old", "7"},
		{"put, expect N, absent", "", false, put("k", "1").expecting(other), false, false, KVAbsent, "", "0", ""},
		{"put, expect N, expired", "7", true, put("k", "1"), true, false, KVAbsent, "", "0", ""},
		{"putIfAbsent, absent", "", false, KVOp{Kind: KVPutIfAbsent, NS: ns, Key: "k", Value: []byte("1"), Forever: true}, false, true, "", "1", "new", "1"},
		{"putIfAbsent, present", "7", false, KVOp{Kind: KVPutIfAbsent, NS: ns, Key: "k", Value: []byte("1"), Forever: true}, false, false, KVExists, "7", "old", "7"},
		{"delete, present", "7", false, del("k"), false, true, "", "7", "old", ""},
		{"delete, absent", "", false, del("k"), false, false, KVAbsent, "", "0", ""},
		{"delete, expired", "7", true, del("k"), false, false, KVAbsent, "", "0", ""},
		{"delete, expect 0, absent", "", false, del("k").expecting(0), false, true, "", "", "0", ""},
		{"delete, expect 0, expired", "7", true, del("k").expecting(0), false, true, "", "", "0", ""},
		{"delete, expect 0, present", "7", false, del("k").expecting(0), false, false, KVExists, "7", "old", "7"},
		{"delete, expect its version", "7", false, del("k"), true, true, "", "7", "old", ""},
		{"delete, expect another version", "7", false, del("k").expecting(other), false, false, KVVersion, "7", "old", "7"},
		{"delete, expect N, absent", "", false, del("k").expecting(other), false, false, KVAbsent, "", "0", ""},
		{"check, expect its version", "7", false, KVOp{Kind: KVCheck, NS: ns, Key: "k"}, true, true, "", "7", "old", "7"},
		{"check, expect another version", "7", false, KVOp{Kind: KVCheck, NS: ns, Key: "k", Expect: Int(other)}, false, false, KVVersion, "7", "old", "7"},
		{"check, expect 0, absent", "", false, KVOp{Kind: KVCheck, NS: ns, Key: "k", Expect: Int(0)}, false, true, "", "", "0", ""},
		{"incr, absent", "", false, incr("k", 5), false, true, "", "5", "new", "5"},
		{"incr", "7", false, incr("k", -9), false, true, "", "-2", "new", "-2"},
		{"incr, expired", "7", true, incr("k", 5), false, true, "", "5", "new", "5"},
		{"incr beyond its limit", "7", false, KVOp{Kind: KVIncr, NS: ns, Key: "k", Max: Int(7), Forever: true}, false, false, KVLimit, "7", "old", "7"},
		{"incr below its limit", "7", false, KVOp{Kind: KVIncr, NS: ns, Key: "k", By: Int(-1), Min: Int(7), Forever: true}, false, false, KVLimit, "7", "old", "7"},
		{"incr beyond an int64", "7", false, incr("k", math.MaxInt64), false, false, KVLimit, "7", "old", "7"},
		{"incr below an int64", "-7", false, incr("k", math.MinInt64), false, false, KVLimit, "-7", "old", "-7"},
		{"incr of a text", `"7"`, false, incr("k", 1), false, false, KVType, `"7"`, "old", `"7"`},
		{"incr of a fraction", "7.5", false, incr("k", 1), false, false, KVType, "7.5", "old", "7.5"},
	} {
		for _, required := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, required %v", c.name, required), func(t *testing.T) {
				clock := newClock()
				b := open(t, Config{Clock: clock.now})
				var old int64
				if c.there != "" {
					seed := put("k", c.there)
					if c.expired {
						seed = seed.lasting(10)
					}
					old = mustKV(t, b, seed)[0].Version
				}
				if c.expired {
					clock.pass(10 * time.Second)
				}
				op := c.op
				if c.match {
					op.Expect = Int(old)
				}
				op.Required = required
				r, err := b.KV(context.Background(), tenantA, []KVOp{op, put("beside", "1")})
				version := map[string]int64{"old": old, "0": 0}
				if required && !c.applied {
					var lost *KVPrecondition
					if !errors.As(err, &lost) {
						t.Fatalf("%v, %v", r, err)
					}
					want(t, "verdict", []any{lost.FailedIndex, lost.Reason, string(lost.Value), lost.Version},
						[]any{0, c.reason, c.value, version[c.version]})
					want(t, "beside", mustKV(t, b, get("beside"))[0].Found, false)
				} else {
					if err != nil {
						t.Fatal(err)
					}
					want(t, "result", []any{r[0].Applied, r[0].Reason, r[0].Key, string(r[0].Value)},
						[]any{c.applied, c.reason, "k", c.value})
					if c.version == "new" {
						want(t, "a new version", r[0].Version > old, true)
					} else {
						want(t, "version", r[0].Version, version[c.version])
					}
					want(t, "beside", mustKV(t, b, get("beside"))[0].Found, true)
				}
				left := mustKV(t, b, get("k"))[0]
				want(t, "what is left", []any{left.Found, string(left.Value)}, []any{c.left != "", c.left})
			})
		}
	}
}

// TestResultShapes is the table of cell-http §4.4.
func TestResultShapes(t *testing.T) {
	clock := newClock()
	b := open(t, Config{Clock: clock.now})
	start := clock.now().UTC()
	w := mustKV(t, b, put("b", ` { "x" : [1, "a b"] } `), put("a", "null").lasting(60), put("p:2", "2"), put("p:1", "1"), put("p;", "3"))
	want(t, "put", []any{w[0].Kind, w[0].Key, string(w[0].Value), w[0].Applied, w[0].Version > 0}, []any{KVPut, "b", `{"x":[1,"a b"]}`, true, true})
	g := mustKV(t, b, get("b"), get("a"), get("none"))
	want(t, "get", []any{g[0].Found, string(g[0].Value), g[0].Version, g[0].ExpiresAt.IsZero(), g[0].UpdatedAt}, []any{true, `{"x":[1,"a b"]}`, w[0].Version, true, start})
	want(t, "get of a null", []any{g[1].Found, string(g[1].Value), g[1].ExpiresAt}, []any{true, "null", start.Add(time.Minute)})
	want(t, "get of nothing", []any{g[2].Found, g[2].Value == nil, g[2].Version}, []any{false, true, 0})
	m := mustKV(t, b, getMany("p:2", "zz", "b", "none", "b"))[0]
	want(t, "getMany", []any{keysOf(m.Rows), m.Missing, m.Truncated}, []any{"b p:2", []string{"none", "zz"}, false})
	p := mustKV(t, b, getPrefix("p:"))[0]
	want(t, "getPrefix", []any{keysOf(p.Rows), p.Truncated, p.NextAfter}, []any{"p:1 p:2", false, ""})
	page := getPrefix("p")
	page.Limit = Int(2)
	p = mustKV(t, b, page)[0]
	want(t, "first page", []any{keysOf(p.Rows), p.Truncated, p.NextAfter}, []any{"p:1 p:2", true, "p:2"})
	page.After, page.KeysOnly = p.NextAfter, true
	p = mustKV(t, b, page)[0]
	want(t, "last page", []any{keysOf(p.Rows), p.Truncated, p.NextAfter, p.Rows[0].Value == nil}, []any{"p;", false, "", true})
	page.Limit, page.After = Int(-5), "o"
	want(t, "a limit below 1, from before the prefix", keysOf(mustKV(t, b, page)[0].Rows), "p:1")
	none := mustKV(t, b, getPrefix("q"), getMany())
	want(t, "nothing", []any{len(none[0].Rows), none[0].Truncated, len(none[1].Rows), len(none[1].Missing)}, []any{0, false, 0, 0})
	r, err := b.KV(context.Background(), tenantB, []KVOp{get("b"), getPrefix("p"), getMany("a")})
	want(t, "another tenant", []any{r[0].Found, len(r[1].Rows), len(r[2].Rows), err}, []any{false, 0, 0, nil})
	other := getPrefix("p")
	other.NS = "tes"
	want(t, "another namespace", len(mustKV(t, b, other)[0].Rows), 0)
}

func keysOf(rows []KVRow) string {
	var keys []string
	for i := range rows {
		keys = append(keys, rows[i].Key)
	}
	return strings.Join(keys, " ")
}

// TestRefusals is the table of cell-http §4.7. Nothing of a refused call is
// written.
func TestRefusals(t *testing.T) {
	b := open(t, Config{})
	many := func(n int, op KVOp) []KVOp {
		list := make([]KVOp, n)
		for i := range list {
			list[i] = op
			list[i].Key = fmt.Sprintf("key-%d", i)
		}
		return list
	}
	with := func(change func(*KVOp)) []KVOp {
		op := put("k", "1")
		change(&op)
		return []KVOp{op}
	}
	prefix := func(limit int64) KVOp { op := getPrefix("p"); op.Limit = Int(limit); return op }
	long := strings.Repeat("x", MaxKVKeyBytes)
	for _, c := range []struct {
		name   string
		ops    []KVOp
		reason string // empty: accepted
	}{
		{"256 operations", many(256, get("")), ""},
		{"257 operations", many(257, get("")), ReasonTooManyOps},
		{"1,024 keys", []KVOp{prefix(1000), getMany(make24("k")...)}, ""},
		{"1,025 keys", []KVOp{prefix(1000), getMany(make24("k")...), get("one")}, ReasonTooManyKeys},
		{"a clamped limit counts clamped", []KVOp{prefix(math.MaxInt64), get("one")}, ""},
		{"unknown operation", with(func(o *KVOp) { o.Kind = "poke" }), ReasonUnknownOp},
		{"no namespace", with(func(o *KVOp) { o.NS = "" }), ReasonBadNamespace},
		{"namespace of 64", with(func(o *KVOp) { o.NS = strings.Repeat("a", 64) }), ""},
		{"namespace of 65", with(func(o *KVOp) { o.NS = strings.Repeat("a", 65) }), ReasonBadNamespace},
		{"namespace with a capital", with(func(o *KVOp) { o.NS = "aB" }), ReasonBadNamespace},
		{"namespace beginning with a dot", with(func(o *KVOp) { o.NS = ".a" }), ReasonBadNamespace},
		{"namespace with all that is legal", with(func(o *KVOp) { o.NS = "0.a_b-c" }), ""},
		{"no key", with(func(o *KVOp) { o.Key = "" }), ReasonBadKey},
		{"key with a zero byte", with(func(o *KVOp) { o.Key = "a\x00" }), ReasonBadKey},
		{"key that is no UTF-8", with(func(o *KVOp) { o.Key = "\xff" }), ReasonBadKey},
		{"key of 512 bytes", with(func(o *KVOp) { o.Key = long }), ""},
		{"key of 513 bytes", with(func(o *KVOp) { o.Key = long + "x" }), ReasonKeyTooLarge},
		{"getMany with a bad key", []KVOp{getMany("a", "")}, ReasonBadKey},
		{"getMany with a long key", []KVOp{getMany(long + "x")}, ReasonKeyTooLarge},
		{"no prefix", []KVOp{getPrefix("")}, ReasonPrefixRequired},
		{"no expiry", with(func(o *KVOp) { o.Forever = false }), ReasonExpiry},
		{"two expiries", with(func(o *KVOp) { o.TTLSeconds = Int(1) }), ReasonExpiry},
		{"ttl of 0", with(func(o *KVOp) { *o = o.lasting(0) }), ReasonBadTTL},
		{"negative ttl", with(func(o *KVOp) { *o = o.lasting(-1) }), ReasonBadTTL},
		{"the longest ttl", with(func(o *KVOp) { *o = o.lasting(math.MaxInt64) }), ""},
		{"incr without expiry", []KVOp{{Kind: KVIncr, NS: ns, Key: "k"}}, ReasonExpiry},
		{"incr with an expect", []KVOp{{Kind: KVIncr, NS: ns, Key: "k", Forever: true, Expect: Int(1)}}, ReasonBadExpect},
		{"delete with an expiry", []KVOp{{Kind: KVDelete, NS: ns, Key: "k", Forever: true}}, ReasonBadTTL},
		{"check without an expect", []KVOp{{Kind: KVCheck, NS: ns, Key: "k"}}, ReasonBadExpect},
		{"negative expect", with(func(o *KVOp) { o.Expect = Int(-1) }), ReasonBadExpect},
		{"putIfAbsent that expects a version", with(func(o *KVOp) { o.Kind, o.Expect = KVPutIfAbsent, Int(4) }), ReasonBadExpect},
		{"no value", with(func(o *KVOp) { o.Value = nil }), ReasonBadBody},
		{"a value that is no JSON", with(func(o *KVOp) { o.Value = []byte("{") }), ReasonBadBody},
		{"value of 65,536 bytes", with(func(o *KVOp) { o.Value = text(65536) }), ""},
		{"value of 65,536 bytes and white space", with(func(o *KVOp) { o.Value = append([]byte("   "), text(65536)...) }), ""},
		{"value of 65,537 bytes", with(func(o *KVOp) { o.Value = text(65537) }), ReasonValueTooLarge},
		{"two writes of a key", []KVOp{put("a", "1"), put("k", "1"), del("a")}, ReasonDuplicateKey},
		{"a read and a write of a key", []KVOp{get("a"), put("a", "1"), get("a")}, ""},
		{"writes of a key in two namespaces", []KVOp{put("a", "1"), {Kind: KVDelete, NS: "other", Key: "a"}}, ""},
	} {
		canary := put("canary "+c.name, "1")
		ops := append([]KVOp{}, c.ops...)
		if len(ops) < 4 && c.name != "1,024 keys" {
			ops = append(ops, canary)
		}
		_, err := b.KV(context.Background(), tenantA, ops)
		var refused *KVError
		errors.As(err, &refused)
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.reason != "" && (refused == nil || refused.Reason != c.reason || refused.Detail == ""):
			t.Errorf("%s: %v, expected %s", c.name, err, c.reason)
		case c.reason != "":
			kind := KVBadRequest
			if strings.HasSuffix(c.reason, "too_large") {
				kind = KVPayloadTooLarge
			}
			want(t, c.name, refused.Kind, kind)
			want(t, c.name+": written", mustKV(t, b, get(canary.Key))[0].Found, false)
		}
	}
}

func make24(prefix string) []string {
	list := make([]string, 24)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}

// text is a JSON text of n bytes.
func text(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }

// TestOrder: single-key operations run by namespace and key, then the reads of
// many, which see what the call wrote.
func TestOrder(t *testing.T) {
	b := open(t, Config{})
	first := mustKV(t, b, put("n:1", "1"), put("n:3", "3"))
	r := mustKV(t, b, getPrefix("n:"), put("n:3", "33"), del("n:1"), put("n:2", "2"), getMany("n:1", "n:2"), get("n:3"), getPrefix("n:2"))
	want(t, "prefix", []any{keysOf(r[0].Rows), string(r[0].Rows[1].Value), r[0].Rows[1].Version}, []any{"n:2 n:3", "33", r[1].Version})
	want(t, "many", []any{keysOf(r[4].Rows), r[4].Missing}, []any{"n:2", []string{"n:1"}})
	want(t, "get behind a put", string(r[5].Value), "33")
	want(t, "get before a put", string(mustKV(t, b, get("n:3"), put("n:3", "333"))[0].Value), "33")
	want(t, "versions by key", []any{first[0].Version < first[1].Version, r[3].Version < r[1].Version}, []any{true, true})
	_, err := b.KV(context.Background(), tenantA, []KVOp{put("z", "1").expecting(5).must(), put("a", "1").expecting(6).must()})
	var lost *KVPrecondition
	if errors.As(err, &lost); lost == nil || lost.FailedIndex != 1 {
		t.Errorf("the first that is lost in the order they run in: %v", err)
	}
}

// TestReadBudget: what does not fit is in neither list.
func TestReadBudget(t *testing.T) {
	b := open(t, Config{})
	const rows = 70
	var keys []string
	for i := range rows {
		keys = append(keys, fmt.Sprintf("v%02d", i))
		mustKV(t, b, KVOp{Kind: KVPut, NS: ns, Key: keys[i], Value: text(MaxKVValueBytes), Forever: true})
	}
	m := mustKV(t, b, getMany(append(keys, "none")...))[0]
	want(t, "getMany", []any{len(m.Rows), m.Missing, m.Truncated}, []any{64, []string{"none"}, true})
	p := mustKV(t, b, getPrefix("v"))[0]
	want(t, "getPrefix", []any{len(p.Rows), p.Truncated, p.NextAfter}, []any{64, true, "v63"})
	rest := getPrefix("v")
	rest.After = p.NextAfter
	p = mustKV(t, b, rest)[0]
	want(t, "the rest", []any{len(p.Rows), p.Truncated}, []any{6, false})
	both := mustKV(t, b, getMany(keys...), rest)
	want(t, "one budget for the call", []any{len(both[1].Rows), both[1].Truncated, both[1].NextAfter}, []any{0, true, "v63"})
	only := getPrefix("v")
	only.KeysOnly = true
	want(t, "keys cost nothing", len(mustKV(t, b, only)[0].Rows), rows)
}

// TestExpiry: an expired row is absent at once; removing it is another matter.
func TestExpiry(t *testing.T) {
	fs, clock := vfs.NewMem(), newClock()
	b := open(t, Config{FS: fs, Clock: clock.now})
	mustKV(t, b, put("short", "1").lasting(1), put("long", "22").lasting(100), put("ever", "333"))
	mustKV(t, b, put("renewed", "1").lasting(1))
	mustKV(t, b, put("renewed", "1").lasting(50))
	all := KVUsage{Rows: 4, Bytes: int64(4*len(ns) + len("shortlongeverrenewed") + 7)}
	want(t, "usage", b.KVStats(tenantA), all)
	clock.pass(time.Second - time.Microsecond)
	want(t, "before", len(mustKV(t, b, getPrefix("s"))[0].Rows), 1)
	clock.pass(time.Microsecond)
	want(t, "expired", []any{
		mustKV(t, b, get("short"))[0].Found, len(mustKV(t, b, getPrefix("s"))[0].Rows), mustKV(t, b, getMany("short"))[0].Missing,
		mustKV(t, b, get("renewed"))[0].Found, b.KVStats(tenantA),
	}, []any{false, 0, []string{"short"}, true, all})
	tidyNow(t, b)
	left := KVUsage{Rows: 3, Bytes: all.Bytes - int64(len(ns)+len("short")+1)}
	want(t, "removed", b.KVStats(tenantA), left)
	clock.pass(-time.Minute)
	want(t, "a clock that goes back revives nothing", mustKV(t, b, put("x", "1").lasting(30), get("short"))[1].Found, false)
	closeBroker(t, b)
	clock.pass(time.Hour)
	b = open(t, Config{FS: fs, Clock: clock.now})
	tidyNow(t, b)
	want(t, "usage after reopening", b.KVStats(tenantA), KVUsage{Rows: 1, Bytes: int64(len(ns) + len("ever") + 3)})
	mustKV(t, b, del("ever"))
	want(t, "nothing left", b.KVStats(tenantA), KVUsage{})
	want(t, "nothing left in the index", indexRows(t, b, kvRows)+indexRows(t, b, expiryRows)+indexRows(t, b, usageRows), 0)
	clock.pass(time.Hour)
	mustKV(t, b, incr("n", 1).lasting(10))
	clock.pass(8 * time.Second)
	mustKV(t, b, incr("n", 1).lasting(10))
	clock.pass(2 * time.Second)
	want(t, "an incr keeps the expiry", string(mustKV(t, b, incr("n", 1).lasting(10))[0].Value), "1")
}

func tidyNow(t testing.TB, b *Broker) {
	t.Helper()
	if err := b.Tidy(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func indexRows(t testing.TB, b *Broker, kind byte) (n int) {
	t.Helper()
	if err := eachRow(b.store, kind, func(_, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVersionsAreNotReused opens over and over; nothing but a row of the index
// is left to tell what was given.
func TestVersionsAreNotReused(t *testing.T) {
	fs := vfs.NewMem()
	last := int64(0)
	for range 5 {
		b := open(t, Config{FS: fs})
		for range 3 {
			v := mustKV(t, b, put("k", "1"))[0].Version
			if v <= last {
				t.Fatalf("version %d after %d", v, last)
			}
			last = v
			mustKV(t, b, del("k"))
		}
		closeBroker(t, b)
	}
}

// TestLargestCall writes as much as one call may, twice over, and finds it
// again after a power cut.
func TestLargestCall(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := open(t, Config{FS: fs})
	ops := make([]KVOp, MaxKVOps)
	for i := range ops {
		ops[i] = put(fmt.Sprintf("k%03d", i), string(text(MaxKVValueBytes)))
	}
	mustKV(t, b, ops...)
	last := mustKV(t, b, ops...)[MaxKVOps-1].Version
	left := fs.CrashClone(vfs.CrashCloneCfg{})
	b = open(t, Config{FS: left})
	got := mustKV(t, b, get("k255"), get("k000"))
	want(t, "rows", []any{got[0].Version, len(got[1].Value), b.KVStats(tenantA).Rows}, []any{last, MaxKVValueBytes, MaxKVOps})
}

// TestPassesComeByThemselves leaves it to the clock.
func TestPassesComeByThemselves(t *testing.T) {
	clock := newClock()
	b := open(t, Config{Clock: clock.now, RetentionInterval: time.Millisecond})
	keepFor(t, b, 5, true)
	mustKV(t, b, put("k", "1").lasting(5))
	mustPush(t, b, tenantA, items("q", "0", "a"))
	clock.pass(6 * time.Second)
	awaitTrue(t, "all has gone", func() bool {
		q, _ := b.Queue(tenantA, "q")
		return q.RetainedBytes == 0 && b.KVStats(tenantA) == (KVUsage{})
	})
}
