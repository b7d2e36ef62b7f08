package broker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCrash cuts the power at random moments of a random load, opens what is
// left, holds it against the model, and goes on from there.
func TestCrash(t *testing.T) {
	cuts := 200
	if os.Getenv("QE_FULL") == "1" {
		cuts = 1000
	}
	const cutsPerFolder = 25
	for from := 0; from < cuts; from += cutsPerFolder {
		seed := uint64(from)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			fs, m := vfs.NewCrashableMem(), newModel()
			b := m.open(t, fs)
			for cut := range cutsPerFolder {
				fs = m.run(t, b, fs, rng)
				if rng.IntN(3) == 0 {
					fs = m.cutWhileOpening(t, fs, rng)
				}
				var bad []string
				if b, bad = m.verify(fs); len(bad) > 0 {
					t.Fatalf("after cut %d:\n%s", cut, strings.Join(bad, "\n"))
				}
			}
			closeBroker(t, b)
		})
	}
}

// TestCrashFindsMissingSync proves that the checker sees what it is for: with
// the log's sync taken out, acknowledged records are lost and verify says so.
func TestCrashFindsMissingSync(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		fs, m := vfs.NewCrashableMem(), newModel()
		b, bad := m.verify(m.run(t, m.open(t, unsynced{fs}), fs, rng))
		if b != nil {
			closeBroker(t, b)
		}
		if len(bad) > 0 {
			t.Logf("found: %s", bad[0])
			return
		}
	}
	t.Fatal("20 cuts without a sync lost nothing: the checker is blind")
}

const (
	crashWorkers = 4
	sharedQueue  = "shared"
)

// event is one call of a worker on its own queue. Its effect on the queue is
// known in advance, for nobody else touches it.
type event struct {
	after queueState
	acked bool
}

// queueState is all there is to see of a worker's queue and of its keys.
type queueState struct {
	exists bool
	ttl    int64
	parts  map[string][]string // payloads from offset 0 on
	keys   map[string]string
}

func (s queueState) clone() queueState {
	c := queueState{exists: s.exists, ttl: s.ttl, parts: make(map[string][]string), keys: make(map[string]string)}
	maps.Copy(c.keys, s.keys)
	for name, list := range s.parts {
		c.parts[name] = append([]string(nil), list...)
	}
	return c
}

func (s queueState) equal(o queueState) bool {
	return s.exists == o.exists && s.ttl == o.ttl && maps.EqualFunc(s.parts, o.parts, slices.Equal[[]string]) &&
		maps.Equal(s.keys, o.keys)
}

func (s queueState) String() string {
	counts := make(map[string]int)
	for name, list := range s.parts {
		counts[name] = len(list)
	}
	return fmt.Sprintf("exists %v, ttl %d, records %v, keys %v", s.exists, s.ttl, counts, s.keys)
}

// model is what the broker must hold. A worker's queue is in the state after
// one of its events, no earlier than the last acknowledged one.
type model struct {
	mu     sync.Mutex // guards the fields below
	serial int
	queues [crashWorkers][]event
	shared sharedModel

	clock    *testClock
	versions versionModel
	trimmed  trimModel
}

// sharedModel is what is known of the queue that all workers push to.
type sharedModel struct {
	known  map[int64]string    // acknowledged, by offset
	pushes map[string][]string // every push that was begun, by its first payload
}

func newModel() *model {
	m := &model{shared: sharedModel{known: make(map[int64]string), pushes: make(map[string][]string)}, clock: newClock()}
	for w := range m.queues {
		m.queues[w] = []event{{acked: true}}
	}
	return m
}

func (m *model) open(t *testing.T, fs vfs.FS) *Broker {
	t.Helper()
	b, err := Open(m.config(fs))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (m *model) config(fs vfs.FS) Config {
	return Config{FS: fs, Dir: "data", SegmentBytes: 16 << 10, Clock: m.clock.now, RetentionInterval: math.MaxInt64}
}

// run works on the broker until a random moment, and returns what a power cut
// leaves then. It closes the broker.
func (m *model) run(t *testing.T, b *Broker, fs *vfs.MemFS, rng *rand.Rand) *vfs.MemFS {
	ctx, cancel := context.WithCancel(context.Background())
	ticks, cut := rng.IntN(60), make(chan struct{})
	var mu sync.Mutex
	tick := func() {
		mu.Lock()
		defer mu.Unlock()
		if ticks--; ticks == 0 {
			close(cut)
		}
	}
	if ticks == 0 {
		close(cut) // right after opening
	}
	var workers sync.WaitGroup
	for w := range crashWorkers {
		seed := rng.Uint64()
		workers.Go(func() { m.work(ctx, b, w, rand.New(rand.NewPCG(seed, 3)), tick) })
	}
	<-cut
	least := m.acknowledged()
	percent := []int{0, 1 + rng.IntN(99), 100}[rng.IntN(3)]
	left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	m.mu.Lock()
	m.forgetAfter(least)
	m.mu.Unlock()
	cancel()
	workers.Wait()
	closeBroker(t, b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared.known = least.known
	m.versions = versionModel{floor: max(m.versions.floor, least.version)}
	m.trimmed = least.trimmed
	return left
}

// cutWhileOpening opens what a cut has left, and cuts again while the log is
// applied: when it has been read and written once more and not been synced.
func (m *model) cutWhileOpening(t *testing.T, fs *vfs.MemFS, rng *rand.Rand) *vfs.MemFS {
	c := &cutAtSync{MemFS: fs, cfg: vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}}
	closeBroker(t, m.open(t, c))
	if c.left == nil {
		return fs // there was nothing to apply
	}
	return c.left
}

// cutAtSync cuts when a log file is about to be synced for the first time.
type cutAtSync struct {
	*vfs.MemFS
	cfg  vfs.CrashCloneCfg
	once sync.Once
	left *vfs.MemFS
}

func (c *cutAtSync) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.MemFS.OpenReadWrite(name, category, o...)
	return cutFile{f, c}, err
}

