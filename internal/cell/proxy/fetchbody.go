package proxy

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// The bounds and defaults of a fetch (cell-http §3.5).
const (
	maxEntries      = 1024
	defaultMaxBytes = 1 << 20
	ceilingMaxBytes = 8 << 20
	ceilingMaxWait  = 30_000 // ms
	defaultMinBytes = 1
)

// fetchBody decodes the bodies of fetch and fetch/offsets. It is reused:
// nothing may keep entries.
type fetchBody struct {
	dec     jx.Decoder
	entries []broker.FetchEntry
	times   []broker.TimeQuery
	maxWait time.Duration
	min     int

	queues, partitions interner
}

// reset forgets the last body.
func (b *fetchBody) reset() {
	clear(b.entries)
	clear(b.times)
	b.entries, b.times = b.entries[:0], b.times[:0]
	b.queues.reset()
	b.partitions.reset()
	b.dec.ResetBytes(nil)
	b.maxWait, b.min = 0, defaultMinBytes
}

// decodeFetch reads the body of a fetch; the first thing wrong refuses the
// whole call.
func (b *fetchBody) decodeFetch(body []byte) *refusal {
	return b.decode(body, func(key []byte) *refusal {
		switch string(key) {
		case "entries":
			b.entries = b.entries[:0]
			return b.list(b.fetchEntry)
		case "maxWaitMs":
			ms, f := b.optionalInt("maxWaitMs", 0)
			b.maxWait = time.Duration(min(max(ms, 0), ceilingMaxWait)) * time.Millisecond
			return f
		case "minBytes":
			n, f := b.optionalInt("minBytes", defaultMinBytes)
			b.min = int(min(max(n, 0), math.MaxInt32))
			return f
		default:
			return b.skip()
		}
	})
}

// decodeTimes reads the body of fetch/offsets.
func (b *fetchBody) decodeTimes(body []byte) *refusal {
	return b.decode(body, func(key []byte) *refusal {
		if string(key) != "entries" {
			return b.skip()
		}
		b.times = b.times[:0]
		return b.list(b.timeEntry)
	})
}

// decode reads an object, handing each member to a function that consumes it.
func (b *fetchBody) decode(body []byte, member func(key []byte) *refusal) *refusal {
	b.reset()
	if !utf8.Valid(body) {
		return badBody()
	}
	b.dec.ResetBytes(body)
	if b.dec.Next() != jx.Object {
		return notAnObject(&b.dec)
	}
	if f := b.object(member); f != nil {
		return f
	}
	if trailing(&b.dec) {
		return badBody()
	}
	return nil
}

// object walks the members of the object that is next.
func (b *fetchBody) object(member func(key []byte) *refusal) *refusal {
	members, err := b.dec.ObjIter()
	if err != nil {
		return badBody()
	}
	for members.Next() {
		if f := member(members.Key()); f != nil {
			return f
		}
	}
	if members.Err() != nil {
		return badBody()
	}
	return nil
}

// list walks the entries; one too many ends it before it is kept.
func (b *fetchBody) list(entry func() *refusal) *refusal {
	switch b.dec.Next() {
	case jx.Null:
		return b.skip()
	case jx.Array:
	default:
		return badRequest("entries must be an array")
	}
	elements, err := b.dec.ArrIter()
	if err != nil {
		return badBody()
	}
	for n := 0; elements.Next(); n++ {
		if n == maxEntries {
			return badRequest("too many entries")
		}
		if b.dec.Next() != jx.Object {
			return b.wrong("an entry must be an object")
		}
		if f := entry(); f != nil {
			return f
		}
	}
	if elements.Err() != nil {
		return badBody()
	}
	return nil
}

// fetchEntry reads one entry of a fetch.
func (b *fetchBody) fetchEntry() *refusal {
	e := broker.FetchEntry{Offset: -1, MaxBytes: defaultMaxBytes}
	f := b.entry(&e.Queue, &e.Partition, func(key []byte) (f *refusal) {
		switch string(key) {
		case "offset":
			e.Offset, f = b.int("offset")
		case "maxBytes":
			var n int64
			n, f = b.optionalInt("maxBytes", defaultMaxBytes)
			e.MaxBytes = int(min(max(n, 1), ceilingMaxBytes))
		default:
			f = b.skip()
		}
		return f
	})
	switch {
	case f != nil:
		return f
	case e.Offset < 0:
		return badRequest("an entry's offset is required and must not be negative")
	}
	b.entries = append(b.entries, e)
	return nil
}

