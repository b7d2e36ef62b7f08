package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// TestModel runs random calls of two tenants, who use the same names, against
// the broker and against naive twins, and holds every answer against theirs. A
// tenant's twin never hears of the other, so whatever leaks is a divergence.
func TestModel(t *testing.T) {
	steps := 100
	if os.Getenv("QE_FULL") == "1" {
		steps = 1000 // rapid runs 100 times
	}
	total := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &modelRun{clock: newClock(), fs: vfs.NewCrashableMem(), versions: make(map[int64]bool)}
		m.open(rt)
		defer m.close()
		for i := range m.twins {
			m.twins[i] = newTwin()
		}
		for range steps {
			m.step(rt)
			total++
		}
		m.compareAll(rt)
	})
	t.Logf("%d operations", total)
}

// modelRun is one broker and the twin of each tenant.
type modelRun struct {
	clock    *testClock
	fs       *vfs.MemFS
	b        *Broker
	twins    [2]*twin
	versions map[int64]bool // given to anyone
	last     int64          // the highest of them
	serial   int
}

func (m *modelRun) open(rt *rapid.T) {
	b, err := Open(Config{
		FS: m.fs, Dir: "data", SegmentBytes: 16 << 10, Clock: m.clock.now,
		RetentionInterval: math.MaxInt64, // passes come when the model says so
	})
	if err != nil {
		rt.Fatal(err)
	}
	m.b = b
}

func (m *modelRun) close() { _ = m.b.Close() }

func (m *modelRun) now() int64 { return m.clock.now().UnixMicro() }

func (m *modelRun) same(rt *rapid.T, what, got, expected string) {
	if got != expected {
		rt.Fatalf("%s:\n got      %.2000s\n expected %.2000s", what, got, expected)
	}
}

// step does one thing.
func (m *modelRun) step(rt *rapid.T) {
	who := rapid.IntRange(0, 1).Draw(rt, "tenant")
	tenant := Tenant{byte(who + 1)}
	switch n := rapid.IntRange(0, 99).Draw(rt, "step"); {
	case n < 30:
		m.push(rt, tenant, m.twins[who])
	case n < 45:
		m.fetch(rt, tenant, m.twins[who])
	case n < 68:
		m.kv(rt, tenant, m.twins[who])
	case n < 80:
		m.transaction(rt, tenant, m.twins[who])
	case n < 86:
		m.configure(rt, tenant, m.twins[who])
	case n < 88:
		m.remove(rt, tenant, m.twins[who])
	case n < 94:
		m.clock.pass(time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "ms")) * time.Millisecond)
	case n < 97:
		m.tidy(rt)
	case n < 99:
		m.reopen(rt)
	default:
		m.compareAll(rt)
	}
}

func (m *modelRun) queue(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"q", "r"}).Draw(rt, "queue")
}

func (m *modelRun) partition(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"0", "1"}).Draw(rt, "partition")
}

func (m *modelRun) items(rt *rapid.T, tenant Tenant) []PushItem {
	var list []PushItem
	for range rapid.IntRange(1, 3).Draw(rt, "runs") {
		queue, partition := m.queue(rt), m.partition(rt)
		first := rapid.IntRange(0, 20).Draw(rt, "sequence")
		kind := rapid.IntRange(0, 3).Draw(rt, "keys")
		for i := range rapid.IntRange(1, 6).Draw(rt, "run") {
			m.serial++
			pad := strings.Repeat("x", rapid.IntRange(0, 300).Draw(rt, "pad"))
			item := PushItem{Queue: queue, Partition: partition, Payload: []byte(fmt.Sprintf("%d.%d%s", tenant[0], m.serial, pad))}
			switch kind {
			case 1:
				item.TransactionID = fmt.Appendf(nil, "text-%d", first+i)
			case 2, 3:
				item.TransactionID = fmt.Appendf(nil, "qe:%d:0:%s:%d", kind, partition, first+i)
			}
			list = append(list, item)
		}
	}
	return list
}

func (m *modelRun) push(rt *rapid.T, tenant Tenant, w *twin) {
	list := m.items(rt, tenant)
	r, err := m.b.Push(context.Background(), tenant, list, nil)
	if err != nil {
		rt.Fatal(err)
	}
	m.same(rt, "push", verdicts(r), w.push(list, m.now()))
}

func (m *modelRun) fetch(rt *rapid.T, tenant Tenant, w *twin) {
	queue, partition := m.queue(rt), m.partition(rt)
	offset := int64(rapid.IntRange(0, 60).Draw(rt, "offset"))
	if offset == 60 {
		offset = math.MaxInt64
	}
	m.compareRecords(rt, tenant, w, queue, partition, offset)
}

func (m *modelRun) compareRecords(rt *rapid.T, tenant Tenant, w *twin, queue, partition string, offset int64) {
	r, err := m.b.Fetch(context.Background(), tenant, FetchRequest{Entries: []FetchEntry{{Queue: queue, Partition: partition, Offset: offset, MaxBytes: maxEntryBytes}}})
	if err != nil {
		rt.Fatal(err)
	}
	m.same(rt, "fetch", shownFetch(r[0]), w.fetch(queue, partition, offset))
}