type cutFile struct {
	vfs.File
	fs *cutAtSync
}

func (f cutFile) SyncData() error {
	f.fs.once.Do(func() { f.fs.left = f.fs.CrashClone(f.fs.cfg) })
	return f.File.SyncData()
}

// mark is a moment: how many events of each queue were acknowledged, and what
// of the shared queue.
type mark struct {
	events  [crashWorkers]int
	known   map[int64]string
	version int64
	trimmed trimModel
}

func (m *model) acknowledged() mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	var at mark
	for w, events := range m.queues {
		for n := range events {
			if events[n].acked {
				at.events[w] = n
			}
		}
	}
	at.version, at.trimmed = m.versions.highest, m.trimmed
	at.known = make(map[int64]string)
	for offset, p := range m.shared.known {
		at.known[offset] = p
	}
	return at
}

// forgetAfter ends the histories here (what begins later is after the cut) and
// takes back acknowledgements that came after the mark.
func (m *model) forgetAfter(at mark) {
	for w := range m.queues {
		m.queues[w] = append([]event(nil), m.queues[w][at.events[w]:]...)
		for n := range m.queues[w] {
			m.queues[w][n].acked = n == 0
		}
	}
	m.serial++ // workers see that their time is over
}

// work calls the broker with random commands until ctx ends or the cut came.
func (m *model) work(ctx context.Context, b *Broker, w int, rng *rand.Rand, tick func()) {
	m.mu.Lock()
	serial, state := m.serial, m.queues[w][len(m.queues[w])-1].after
	m.mu.Unlock()
	name := fmt.Sprintf("own-%d", w)
	for n := 0; ctx.Err() == nil; n++ {
		tick()
		tag := fmt.Sprintf("%d.%d.%d.", w, serial, n)
		switch rng.IntN(12) {
		case 0, 1, 2:
			m.pushShared(ctx, b, tag, w, n, rng)
			continue
		case 3:
			m.trim(ctx, b, rng, serial)
			continue
		}
		next := state.clone()
		var call func() error
		switch k := rng.IntN(20); {
		case k == 0:
			next = queueState{keys: next.keys}
			call = func() error { _, err := b.Delete(ctx, tenantA, name); return err }
		case k < 4:
			next.exists, next.ttl = true, rng.Int64N(1000)
			call = func() error {
				_, err := b.Configure(ctx, tenantA, name, func(o *Options) error { o.TTL = next.ttl; return nil })
				return err
			}
		case k < 8:
			ops := next.randomWrites(name, tag, rng)
			call = func() error { return m.writeKeys(ctx, b, ops, serial) }
		case k < 12:
			list, offsets := next.randomPush(name, tag, rng)
			ops := next.randomWrites(name, tag, rng)
			call = func() error { return m.transact(ctx, b, list, offsets, ops, serial) }
		default:
			list, offsets := next.randomPush(name, tag, rng)
			call = func() error { return pushTo(ctx, b, list, offsets) }
		}
		if !m.begin(w, serial, next) {
			return
		}
		if err := call(); err != nil {
			if ctx.Err() == nil {
				panic(err)
			}
			return
		}
		m.acknowledge(w, serial)
		state = next
	}
}

func randomItems(queue, tag string, rng *rand.Rand, partitions int) []PushItem {
	list := make([]PushItem, 1+rng.IntN(12))
	for i := range list {
		list[i] = PushItem{
			Queue: queue, Partition: fmt.Sprint(rng.IntN(partitions)),
			Payload: []byte(fmt.Sprintf("%s%d:%s", tag, i, strings.Repeat("x", rng.IntN(600)))),
		}
	}
	return list
}

