package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// note adds an item's key to the runs of its lane.
func (l *lane) note(key []byte, at int64) {
	if len(key) == 0 {
		return
	}
	if l.goesOn(key, at) {
		l.runs[len(l.runs)-1].count++
		return
	}
	r := runOf(key, l.partition, at)
	l.series = nil
	if !r.single {
		l.series = key[:bytes.LastIndexByte(key, ':')+1]
	}
	if n := len(l.runs); n > 0 && l.runs[n-1].joins(&r) {
		l.runs[n-1].count++
		return
	}
	l.runs = append(l.runs, r)
}

// goesOn says whether a key is the next one of the last run, as all keys of a
// producer's batch are: it differs from the one before in its number only, so no
// other part of it needs to be read again.
func (l *lane) goesOn(key []byte, at int64) bool {
	if len(l.series) == 0 || !bytes.HasPrefix(key, l.series) {
		return false
	}
	r := &l.runs[len(l.runs)-1]
	sequence, ok := number(key[len(l.series):], math.MaxInt32)
	return ok && sequence == r.first+uint64(r.count) && at == r.from+r.count
}

// findRepeats says whether a lane has a key twice. It runs in the caller's
// goroutine, so that the writer need not look for what nearly never is.
func (l *lane) findRepeats() {
	if len(l.runs) < 2 {
		return
	}
	singles := make(map[keyHash]struct{})
	spans := make(map[producer][]keySpan)
	for i := range l.runs {
		r := &l.runs[i]
		if r.single {
			_, l.repeats = singles[r.hash]
			singles[r.hash] = struct{}{}
		} else {
			l.repeats = slices.ContainsFunc(spans[r.by], r.meets)
			spans[r.by] = append(spans[r.by], keySpan{first: r.first, last: r.last()})
		}
		if l.repeats {
			return
		}
	}
}

func (r *keyRun) meets(s keySpan) bool { return s.first <= r.last() && r.first <= s.last }

// keyLookup finds what the writer's plans have to know of keys.
type keyLookup struct {
	m   *machine
	it  *pebble.Iterator // over the rows of both kinds; nil until needed
	now int64            // µs
}

func (k *keyLookup) close(err *error) {
	if k.it != nil {
		*err = errors.Join(*err, k.it.Close())
	}
}

func (k *keyLookup) open() error {
	if k.it != nil {
		return nil
	}
	var err error
	k.it, err = k.m.store.Rows([]byte{rangeRows}, []byte{singleRows + 1})
	return err
}

// single gives the offset of a key that counts.
func (k *keyLookup) single(uid uint64, hash keyHash, window int64) (offset int64, found bool, err error) {
	if offset, found = k.m.plannedKeys.singles[singleKey{uid, hash}]; found {
		return offset, true, nil
	}
	if err := k.open(); err != nil {
		return 0, false, err
	}
	var room [singleKeyBytes]byte
	prefix := appendSingleKey(room[:0], uid, hash, 0)[:singleKeyBytes-8]
	for ok := k.it.SeekGE(prefix); ok && bytes.HasPrefix(k.it.Key(), prefix); ok = k.it.Next() {
		d := decoder{b: k.it.Value()}
		if inWindow(d.int(), k.now, window) {
			return int64(binary.BigEndian.Uint64(k.it.Key()[singleKeyBytes-8:])), true, d.err
		}
	}
	return 0, false, k.it.Error()
}

// spans gives the kept spans that count and meet a run.
func (k *keyLookup) spans(uid uint64, r *keyRun, window int64) ([]keySpan, error) {
	var met []keySpan
	by := r.by
	by.partition = uid
	for _, s := range k.m.plannedKeys.spans[by] {
		if r.meets(s) {
			met = append(met, s)
		}
	}
	if err := k.open(); err != nil {
		return nil, err
	}
	var room [rangeKeyBytes]byte
	prefix := appendRangePrefix(room[:0], uid, r.by)
	from := binary.BigEndian.AppendUint32(prefix, uint32(r.first))
	for ok := k.it.SeekGE(from); ok && bytes.HasPrefix(k.it.Key(), prefix); ok = k.it.Next() {
		s, at, err := rangeRow(k.it.Key(), k.it.Value())
		if err != nil {
			return nil, err
		}
		switch {
		case !inWindow(at, k.now, window): // and may lie anywhere
		case r.meets(s):
			met = append(met, s)
		default:
			return met, nil // what counts does not overlap: none behind it meets
		}
	}
	return met, k.it.Error()
}

// dedup finds the duplicates of a push and takes them out of it. It changes
// nothing but the push.
func (m *machine) dedup(p *push, now int64) (err error) {
	k := keyLookup{m: m}
	defer k.close(&err)
	for i := range p.lanes {
		l := &p.lanes[i]
		l.dups, l.kept, l.stored = nil, nil, l.count
		if len(l.runs) == 0 {
			continue
		}
		window, uid := DefaultOptions().DedupWindowSeconds, uint64(0)
		k.now = now
		if q := m.queues[queueKey{p.tenant, l.queue}]; q != nil {
			window = q.plan.options.DedupWindowSeconds
			if part := q.plan.parts[l.partition]; part != nil {
				uid, k.now = part.uid, max(now, part.plan.time)
			}
		}
		if window <= 0 {
			continue
		}
		if err := k.dedup(l, uid, window, p.first); err != nil {
			return err
		}
	}
	return nil
}

