package proxyclient

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/tenancy"
)

// MaxFetchWait is the longest wait the cell accepts (§3.5).
const MaxFetchWait = 30 * time.Second

// FetchEntry asks for one partition's records from Offset on (inclusive).
type FetchEntry struct {
	Queue     string
	Partition int32
	Offset    int64 // ≥ 0; the largest int64 probes the bounds
	MaxBytes  int   // payload bytes; the cell clamps it to 1 … 8 MiB
}

// EntryError is an entry's error marker.
type EntryError uint8

// The markers.
const (
	EntryOK EntryError = iota
	EntryUnknownTopicOrPartition
	EntryOffsetOutOfRange
	EntryUnknownMarker
)

const maxMarker = 64 // bytes of an unknown marker that are kept

// FetchResult is an entry's answer beside its records. The bounds are true
// also beside an error.
type FetchResult struct {
	HighWatermark int64 // the next offset to be assigned
	LogStart      int64 // the first retained offset
	Appended      int64 // append time of the last record read, in ms; 0: there is none, or no time
	Error         EntryError
	Marker        string // EntryUnknownMarker only, at most 64 bytes, for logs
}

var (
	errCount          = errors.New("the answer has not one entry per question")
	errNames          = errors.New("an entry's queue or partition is not the one asked for")
	errBounds         = errors.New("an entry without its bounds")
	errOrder          = errors.New("records out of order or below the offset asked for")
	errNegativeOffset = errors.New("a negative offset")
	errRepeated       = errors.New("a member that may stand once is repeated")
)

// Fetch reads up to 1024 partitions (§3.5), waiting up to maxWait (clamped to
// 0 … 30 s) for minBytes; no entries is no call. sink, which may be nil, is
// called for each record as it comes off the wire, in ascending order within an
// entry; r and its slices are valid only during the call. The answer is never
// held whole: memory stays below the largest record and a buffer. An error of
// sink ends the call and is returned as it is. On any error records already
// given to sink are to be thrown away, and dst is returned as it came.
func (c *Client) Fetch(ctx context.Context, s tenancy.Scope, entries []FetchEntry, maxWait time.Duration, minBytes int, sink func(entry int, r *batch.Record) error, dst []FetchResult) ([]FetchResult, error) {
	if len(entries) == 0 {
		return dst, nil
	}
	maxWait = min(max(maxWait, 0), MaxFetchWait)
	buf := c.getBuffer()
	defer c.putBuffer(buf)
	buf.b = appendFetch(buf.b, entries, maxWait, minBytes)
	k, err := c.start(ctx, postTarget(RouteFetch, "/api/v1/fetch"), claimOf(s), newSource(buf.b), maxWait)
	if err != nil {
		return dst, err
	}
	defer k.end()
	f := c.fetchReader()
	defer c.putFetchReader(f)
	f.in.reset(k.resp.Body)
	f.entries, f.sink, f.results = entries, sink, dst
	if err := f.read(); err != nil {
		return dst, k.unread(err)
	}
	for i := range f.results[len(dst):] {
		r := &f.results[len(dst)+i]
		r.Marker = redact(r.Marker, k.bearer)
	}
	return f.results, nil
}

// unread classifies what ended the reading.
func (k *call) unread(err error) error {
	var own *sinkError
	var stream *streamError
	switch {
	case errors.As(err, &own):
		return own.err
	case errors.As(err, &stream):
		return k.failed(KindTransport, stream.err)
	}
	return k.failed(KindBody, err)
}

// sinkError carries the sink's own error past the classification.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }

func appendFetch(b []byte, entries []FetchEntry, maxWait time.Duration, minBytes int) []byte {
	b = append(b, `{"entries":[`...)
	for i := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendLane(b, entries[i].Queue, entries[i].Partition)
		b = append(b, `,"offset":`...)
		b = strconv.AppendInt(b, entries[i].Offset, 10)
		b = append(b, `,"maxBytes":`...)
		b = append(strconv.AppendInt(b, int64(entries[i].MaxBytes), 10), '}')
	}
	b = append(b, `],"maxWaitMs":`...)
	b = strconv.AppendInt(b, maxWait.Milliseconds(), 10)
	b = append(b, `,"minBytes":`...)
	return append(strconv.AppendInt(b, int64(max(minBytes, 0)), 10), '}')
}

// fetchReader reads one answer. It is pooled: its window and arena are what
// makes a fetch free of allocations per record.
type fetchReader struct {
	in      window
	record  decoder
	entries []FetchEntry
	sink    func(entry int, r *batch.Record) error
	results []FetchResult
	index   int // of the entry being read
	entry   entryState
}

// entryState is what an entry must still show. Its members come in any order.
type entryState struct {
	result                                 FetchResult
	queue, partition, high, start, records bool
	last                                   int64 // offset of the record before
}

func (c *Client) fetchReader() *fetchReader {
	if f, ok := c.streams.Get().(*fetchReader); ok {
		return f
	}
	return &fetchReader{}
}

// putFetchReader keeps the memory and forgets the tenant's call.
func (c *Client) putFetchReader(f *fetchReader) {
	if cap(f.in.buf) > maxPooled || cap(f.record.arena) > maxPooled {
		return
	}
	f.in.r, f.entries, f.sink, f.results = nil, nil, nil, nil
	f.entry = entryState{}
	f.record.forget()
	c.streams.Put(f)
}

func (f *fetchReader) read() error {
	f.index = 0
	f.results = slices.Grow(f.results, len(f.entries))
	seen := false
	err := f.in.each('{', '}', func() error {
		name, err := f.memberName()
		if err != nil {
			return err
		}
		if name != memberEntries {
			return f.skip()
		}
		if seen {
			return errRepeated
		}
		seen = true
		return f.in.each('[', ']', f.readEntry)
	})
	if err != nil {
		return err
	}
	if f.index != len(f.entries) {
		return errCount
	}
	return f.in.atEnd()
}