func pushTo(ctx context.Context, b *Broker, list []PushItem, offsets []int64) error {
	results, err := b.Push(ctx, tenantA, list, nil)
	for i := range results {
		if results[i].Offset != offsets[i] {
			return fmt.Errorf("item %d of %d got offset %d, expected %d", i, len(list), results[i].Offset, offsets[i])
		}
	}
	return err
}

func (m *model) begin(w, serial int, after queueState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serial != serial {
		return false
	}
	m.queues[w] = append(m.queues[w], event{after: after})
	return true
}

func (m *model) acknowledge(w, serial int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serial == serial {
		m.queues[w][len(m.queues[w])-1].acked = true
	}
}

func (m *model) pushShared(ctx context.Context, b *Broker, tag string, w, n int, rng *rand.Rand) {
	list := randomItems(sharedQueue, tag, rng, 1)
	var texts []string
	for i := range list {
		list[i].TransactionID = []byte(sharedKey(tag, w, n, i))
		texts = append(texts, string(list[i].Payload))
	}
	m.mu.Lock()
	m.shared.pushes[texts[0]] = texts
	m.mu.Unlock()
	results, err := b.Push(ctx, tenantA, list, nil)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range results {
		m.shared.known[results[i].Offset] = texts[i]
	}
}

// verify opens the folder and lists where it is not what it must be. The model
// goes on from what it found.
func (m *model) verify(fs vfs.FS) (b *Broker, bad []string) {
	b, err := Open(m.config(fs))
	if err != nil {
		return nil, []string{fmt.Sprintf("open: %v", err)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.queues {
		found, err := stateOf(b, fmt.Sprintf("own-%d", w))
		if err != nil {
			bad = append(bad, fmt.Sprintf("queue %d: %v", w, err))
			continue
		}
		at := -1
		for n := range m.queues[w] {
			if m.queues[w][n].after.equal(found) {
				at = n
			}
		}
		if at < 0 {
			first, last := m.queues[w][0].after, m.queues[w][len(m.queues[w])-1].after
			bad = append(bad, fmt.Sprintf("queue %d: found %v, which is not between %v and %v", w, found, first, last))
			continue
		}
		m.queues[w] = []event{{after: m.queues[w][at].after, acked: true}}
	}
	bad = append(bad, m.shared.verify(b)...)
	bad = append(bad, m.trimmed.verify(b)...)
	return b, append(bad, m.versions.verify(b)...)
}

func (s *sharedModel) verify(b *Broker) (bad []string) {
	found, err := stateOf(b, sharedQueue)
	if err != nil {
		return []string{fmt.Sprintf("shared queue: %v", err)}
	}
	list := found.parts["0"]
	for offset, p := range s.known {
		if offset >= int64(len(list)) || list[offset] != p {
			bad = append(bad, fmt.Sprintf("shared queue: offset %d was acknowledged and is lost", offset))
		}
	}
	seen := make(map[string]bool)
	for at := 0; at < len(list); {
		push := s.pushes[list[at]]
		if len(push) == 0 || seen[list[at]] || at+len(push) > len(list) || strings.Join(push, " ") != strings.Join(list[at:at+len(push)], " ") {
			return append(bad, fmt.Sprintf("shared queue: no whole push at offset %d", at))
		}
		seen[list[at]] = true
		if at+len(push) > len(list)-resent {
			bad = append(bad, s.resend(b, push, int64(at))...)
		}
		at += len(push)
	}
	for offset, p := range list {
		s.known[int64(offset)] = p
	}
	return bad
}

// stateOf reads all of a queue.
func stateOf(b *Broker, name string) (queueState, error) {
	s := queueState{parts: make(map[string][]string)}
	var err error
	if s.keys, err = keysUnder(b, name); err != nil {
		return s, err
	}
	q, exists := b.Queue(tenantA, name)
	if !exists {
		return s, nil
	}
	s.exists, s.ttl = true, q.Options.TTL
	sizes, _ := b.PartitionSizes(tenantA, name)
	for part, size := range sizes {
		var bytes int64
		for {
			next := int64(len(s.parts[part]))
			r, err := b.Fetch(context.Background(), tenantA, FetchRequest{Entries: []FetchEntry{{Queue: name, Partition: part, Offset: next, MaxBytes: 64 << 10}}})
			if err != nil {
				return s, err
			}
			for i, rec := range r[0].Records {
				if rec.Offset != next+int64(i) {
					return s, fmt.Errorf("partition %s: offset %d where %d belongs", part, rec.Offset, next+int64(i))
				}
				s.parts[part] = append(s.parts[part], string(rec.Payload))
				bytes += int64(len(rec.Payload))
			}
			if r[0].Error != NoError || r[0].HighWatermark == int64(len(s.parts[part])) {
				break
			}
		}
		if bytes != size {
			return s, fmt.Errorf("partition %s: %d bytes retained, %d read", part, size, bytes)
		}
	}
	return s, nil
}
