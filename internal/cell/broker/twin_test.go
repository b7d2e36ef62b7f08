package broker

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// twin is a tenant's data in the most naive form: everything is searched from
// the beginning.
type twin struct {
	queues map[string]*twinQueue
	keys   map[string]twinRow
}

type twinQueue struct {
	window, retention int64 // s, 0 for none
	parts             map[string]*twinPart
}

type twinPart struct {
	start   int
	records []twinRecord // from offset 0 on, those below start too
}

type twinRecord struct {
	payload, id string
	at          int64 // µs
	keyed       bool  // its id was kept
}

type twinRow struct {
	value            string
	version, expires int64
}

func newTwin() *twin {
	return &twin{queues: make(map[string]*twinQueue), keys: make(map[string]twinRow)}
}

func (w *twin) push(list []PushItem, now int64) string {
	var out []string
	for _, item := range list {
		q := w.queues[item.Queue]
		if q == nil {
			q = &twinQueue{window: DefaultOptions().DedupWindowSeconds, parts: make(map[string]*twinPart)}
			w.queues[item.Queue] = q
		}
		p := q.parts[item.Partition]
		if p == nil {
			p = new(twinPart)
			q.parts[item.Partition] = p
		}
		if at := p.original(string(item.TransactionID), q.window, now); at >= 0 {
			out = append(out, fmt.Sprintf("d%d", at))
			continue
		}
		out = append(out, fmt.Sprintf("q%d", len(p.records)))
		p.records = append(p.records, twinRecord{string(item.Payload), string(item.TransactionID), now, q.window > 0})
	}
	return strings.Join(out, " ")
}

func (p *twinPart) original(id string, window, now int64) int {
	if id == "" || window == 0 {
		return -1
	}
	return slices.IndexFunc(p.records, func(r twinRecord) bool {
		return r.id == id && r.keyed && now-r.at < window*1e6
	})
}

// fetch is what a fetch without a limit gives.
func (w *twin) fetch(queue, partition string, offset int64) string {
	q := w.queues[queue]
	if q == nil {
		return "unknown 0 0"
	}
	p := q.parts[partition]
	if p == nil {
		p = new(twinPart)
	}
	bounds := fmt.Sprintf("%d %d", p.start, len(p.records))
	if offset < int64(p.start) || offset > int64(len(p.records)) {
		return "range " + bounds
	}
	for i := int(offset); i < len(p.records); i++ {
		bounds += fmt.Sprintf(" %d:%s(%s)", i, p.records[i].payload, p.records[i].id)
	}
	return bounds
}

func shownFetch(r FetchResult) string {
	s := fmt.Sprintf("%d %d", r.LogStartOffset, r.HighWatermark)
	switch r.Error {
	case UnknownTopicOrPartition:
		return "unknown " + s
	case OffsetOutOfRange:
		return "range " + s
	}
	for _, rec := range r.Records {
		s += fmt.Sprintf(" %d:%s(%s)", rec.Offset, rec.Payload, rec.TransactionID)
	}
	return s
}

// retain is a retention pass.
func (w *twin) retain(now int64) {
	for _, q := range w.queues {
		for _, p := range q.parts {
			for q.retention > 0 && p.start < len(p.records) && now-p.records[p.start].at > q.retention*1e6 {
				p.start++
			}
		}
	}
}

func (w *twin) live(at string, now int64) (twinRow, bool) {
	if r, ok := w.keys[at]; ok && (r.expires == 0 || r.expires > now) {
		return r, true
	}
	return twinRow{}, false
}

// errLost is a required condition that was lost.
var errLost = errors.New("lost")

// kv runs a call. Results of writes are rendered without versions, for the twin
// cannot know them; take reads them off the broker's answer.
func (w *twin) kv(ops []KVOp, now int64) (out []string, after map[string]twinRow, err error) {
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) string {
		if o := ops[i]; o.Kind != KVGetMany && o.Kind != KVGetPrefix {
			return "0" + o.NS + "\x00" + o.Key
		}
		return "1"
	}
	sort.SliceStable(order, func(a, b int) bool { return rank(order[a]) < rank(order[b]) })
	next := &twin{keys: make(map[string]twinRow)}
	for at, row := range w.keys {
		next.keys[at] = row
	}
	out = make([]string, len(ops))
	for _, i := range order {
		var lost bool
		if out[i], lost = next.one(&ops[i], now); lost && ops[i].Required {
			return []string{fmt.Sprintf("%d %s", i, out[i])}, nil, errLost
		}
	}
	return out, next.keys, nil
}