// member is a name that means something in a fetch answer.
type member uint8

const (
	memberOther member = iota
	memberEntries
	memberQueue
	memberPartition
	memberRecords
	memberHigh
	memberStart
	memberError
	memberOffset
	memberPayload
	memberTS
)

func memberOf(name []byte) member {
	switch string(name) {
	case "entries":
		return memberEntries
	case "queue":
		return memberQueue
	case "partition":
		return memberPartition
	case "records":
		return memberRecords
	case "highWatermark":
		return memberHigh
	case "logStartOffset":
		return memberStart
	case "error":
		return memberError
	case "offset":
		return memberOffset
	case "payload":
		return memberPayload
	case "ts":
		return memberTS
	}
	return memberOther
}

// memberName takes a key and its colon.
func (f *fetchReader) memberName() (member, error) {
	quoted, err := f.in.value()
	if err != nil {
		return 0, err
	}
	name, err := stringText(&f.record.json, quoted)
	if err != nil {
		return 0, err
	}
	m := memberOf(name)
	return m, f.in.expect(':')
}

// skip crosses a value nobody asked for.
func (f *fetchReader) skip() error {
	raw, err := f.in.value()
	if err == nil {
		err = f.record.validate(raw)
	}
	return err
}

func (f *fetchReader) readEntry() error {
	if f.index == len(f.entries) {
		return errCount
	}
	f.entry = entryState{last: -1}
	if err := f.in.each('{', '}', f.entryMember); err != nil {
		return err
	}
	e := &f.entry
	if !e.queue || !e.partition {
		return errNames
	}
	if !e.high || !e.start {
		return errBounds
	}
	f.results = append(f.results, e.result)
	f.index++
	return nil
}

func (f *fetchReader) entryMember() error {
	name, err := f.memberName()
	if err != nil {
		return err
	}
	if name == memberRecords {
		return f.readRecords()
	}
	raw, err := f.in.value()
	if err != nil {
		return err
	}
	e, asked := &f.entry, &f.entries[f.index]
	switch name {
	case memberQueue:
		e.queue = true
		return f.sameText(raw, asked.Queue)
	case memberPartition:
		e.partition = true
		return f.samePartition(raw, asked.Partition)
	case memberHigh:
		e.result.HighWatermark, e.high = intValue(raw)
		return boundOf(e.result.HighWatermark, e.high)
	case memberStart:
		e.result.LogStart, e.start = intValue(raw)
		return boundOf(e.result.LogStart, e.start)
	case memberError:
		return f.marker(raw)
	}
	return f.record.validate(raw)
}

func boundOf(bound int64, ok bool) error {
	if !ok || bound < 0 {
		return errBounds
	}
	return nil
}

func (f *fetchReader) sameText(raw []byte, want string) error {
	text, err := stringText(&f.record.json, raw)
	if err == nil && string(text) != want {
		err = errNames
	}
	return err
}

func (f *fetchReader) samePartition(raw []byte, want int32) error {
	text, err := stringText(&f.record.json, raw)
	if err != nil {
		return err
	}
	if n, ok := intValue(text); !ok || n != int64(want) {
		return errNames
	}
	return nil
}

func (f *fetchReader) marker(raw []byte) error {
	if isNullText(raw) {
		return nil
	}
	text, err := stringText(&f.record.json, raw)
	if err != nil {
		return err
	}
	f.entry.result.Error = entryError(text)
	if f.entry.result.Error == EntryUnknownMarker {
		f.entry.result.Marker = cutBytes(scrub(string(text[:min(len(text), 4*maxMarker)])), maxMarker)
	}
	return nil
}

func entryError(marker []byte) EntryError {
	switch string(marker) {
	case "UNKNOWN_TOPIC_OR_PARTITION":
		return EntryUnknownTopicOrPartition
	case "OFFSET_OUT_OF_RANGE":
		return EntryOffsetOutOfRange
	}
	return EntryUnknownMarker
}

func (f *fetchReader) readRecords() error {
	if f.entry.records {
		return errRepeated
	}
	f.entry.records = true
	if c, err := f.in.peek(); err != nil || c == 'n' {
		return f.nullRecords(err)
	}
	return f.in.each('[', ']', f.readRecord)
}

func (f *fetchReader) nullRecords(err error) error {
	if err != nil {
		return err
	}
	raw, err := f.in.value()
	if err == nil && !isNullText(raw) {
		err = errSyntax
	}
	return err
}

func (f *fetchReader) readRecord() error {
	if err := f.nextRecord(); err != nil {
		return err
	}
	offset := f.record.record.Offset
	if offset <= f.entry.last || offset < f.entries[f.index].Offset {
		return errOrder
	}
	f.entry.last = offset
	f.entry.result.Appended = max(f.record.appended, 0)
	if f.sink == nil {
		return nil
	}
	if err := f.sink(f.index, &f.record.record); err != nil {
		return &sinkError{err}
	}
	return nil
}

// nextRecord takes a record in one pass where all of it is here, as it nearly
// always is. Otherwise its end is looked for as it arrives, and then it is read.
func (f *fetchReader) nextRecord() error {
	if _, err := f.in.peek(); err != nil {
		return err
	}
	if n := f.record.whole(f.in.here()); n > 0 {
		f.in.head += n
		return nil
	}
	raw, err := f.in.value()
	if err != nil {
		return err
	}
	return f.record.decode(raw)
}