// ops draws the operations of a call that is not refused.
func (m *modelRun) ops(rt *rapid.T, w *twin, inTxn bool) []KVOp {
	names := []string{"a", "b", "b:1", "b:2", "b;", "c"}
	written := make(map[string]bool)
	kinds := []KVKind{KVPut, KVPut, KVPut, KVPutIfAbsent, KVDelete, KVIncr, KVGet, KVGetMany, KVGetPrefix}
	if inTxn {
		kinds = kinds[:8]
	}
	var ops []KVOp
	for range rapid.IntRange(1, 6).Draw(rt, "ops") {
		o := KVOp{
			Kind: rapid.SampledFrom(kinds).Draw(rt, "op"),
			NS:   rapid.SampledFrom([]string{"n", "n2"}).Draw(rt, "ns"),
			Key:  rapid.SampledFrom(names).Draw(rt, "key"),
		}
		at := o.NS + "\x00" + o.Key
		writes := o.Kind == KVPut || o.Kind == KVPutIfAbsent || o.Kind == KVDelete || o.Kind == KVIncr
		if writes && written[at] {
			continue
		}
		if writes {
			written[at] = true
			o.Required = rapid.IntRange(0, 3).Draw(rt, "required") == 0
		}
		m.fill(rt, w, &o, names)
		ops = append(ops, o)
	}
	return ops
}

func (m *modelRun) fill(rt *rapid.T, w *twin, o *KVOp, names []string) {
	if o.Kind == KVPut || o.Kind == KVDelete {
		switch rapid.IntRange(0, 4).Draw(rt, "expect") {
		case 0:
			o.Expect = Int(0)
		case 1:
			o.Expect = Int(max(w.keys[o.NS+"\x00"+o.Key].version, 1)) // of an expired row too
		case 2:
			o.Expect = Int(m.last)
		}
	}
	if o.Kind == KVPut || o.Kind == KVPutIfAbsent || o.Kind == KVIncr {
		if o.Forever = rapid.Bool().Draw(rt, "forever"); !o.Forever {
			o.TTLSeconds = Int(int64(rapid.IntRange(1, 60).Draw(rt, "ttl")))
		}
	}
	switch o.Kind {
	case KVPut, KVPutIfAbsent:
		m.serial++
		o.Value = []byte(rapid.SampledFrom([]string{"null", `"x"`, fmt.Sprint(m.serial), fmt.Sprintf(`{"n":%d}`, m.serial)}).Draw(rt, "value"))
	case KVIncr:
		o.By = Int(int64(rapid.IntRange(-3, 3).Draw(rt, "by")))
		if rapid.Bool().Draw(rt, "limited") {
			o.Max = Int(2)
		}
	case KVGetMany:
		o.Key, o.Keys = "", names[rapid.IntRange(0, 4).Draw(rt, "from"):]
	case KVGetPrefix:
		o.Key, o.Prefix = "", o.Key[:1]
		o.After = rapid.SampledFrom(append(names, "")).Draw(rt, "after")
		o.Limit = Int(int64(rapid.IntRange(1, 4).Draw(rt, "limit")))
	}
}

func (m *modelRun) kv(rt *rapid.T, tenant Tenant, w *twin) {
	ops := m.ops(rt, w, false)
	expected, after, lost := w.kv(ops, m.now())
	results, err := m.b.KV(context.Background(), tenant, ops)
	var precondition *KVPrecondition
	if errors.As(err, &precondition) {
		m.same(rt, "kv", shownLost(precondition), strings.Join(expected, "\n"))
		return
	}
	if err != nil || lost != nil {
		rt.Fatalf("kv: %v, expected %v", err, lost)
	}
	m.take(rt, w, ops, results, expected, after)
}

func shownLost(p *KVPrecondition) string {
	return fmt.Sprintf("%d lost %s %s %d", p.FailedIndex, p.Reason, p.Value, p.Version)
}

// take holds results against the twin's and tells it the versions.
func (m *modelRun) take(rt *rapid.T, w *twin, ops []KVOp, results []KVResult, expected []string, after map[string]twinRow) {
	w.keys = after
	if len(results) != len(ops) {
		rt.Fatalf("%d results for %d operations", len(results), len(ops))
	}
	highest := m.last
	for i := range ops {
		at := ops[i].NS + "\x00" + ops[i].Key
		if strings.HasPrefix(expected[i], "wrote") && results[i].Applied {
			version := results[i].Version
			if version <= m.last || m.versions[version] {
				rt.Fatalf("version %d was given before, or one above it", version)
			}
			m.versions[version] = true
			highest = max(highest, version)
			row := w.keys[at]
			row.version = version
			w.keys[at] = row
		}
	}
	m.last = highest
	for i := range ops {
		got := shownKV(&ops[i], &results[i])
		if ops[i].Kind == KVGet && strings.HasSuffix(expected[i], " -1") {
			got = fmt.Sprintf("%s -1", results[i].Value) // of a row that this call wrote
		}
		m.same(rt, fmt.Sprintf("operation %d, %s %s", i, ops[i].Kind, ops[i].Key), got, expected[i])
	}
}