// dedup does so for a lane. uid is 0 for a partition that does not exist.
func (k *keyLookup) dedup(l *lane, uid uint64, window int64, ids messageID) error {
	l.kept = l.runs
	for i := range l.runs {
		if uid == 0 {
			break
		}
		r := &l.runs[i]
		var err error
		if r.single {
			err = k.markSingle(l, r, uid, window)
		} else {
			err = k.markRange(l, r, uid, window)
		}
		if err != nil {
			return err
		}
	}
	if l.repeats {
		l.markRepeats()
	}
	if l.dups == nil {
		return nil
	}
	l.keepNew()
	return l.reencode(ids)
}

func (k *keyLookup) markSingle(l *lane, r *keyRun, uid uint64, window int64) error {
	offset, found, err := k.single(uid, r.hash, window)
	if found {
		l.mark(r.from, offset)
	}
	return err
}

func (k *keyLookup) markRange(l *lane, r *keyRun, uid uint64, window int64) error {
	met, err := k.spans(uid, r, window)
	if err != nil || len(met) == 0 {
		return err
	}
	for j := range r.count {
		sequence := r.first + uint64(j)
		at := slices.IndexFunc(met, func(s keySpan) bool { return s.has(sequence) })
		if at >= 0 {
			l.mark(r.from+j, met[at].offset+int64(sequence-met[at].first))
		}
	}
	return nil
}

func (s keySpan) has(sequence uint64) bool { return s.first <= sequence && sequence <= s.last }

// isNew marks items of a lane that are stored; inPush less a position those
// whose original is the item there.
const (
	isNew  = -1
	inPush = -2
)

// mark notes that an item is a duplicate of what has an offset.
func (l *lane) mark(item, offset int64) {
	if l.dups == nil {
		l.dups = make([]int64, l.count)
		for i := range l.dups {
			l.dups[i] = isNew
		}
	}
	l.dups[item] = offset
}

// markRepeats notes the items whose key an earlier item of the lane has.
func (l *lane) markRepeats() {
	type numbered struct {
		by       producer
		sequence uint64
	}
	singles, sequences := make(map[keyHash]int64), make(map[numbered]int64)
	for i := range l.runs {
		r := &l.runs[i]
		for j := range r.count {
			item := r.from + j
			var earlier int64
			var seen bool
			if r.single {
				if earlier, seen = singles[r.hash]; !seen {
					singles[r.hash] = item
				}
			} else {
				key := numbered{r.by, r.first + uint64(j)}
				if earlier, seen = sequences[key]; !seen {
					sequences[key] = item
				}
			}
			if seen && (l.dups == nil || l.dups[item] == isNew) {
				l.mark(item, inPush-earlier)
			}
		}
	}
}

// keepNew makes the runs of what is stored, by position among that.
func (l *lane) keepNew() {
	l.kept = nil
	l.place = make([]int64, l.count+1)
	for i, d := range l.dups {
		l.place[i+1] = l.place[i]
		if d == isNew {
			l.place[i+1]++
		}
	}
	l.stored = l.place[l.count]
	for i := range l.runs {
		r := &l.runs[i]
		for j := range r.count {
			if l.dups[r.from+j] != isNew {
				continue
			}
			one := keyRun{from: l.place[r.from+j], count: 1, single: r.single, hash: r.hash, by: r.by, first: r.first + uint64(j)}
			if n := len(l.kept); n > 0 && l.kept[n-1].joins(&one) {
				l.kept[n-1].count++
			} else {
				l.kept = append(l.kept, one)
			}
		}
	}
}

// reencode writes the blobs again without the duplicates. The items themselves
// may be gone: their caller may have given up.
func (l *lane) reencode(ids messageID) error {
	blobs := l.blobs
	item := 0
	l.buf, l.from, l.given = make([]byte, 0, len(l.buf)), 0, 0
	l.chunks, l.blobs, l.follow = nil, nil, l.kept
	for i := range blobs {
		r, err := readBlob(blobs[i].Data)
		if err != nil {
			return err
		}
		for len(r.b) > 0 {
			var rec Record
			if r.next(&rec); r.err != nil {
				return r.err
			}
			if l.dups[item] == isNew {
				l.encode(&PushItem{Payload: rec.Payload, TransactionID: []byte(rec.TransactionID)}, ids)
			}
			item++
		}
	}
	l.seal()
	return nil
}

// sweepKeys removes the rows of a partition whose window has passed. It needs
// no entry: rows that a crash brings back have expired all the same.
func (b *Broker) sweepKeys(uid uint64, window int64) error {
	now := b.clock().UnixMicro()
	for _, kind := range []byte{rangeRows, singleRows} {
		next := key1(kind, uid)
		for next != nil && !b.isClosing() {
			var expired [][]byte
			var failed error
			from := next
			next = nil
			err := eachRowIn(b.store, from, key1(kind, uid+1), func(key, value []byte) bool {
				if len(expired) == purgeRowsAtOnce {
					next = slices.Clone(key)
					return false
				}
				at, err := keyRowTime(key, value)
				if err == nil && !inWindow(at, now, window) {
					expired = append(expired, slices.Clone(key))
				}
				failed = err
				return err == nil
			})
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			if err := b.removeRows(expired); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Broker) removeRows(keys [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	return b.freeing(func(d *store.Draft) error {
		d.Index = func(batch *store.Batch) error {
			for _, key := range keys {
				if err := batch.Delete(key); err != nil {
					return err
				}
			}
			return nil
		}
		return nil
	})
}
