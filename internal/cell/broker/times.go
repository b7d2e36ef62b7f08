package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OffsetsForTimes finds, per query, the first retained record that was
// appended at or after a time (cell-http §3.6).
func (b *Broker) OffsetsForTimes(ctx context.Context, t Tenant, queries []TimeQuery) ([]TimeResult, error) {
	if len(queries) > MaxEntries {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooMany, len(queries), MaxEntries)
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	list := make([]TimeResult, len(queries))
	for i := range queries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := errMoved
		for tries := 0; tries < maxTries && errors.Is(err, errMoved); tries++ {
			list[i], err = b.offsetForTime(t, &queries[i])
		}
		if err != nil {
			return nil, fmt.Errorf("search %s/%s: %w", queries[i].Queue, queries[i].Partition, err)
		}
	}
	return list, nil
}

func (b *Broker) offsetForTime(t Tenant, q *TimeQuery) (TimeResult, error) {
	r := TimeResult{Offset: -1}
	found := b.catalog.find(t, q.Queue)
	if found == nil {
		r.Error = UnknownTopicOrPartition
		return r, nil
	}
	p := found.partition(q.Partition)
	if p == nil {
		return r, nil
	}
	r.LogStartOffset, r.HighWatermark = p.bounds()
	c, ok, err := b.firstSince(p, r.LogStartOffset, r.HighWatermark, q.Time)
	if err != nil || !ok {
		return r, err
	}
	r.Offset, r.AppendTime = max(c.base, r.LogStartOffset), time.UnixMicro(c.time).UTC()
	return r, nil
}

// firstSince searches [start, next) for the first chunk appended at or after a
// time. Append times never decrease along a partition.
func (b *Broker) firstSince(p *partition, start, next int64, since time.Time) (first chunk, ok bool, err error) {
	at := since.UnixMicro()
	if since.After(time.UnixMicro(at)) {
		at++ // append times are whole microseconds
	}
	return b.firstChunkSince(p, start, next, at)
}

// firstChunkSince is firstSince by microseconds.
func (b *Broker) firstChunkSince(p *partition, start, next, at int64) (first chunk, ok bool, err error) {
	it, err := b.store.Rows(key1(chunkRows, p.uid), key1(chunkRows, p.uid+1))
	if err != nil {
		return chunk{}, false, err
	}
	for start < next && err == nil {
		middle := start + (next-start)/2
		if !it.SeekLT(key2(chunkRows, p.uid, uint64(middle)+1)) {
			err = errMoved
			break
		}
		var c chunk
		if c, err = decodeChunkRow(it.Key(), it.Value()); err != nil {
			break
		}
		if c.time >= at {
			first, ok, next = c, true, min(c.base, middle)
		} else {
			start = max(c.base+c.count, middle+1)
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return first, ok, err
}
