package broker

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// versionModel watches over versions: none is given twice, whatever was lost
// in between.
type versionModel struct {
	floor   int64          // of the broker before, or found by it
	highest int64          // acknowledged
	given   map[int64]bool // by this broker
}

// give books a version that the broker answered with.
func (m *model) give(version int64, serial int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &m.versions
	if m.serial != serial {
		return nil // the answer came after the cut
	}
	if version <= v.floor || v.given[version] {
		return fmt.Errorf("version %d was given before (those up to %d were)", version, v.floor)
	}
	if v.given == nil {
		v.given = make(map[int64]bool)
	}
	v.given[version] = true
	v.highest = max(v.highest, version)
	return nil
}

// verify raises the floor to what is on disk though nobody was told.
func (v *versionModel) verify(b *Broker) (bad []string) {
	r, err := b.KV(context.Background(), tenantA, []KVOp{getPrefix("own")})
	if err != nil {
		return []string{err.Error()}
	}
	for _, row := range r[0].Rows {
		v.floor = max(v.floor, row.Version)
	}
	v.highest = v.floor
	return nil
}

// keysUnder reads a worker's keys.
func keysUnder(b *Broker, name string) (map[string]string, error) {
	r, err := b.KV(context.Background(), tenantA, []KVOp{getPrefix(name + ":")})
	if err != nil {
		return nil, err
	}
	keys := make(map[string]string)
	for _, row := range r[0].Rows {
		keys[row.Key] = string(row.Value)
	}
	return keys, nil
}

// randomPush makes a push and books it.
func (s *queueState) randomPush(name, tag string, rng *rand.Rand) ([]PushItem, []int64) {
	if !s.exists {
		s.exists, s.ttl = true, DefaultOptions().TTL
	}
	list := randomItems(name, tag, rng, 3)
	offsets := make([]int64, len(list))
	for i, item := range list {
		offsets[i] = int64(len(s.parts[item.Partition]))
		s.parts[item.Partition] = append(s.parts[item.Partition], string(item.Payload))
	}
	return list, offsets
}

// randomWrites makes puts and deletes of some keys and books them.
func (s *queueState) randomWrites(name, tag string, rng *rand.Rand) []KVOp {
	var ops []KVOp
	for _, i := range rng.Perm(6)[:1+rng.IntN(6)] {
		key := fmt.Sprintf("%s:%d", name, i)
		if rng.IntN(4) == 0 {
			ops = append(ops, del(key))
			delete(s.keys, key)
			continue
		}
		value := fmt.Sprintf(`"%s%s"`, tag, strings.Repeat("x", rng.IntN(200)))
		ops = append(ops, put(key, value))
		s.keys[key] = value
	}
	return ops
}

func (m *model) writeKeys(ctx context.Context, b *Broker, ops []KVOp, serial int) error {
	r, err := b.KV(ctx, tenantA, ops)
	if err != nil {
		return err
	}
	return m.giveAll(ops, r, serial)
}

func (m *model) giveAll(ops []KVOp, r []KVResult, serial int) error {
	for i := range ops {
		if ops[i].Kind != KVPut {
			continue
		}
		if err := m.give(r[i].Version, serial); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) transact(ctx context.Context, b *Broker, list []PushItem, offsets []int64, ops []KVOp, serial int) error {
	r, err := b.Transaction(ctx, tenantA, list, ops)
	if err != nil {
		return err
	}
	for i := range r.Pushes {
		if r.Pushes[i].Offset != offsets[i] {
			return fmt.Errorf("item %d got offset %d, expected %d", i, r.Pushes[i].Offset, offsets[i])
		}
	}
	return m.giveAll(ops, r.KV, serial)
}

// resent is how many records of the shared queue are pushed again after a cut.
const resent = 30

// sharedKey numbers the records of the shared queue as a gateway does. tag ends
// with the serial number of the run and that of the push.
func sharedKey(tag string, w, n, i int) string {
	serial := strings.Split(tag, ".")[1]
	return fmt.Sprintf("qe:%d%s:0:0:%d", w+1, serial, n*16+i)
}

// resend pushes again what is there: all of it is a duplicate.
func (s *sharedModel) resend(b *Broker, push []string, at int64) (bad []string) {
	var w, serial, n int
	if _, err := fmt.Sscanf(push[0], "%d.%d.%d.", &w, &serial, &n); err != nil {
		return []string{err.Error()}
	}
	list := items(sharedQueue, "0", push...)
	for i := range list {
		list[i].TransactionID = []byte(sharedKey(push[i], w, n, i))
	}
	r, err := b.Push(context.Background(), tenantA, list, nil)
	if err != nil {
		return []string{err.Error()}
	}
	for i := range r {
		if r[i].Status != Duplicate || r[i].Offset != at+int64(i) {
			return []string{fmt.Sprintf("shared queue: resent offset %d, answered %s", at, verdicts(r))}
		}
	}
	return nil
}

// trimModel is what was acknowledged of a queue that retention works on.
type trimModel struct{ start, next int64 }

const trimmedQueue = "trimmed"

// trim pushes to the queue and lets all that was there before expire.
func (m *model) trim(ctx context.Context, b *Broker, rng *rand.Rand, serial int) {
	_, err := b.Configure(ctx, tenantA, trimmedQueue, func(o *Options) error {
		o.RetentionEnabled, o.RetentionSeconds = true, 1
		return nil
	})
	if err != nil {
		return
	}
	r, err := b.Push(ctx, tenantA, items(trimmedQueue, "0", "trim", strings.Repeat("x", rng.IntN(500))), nil)
	if err != nil {
		return
	}
	next := r[1].Offset + 1
	m.book(serial, trimModel{next: next})
	if rng.IntN(2) == 0 {
		return
	}
	m.clock.pass(2e9)
	if b.Tidy(ctx) == nil {
		m.book(serial, trimModel{start: next, next: next})
	}
}

func (m *model) book(serial int, t trimModel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serial == serial {
		m.trimmed = trimModel{start: max(m.trimmed.start, t.start), next: max(m.trimmed.next, t.next)}
	}
}

func (t *trimModel) verify(b *Broker) (bad []string) {
	ask := func(offset int64) FetchResult {
		r, err := b.Fetch(context.Background(), tenantA, FetchRequest{Entries: []FetchEntry{{Queue: trimmedQueue, Partition: "0", Offset: offset, MaxBytes: maxEntryBytes}}})
		if err != nil {
			bad = append(bad, fmt.Sprintf("trimmed queue: %v", err))
			return FetchResult{}
		}
		return r[0]
	}
	probe := ask(math.MaxInt64)
	start, next := probe.LogStartOffset, probe.HighWatermark
	if start < t.start || next < t.next || start > next {
		bad = append(bad, fmt.Sprintf("trimmed queue: from %d to %d, acknowledged were a start of %d and an end of %d", start, next, t.start, t.next))
	}
	bytes := int64(0)
	all := ask(start)
	for _, rec := range all.Records {
		bytes += int64(len(rec.Payload))
	}
	sizes, _ := b.PartitionSizes(tenantA, trimmedQueue)
	if int64(len(all.Records)) != next-start || sizes["0"] != bytes {
		bad = append(bad, fmt.Sprintf("trimmed queue: %d records of %d, %d bytes of %d", len(all.Records), next-start, bytes, sizes["0"]))
	}
	*t = trimModel{start, next}
	return bad
}