func (w *twin) one(o *KVOp, now int64) (shown string, lost bool) {
	at := o.NS + "\x00" + o.Key
	old, there := w.live(at, now)
	expires := int64(0)
	if o.TTLSeconds.Set {
		expires = now + o.TTLSeconds.N*1e6
	}
	switch o.Kind {
	case KVGet:
		if !there {
			return "none", false
		}
		return fmt.Sprintf("%s %d", old.value, old.version), false
	case KVGetMany, KVGetPrefix:
		return w.many(o, now), false
	case KVIncr:
		n := int64(0)
		if there {
			var err error
			if n, err = strconv.ParseInt(old.value, 10, 64); err != nil {
				return fmt.Sprintf("lost type %s %d", old.value, old.version), true
			}
			expires = old.expires
		}
		if n += o.By.N; o.Max.Set && n > o.Max.N {
			return fmt.Sprintf("lost limit %s %d", old.value, old.version), true
		}
		w.keys[at] = twinRow{value: fmt.Sprint(n), version: -1, expires: expires}
		return fmt.Sprintf("wrote %d", n), false
	}
	reason, e := "", o.Expect
	if o.Kind == KVPutIfAbsent {
		e = Int(0)
	}
	switch {
	case !e.Set && o.Kind == KVDelete && !there:
		reason = "absent"
	case !e.Set:
	case e.N == 0 && there:
		reason = "exists"
	case e.N != 0 && !there:
		reason = "absent"
	case e.N != 0 && old.version != e.N:
		reason = "version"
	}
	if reason != "" {
		return fmt.Sprintf("lost %s %s %d", reason, old.value, old.version), true
	}
	if o.Kind == KVDelete {
		if there {
			delete(w.keys, at)
		}
		return fmt.Sprintf("deleted %s %d", old.value, old.version), false
	}
	w.keys[at] = twinRow{value: string(o.Value), version: -1, expires: expires}
	return "wrote " + string(o.Value), false
}

func (w *twin) many(o *KVOp, now int64) string {
	var rows, missing []string
	for at := range w.keys {
		ns, key, _ := strings.Cut(at, "\x00")
		_, there := w.live(at, now)
		if !there || ns != o.NS {
			continue
		}
		if o.Kind == KVGetMany && slices.Contains(o.Keys, key) || o.Kind == KVGetPrefix && strings.HasPrefix(key, o.Prefix) && key > o.After {
			rows = append(rows, key)
		}
	}
	for _, key := range o.Keys {
		if _, there := w.live(o.NS+"\x00"+key, now); !there && !slices.Contains(missing, key) {
			missing = append(missing, key)
		}
	}
	slices.Sort(rows)
	slices.Sort(missing)
	truncated := o.Kind == KVGetPrefix && len(rows) > int(o.Limit.N)
	if truncated {
		rows = rows[:o.Limit.N]
	}
	for i, key := range rows {
		rows[i] = key + "=" + w.keys[o.NS+"\x00"+key].value
	}
	return fmt.Sprint(rows, missing, truncated)
}

// shownKV renders a result of the broker as the twin does.
func shownKV(o *KVOp, r *KVResult) string {
	switch {
	case o.Kind == KVGet && !r.Found:
		return "none"
	case o.Kind == KVGet:
		return fmt.Sprintf("%s %d", r.Value, r.Version)
	case o.Kind == KVGetMany, o.Kind == KVGetPrefix:
		rows := []string{}
		for i := range r.Rows {
			rows = append(rows, r.Rows[i].Key+"="+string(r.Rows[i].Value))
		}
		return fmt.Sprint(rows, r.Missing, r.Truncated)
	case !r.Applied:
		return fmt.Sprintf("lost %s %s %d", r.Reason, r.Value, r.Version)
	case o.Kind == KVDelete:
		return fmt.Sprintf("deleted %s %d", r.Value, r.Version)
	default:
		return "wrote " + string(r.Value)
	}
}