func (m *modelRun) transaction(rt *rapid.T, tenant Tenant, w *twin) {
	list, ops := m.items(rt, tenant), m.ops(rt, w, true)
	if rapid.IntRange(0, 4).Draw(rt, "records") == 0 {
		list = nil
	}
	expected, after, lost := w.kv(ops, m.now())
	r, err := m.b.Transaction(context.Background(), tenant, list, ops)
	if err != nil {
		rt.Fatal(err)
	}
	if r.Success != (lost == nil) {
		rt.Fatalf("transaction: %+v, expected %v", r, lost)
	}
	if lost != nil {
		p := &KVPrecondition{FailedIndex: r.FailedIndex - len(list), Reason: r.KVReason, Version: r.Version, Value: r.Value}
		m.same(rt, "transaction", shownLost(p), strings.Join(expected, "\n"))
		return
	}
	m.same(rt, "pushes", verdicts(r.Pushes), w.push(list, m.now()))
	m.take(rt, w, ops, r.KV, expected, after)
}

func (m *modelRun) configure(rt *rapid.T, tenant Tenant, w *twin) {
	name := m.queue(rt)
	window := rapid.SampledFrom([]int64{0, 100}).Draw(rt, "window")
	retention := rapid.SampledFrom([]int64{0, 30, 200, math.MaxInt64}).Draw(rt, "retention")
	q := w.queues[name]
	if q != nil && window > 0 {
		window = q.window // one that grows finds what no pass has removed, or a cut brought back
	}
	_, err := m.b.Configure(context.Background(), tenant, name, func(o *Options) error {
		o.DedupWindowSeconds, o.RetentionEnabled, o.RetentionSeconds = window, retention > 0, retention
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	if q == nil {
		q = &twinQueue{parts: make(map[string]*twinPart)}
		w.queues[name] = q
	}
	q.window, q.retention = window, retention
	if retention == math.MaxInt64 {
		q.retention = 0
	}
}

func (m *modelRun) remove(rt *rapid.T, tenant Tenant, w *twin) {
	name := m.queue(rt)
	existed, err := m.b.Delete(context.Background(), tenant, name)
	if err != nil {
		rt.Fatal(err)
	}
	m.same(rt, "delete", fmt.Sprint(existed), fmt.Sprint(w.queues[name] != nil))
	delete(w.queues, name)
}

func (m *modelRun) tidy(rt *rapid.T) {
	if err := m.b.Tidy(context.Background()); err != nil {
		rt.Fatal(err)
	}
	for _, w := range m.twins {
		w.retain(m.now())
		for _, q := range w.queues {
			w.forgetKeys(q, m.now())
		}
	}
}

// forgetKeys is what a pass does to deduplication: a window that is turned on
// again finds nothing.
func (w *twin) forgetKeys(q *twinQueue, now int64) {
	for _, p := range q.parts {
		for i := range p.records {
			if now-p.records[i].at >= q.window*1e6 {
				p.records[i].keyed = false
			}
		}
	}
}

// reopen opens the folder again, after Close or as a power cut leaves it: what
// was answered is on disk either way.
func (m *modelRun) reopen(rt *rapid.T) {
	fs := m.fs
	if rapid.Bool().Draw(rt, "cut") {
		fs = m.fs.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: rapid.IntRange(0, 100).Draw(rt, "unsynced"),
			RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5)),
		})
	}
	m.close()
	m.fs = fs
	m.open(rt)
}

// compareAll holds all there is against the twins.
func (m *modelRun) compareAll(rt *rapid.T) {
	m.tidy(rt)
	for who, w := range m.twins {
		tenant := Tenant{byte(who + 1)}
		queues := m.b.Queues(tenant)
		m.same(rt, "queues", fmt.Sprint(len(queues)), fmt.Sprint(len(w.queues)))
		for _, q := range queues {
			m.compareQueue(rt, tenant, w, q)
		}
		usage := KVUsage{}
		for at, row := range w.keys {
			if _, there := w.live(at, m.now()); there {
				usage.Rows++
				usage.Bytes += int64(len(at) - 1 + len(row.value))
			}
		}
		m.same(rt, "usage", fmt.Sprint(m.b.KVStats(tenant)), fmt.Sprint(usage))
	}
}

func (m *modelRun) compareQueue(rt *rapid.T, tenant Tenant, w *twin, q Queue) {
	sizes, _ := m.b.PartitionSizes(tenant, q.Name)
	expected := make(map[string]int64)
	total := int64(0)
	for name, p := range w.queues[q.Name].parts {
		expected[name] = 0
		for _, rec := range p.records[p.start:] {
			expected[name] += int64(len(rec.payload))
		}
		total += expected[name]
		m.compareRecords(rt, tenant, w, q.Name, name, int64(p.start))
	}
	m.same(rt, "sizes", fmt.Sprint(sizes), fmt.Sprint(expected))
	m.same(rt, "retained", fmt.Sprint(q.RetainedBytes, q.Partitions), fmt.Sprint(total, len(expected)))
}
