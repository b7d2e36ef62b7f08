package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// fetch reads records by position, parking until there are enough
// (cell-http §3.5).
func (p *Proxy) fetch(c *call) *refusal {
	in, release := p.fetchBodies()
	defer release()
	if f := p.decodeInto(c, in.decodeFetch); f != nil {
		return f
	}
	var results []broker.FetchResult
	if len(in.entries) > 0 {
		var err error
		results, err = p.poll(c, broker.FetchRequest{Entries: in.entries, MaxWait: in.maxWait, MinBytes: in.min})
		if err != nil {
			return p.failed(c, "fetch", err)
		}
	}
	p.answerFetch(c, in.entries, results)
	return nil
}

// fetchBodies takes a decoder from the pool.
func (p *Proxy) fetchBodies() (in *fetchBody, release func()) {
	in, ok := p.fetches.Get().(*fetchBody)
	if !ok {
		in = new(fetchBody)
	}
	return in, func() {
		in.reset()
		p.fetches.Put(in)
	}
}

// decodeInto reads the body and decodes it. Nothing decoded may alias the
// body, which goes back before a long poll parks.
func (p *Proxy) decodeInto(c *call, decode func([]byte) *refusal) *refusal {
	body, f := p.readBody(c)
	if f != nil {
		return f
	}
	defer p.giveBack(body)
	return decode(body.b)
}

// poll waits at the broker until there is enough, the client leaves, or the
// server drains; in the last case the client gets what there is.
func (p *Proxy) poll(c *call, r broker.FetchRequest) ([]broker.FetchResult, error) {
	if r.MaxWait <= 0 || r.MinBytes <= 0 {
		return p.broker.Fetch(p.ctx(c), c.tenant(), r)
	}
	ctx, cancel := context.WithCancel(p.ctx(c))
	defer cancel()
	unhook := context.AfterFunc(p.draining, cancel)
	defer unhook()
	results, err := p.broker.Fetch(ctx, c.tenant(), r)
	if err == nil || ctx.Err() == nil || p.ctx(c).Err() != nil {
		return results, err
	}
	r.MaxWait = 0
	return p.broker.Fetch(p.ctx(c), c.tenant(), r)
}

// answerFetch renders the records of every entry, and its bounds, in the
// order they were asked for.
func (p *Proxy) answerFetch(c *call, entries []broker.FetchEntry, results []broker.FetchResult) {
	p.answerEntries(c, len(results), func(a *answer, i int) {
		r := &results[i]
		a.entryHead(entries[i].Queue, entries[i].Partition)
		a.RawStr(`,"records":[`)
		a.records(r.Records)
		a.RawStr(`]`)
		a.entryTail(r.HighWatermark, r.LogStartOffset, r.Error)
	})
}

// answerEntries renders n entries in the order they were asked for.
func (p *Proxy) answerEntries(c *call, n int, entry func(*answer, int)) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"entries":[`)
	for i := range n {
		if i > 0 {
			a.Comma()
		}
		entry(a, i)
	}
	a.RawStr(`]}`)
	a.finish()
}

// records renders the records of one entry. The records of one push share
// their time, so its text is made once for them.
func (a *answer) records(records []broker.Record) {
	var at time.Time
	var buf [len(millis)]byte
	text := buf[:0]
	for i := range records {
		r := &records[i]
		if i > 0 {
			a.Comma()
		}
		if len(text) == 0 || !at.Equal(r.AppendTime) {
			at = r.AppendTime
			text = at.UTC().AppendFormat(text[:0], millis)
		}
		a.RawStr(`{"offset":`)
		a.int(r.Offset)
		a.RawStr(`,"transactionId":`)
		a.transactionID(r.TransactionID, r.MessageID)
		a.RawStr(`,"payload":`)
		a.payload(r.Payload)
		a.RawStr(`,"ts":`)
		a.Raw(text)
		a.RawStr(`}`)
		a.flushIfFull()
	}
}

// entryHead opens an entry with the names it was asked by.
func (a *answer) entryHead(queue, partition string) {
	a.RawStr(`{"queue":`)
	a.Str(queue)
	a.RawStr(`,"partition":`)
	a.Str(partition)
}

// entryTail ends an entry. The bounds are there beside an error too; the marker
// is absent where nothing is wrong.
func (a *answer) entryTail(high, start int64, e broker.EntryError) {
	a.RawStr(`,"highWatermark":`)
	a.int(high)
	a.RawStr(`,"logStartOffset":`)
	a.int(start)
	switch e {
	case broker.UnknownTopicOrPartition:
		a.RawStr(`,"error":"UNKNOWN_TOPIC_OR_PARTITION"`)
	case broker.OffsetOutOfRange:
		a.RawStr(`,"error":"OFFSET_OUT_OF_RANGE"`)
	}
	a.RawStr(`}`)
}

// offsets finds the first record at or after a time, per entry
// (cell-http §3.6).
func (p *Proxy) offsets(c *call) *refusal {
	in, release := p.fetchBodies()
	defer release()
	if f := p.decodeInto(c, in.decodeTimes); f != nil {
		return f
	}
	var results []broker.TimeResult
	if len(in.times) > 0 {
		var err error
		if results, err = p.broker.OffsetsForTimes(p.ctx(c), c.tenant(), in.times); err != nil {
			return p.failed(c, "offsets for times", err)
		}
	}
	p.answerOffsets(c, in.times, results)
	return nil
}

// answerOffsets renders offset and time, both null where nothing is that late.
func (p *Proxy) answerOffsets(c *call, times []broker.TimeQuery, results []broker.TimeResult) {
	p.answerEntries(c, len(results), func(a *answer, i int) {
		r := &results[i]
		a.entryHead(times[i].Queue, times[i].Partition)
		if r.Offset < 0 {
			a.RawStr(`,"offset":null,"ts":null`)
		} else {
			a.RawStr(`,"offset":`)
			a.int(r.Offset)
			a.RawStr(`,"ts":`)
			a.time(r.AppendTime, micros)
		}
		a.entryTail(r.HighWatermark, r.LogStartOffset, r.Error)
	})
}
