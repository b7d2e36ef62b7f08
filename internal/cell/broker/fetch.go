package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits of a fetch (cell-http §3.5).
const (
	MaxEntries      = 1024
	maxEntryBytes   = 8 << 20
	maxEntryRecords = 10_000
	maxWait         = 30 * time.Second

	// maxFetchBytes bounds the memory of one call: entries beyond it still get
	// their one record.
	maxFetchBytes = 64 << 20

	// maxTries bounds how often rows are read again that chunks moved away
	// from. Once is enough unless they move each time.
	maxTries = 16
)

// Fetch reads from offsets on and parks until there is enough. It returns the
// error of ctx when that ends first.
func (b *Broker) Fetch(ctx context.Context, t Tenant, r FetchRequest) ([]FetchResult, error) {
	if len(r.Entries) > MaxEntries {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooMany, len(r.Entries), MaxEntries)
	}
	for i := range r.Entries {
		if r.Entries[i].Offset < 0 {
			return nil, fmt.Errorf("%w: offset %d is negative", ErrBadRequest, r.Entries[i].Offset)
		}
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	f := fetch{broker: b, tenant: t, entries: make([]fetchEntry, len(r.Entries))}
	for i := range f.entries {
		f.entries[i].ask = &r.Entries[i]
	}
	if err := f.look(); err != nil {
		return nil, err
	}
	wait := min(r.MaxWait, maxWait)
	if !f.answerable(r.MinBytes) && wait > 0 && len(f.entries) > 0 {
		if err := f.park(ctx, wait, r.MinBytes); err != nil {
			return nil, err
		}
	}
	return f.results(), nil
}

// fetch is one call on its way.
type fetch struct {
	broker  *Broker
	tenant  Tenant
	entries []fetchEntry
	total   int64 // payload bytes gathered
	counted int64 // the same, each record counting at least 1
	failed  bool  // an entry has an error marker

	signal waiter // set while parked
}

type fetchEntry struct {
	ask    *FetchEntry
	result FetchResult
	bytes  int64 // payload bytes of result

	queue   *queue // what result was read from
	part    *partition
	watched watchable
}

func (f *fetch) answerable(minBytes int) bool {
	return f.failed || minBytes <= 0 || f.counted >= int64(minBytes)
}

// park waits until the call is answerable, wait has passed, or ctx or the
// broker ends.
func (f *fetch) park(ctx context.Context, wait time.Duration, minBytes int) error {
	f.signal = make(waiter, 1)
	defer f.unwatch()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		// Watch first and look then, or an append in between is missed.
		if err := f.look(); err != nil {
			return err
		}
		if f.answerable(minBytes) {
			return nil
		}
		select {
		case <-f.signal:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-f.broker.closing:
			return ErrClosed
		}
	}
}

func (f *fetch) unwatch() {
	for i := range f.entries {
		if w := f.entries[i].watched; w != nil {
			w.unwatch(f.signal)
		}
	}
}

// look brings every entry up to date: it reads on from where it was.
func (f *fetch) look() error {
	for i := range f.entries {
		e := &f.entries[i]
		err := errMoved
		for tries := 0; tries < maxTries && errors.Is(err, errMoved); tries++ {
			f.find(e)
			err = f.lookAt(e)
		}
		if err != nil {
			return fmt.Errorf("read %s/%s: %w", e.ask.Queue, e.ask.Partition, err)
		}
		f.failed = f.failed || e.result.Error != NoError
	}
	return nil
}

// find looks up what an entry names, and watches it while the call is parked.
func (f *fetch) find(e *fetchEntry) {
	q := f.broker.catalog.find(f.tenant, e.ask.Queue)
	if q != e.queue {
		f.forget(e)
		e.queue = q
	}
	if q == nil {
		return
	}
	if e.part == nil {
		if f.signal != nil {
			f.watch(e, q)
		}
		e.part = q.partition(e.ask.Partition)
	}
	if e.part != nil && f.signal != nil {
		f.watch(e, e.part)
	}
}

// forget drops what was read from a queue that is gone.
func (f *fetch) forget(e *fetchEntry) {
	f.total -= e.bytes
	for i := range e.result.Records {
		f.counted -= max(1, int64(len(e.result.Records[i].Payload)))
	}
	if e.watched != nil {
		e.watched.unwatch(f.signal)
	}
	*e = fetchEntry{ask: e.ask}
}

func (f *fetch) watch(e *fetchEntry, w watchable) {
	if e.watched == w {
		return
	}
	if e.watched != nil {
		e.watched.unwatch(f.signal)
	}
	w.watch(f.signal)
	e.watched = w
}

// lookAt reads one entry.
func (f *fetch) lookAt(e *fetchEntry) error {
	e.result.Error = NoError
	if e.queue == nil {
		e.result = FetchResult{Error: UnknownTopicOrPartition}
		return nil
	}
	var start, next int64
	if e.part != nil {
		start, next = e.part.bounds()
	}
	e.result.LogStartOffset, e.result.HighWatermark = start, next
	had := len(e.result.Records)
	if had == 0 && e.ask.Offset < start || e.ask.Offset > next {
		e.result.Error = OffsetOutOfRange
		return nil
	}
	from := e.ask.Offset + int64(had)
	if e.part == nil || from >= next || from < start { // what was gathered stays good
		return nil
	}
	maxBytes := int64(min(max(e.ask.MaxBytes, 1), maxEntryBytes)) - e.bytes
	maxBytes = min(maxBytes, maxFetchBytes-f.total)
	if had == 0 {
		maxBytes = max(maxBytes, 1)
	}
	if maxBytes <= 0 {
		return nil
	}
	s := span{part: e.part, from: from, to: next, maxBytes: maxBytes, maxRecords: maxEntryRecords - had}
	records, err := f.broker.read(s, e.result.Records)
	e.result.Records = records
	for i := had; i < len(records); i++ {
		n := int64(len(records[i].Payload))
		e.bytes += n
		f.total += n
		f.counted += max(1, n)
	}
	return err
}

func (f *fetch) results() []FetchResult {
	list := make([]FetchResult, len(f.entries))
	for i := range f.entries {
		list[i] = f.entries[i].result
	}
	return list
}