// entry reads an entry: where it is about, and by a function what else it has.
func (b *fetchBody) entry(queue, partition *string, member func(key []byte) *refusal) *refusal {
	*partition = defaultPartition
	f := b.object(func(key []byte) (f *refusal) {
		switch string(key) {
		case "queue":
			*queue, f = b.queue()
		case "partition":
			*partition, f = b.partition()
		default:
			f = member(key)
		}
		return f
	})
	if f == nil && *queue == "" {
		return badRequest("an entry's queue is required")
	}
	return f
}

// timeEntry reads one entry of fetch/offsets.
func (b *fetchBody) timeEntry() *refusal {
	var q broker.TimeQuery
	dated := false
	f := b.entry(&q.Queue, &q.Partition, func(key []byte) (f *refusal) {
		if string(key) != "timestamp" {
			return b.skip()
		}
		dated = true
		q.Time, f = b.timestamp()
		return f
	})
	switch {
	case f != nil:
		return f
	case !dated:
		return badTimestamp()
	}
	b.times = append(b.times, q)
	return nil
}

// queue reads a queue's name.
func (b *fetchBody) queue() (string, *refusal) {
	if b.dec.Next() != jx.String {
		return "", b.wrong("queue must be a string")
	}
	raw, err := b.dec.StrBytes()
	if err != nil {
		return "", badBody()
	}
	return b.queues.intern(raw), nil
}

// partition reads a partition's name; an integer stands for its decimal text.
func (b *fetchBody) partition() (string, *refusal) {
	switch b.dec.Next() {
	case jx.Null:
		return defaultPartition, b.skip()
	case jx.Number:
		raw, err := b.dec.Raw()
		if err != nil {
			return "", badBody()
		}
		if _, ok := parseInteger(raw); !ok {
			return "", badRequest("partition must be a string or an integer")
		}
		return b.partitions.intern(raw), nil
	case jx.String:
	default:
		return "", b.wrong("partition must be a string or an integer")
	}
	raw, err := b.dec.StrBytes()
	if err != nil {
		return "", badBody()
	}
	if len(raw) == 0 {
		return "", badRequest("partition must not be empty")
	}
	return b.partitions.intern(raw), nil
}

// int reads an integer member.
func (b *fetchBody) int(name string) (int64, *refusal) {
	n, ok, err := integer(&b.dec)
	if err != nil {
		return 0, badBody()
	}
	if !ok {
		return 0, badRequest(name + " must be an integer")
	}
	return n, nil
}

// optionalInt reads an integer member that may be null.
func (b *fetchBody) optionalInt(name string, absent int64) (int64, *refusal) {
	if b.dec.Next() == jx.Null {
		return absent, b.skip()
	}
	return b.int(name)
}

// latestTime is as late as a query can mean: nothing is younger, and the
// arithmetic of no clock overflows.
const latestTime = 253_402_300_799_000 // ms; the last second of the year 9999

// timestamp reads epoch milliseconds or an ISO-8601 time.
func (b *fetchBody) timestamp() (time.Time, *refusal) {
	switch b.dec.Next() {
	case jx.Number:
		ms, ok, err := integer(&b.dec)
		if err != nil {
			return time.Time{}, badBody()
		}
		if !ok || ms < 0 {
			return time.Time{}, badTimestamp()
		}
		return time.UnixMilli(min(ms, latestTime)), nil
	case jx.String:
		text, err := b.dec.Str()
		if err != nil {
			return time.Time{}, badBody()
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.UnixMilli() < 0 {
			return time.Time{}, badTimestamp()
		}
		return at, nil
	default:
		if f := b.skip(); f != nil {
			return time.Time{}, f
		}
		return time.Time{}, badTimestamp()
	}
}

func badTimestamp() *refusal {
	return badRequest("timestamp must be a non-negative number of epoch milliseconds or an ISO-8601 time")
}

// skip passes over a value.
func (b *fetchBody) skip() *refusal {
	if b.dec.Skip() != nil {
		return badBody()
	}
	return nil
}

// wrong refuses a value of the wrong shape, unless it is no value at all.
func (b *fetchBody) wrong(text string) *refusal {
	if f := b.skip(); f != nil {
		return f
	}
	return badRequest(text)
}
