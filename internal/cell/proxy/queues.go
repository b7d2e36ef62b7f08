package proxy

import (
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// listQueues answers the queue list: the gateway's lanes, or the full rows
// (cell-http §3.1). Nothing is cached: a queue is listed as soon as its
// configure was answered.
func (p *Proxy) listQueues(c *call) *refusal {
	lanes := c.r.URL.Query().Get("stats") == "lanes"
	queues := p.broker.Queues(c.tenant())
	p.announce(c)
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"queues":[`)
	for i := range queues {
		if i > 0 {
			a.Comma()
		}
		q := &queues[i]
		a.RawStr(`{`)
		a.lane(q)
		a.RawStr(`,"partitions":`)
		a.int(int64(q.Partitions))
		if !lanes {
			messages, err := p.messages(c, q.Name)
			if err != nil {
				return p.abandon(c, a, "queues", err)
			}
			a.detail(q, messages)
		}
		a.RawStr(`}`)
		if lanes {
			// Full rows are gathered: a broker error may still come.
			a.flushIfFull()
		}
	}
	if lanes {
		a.RawStr(`],"stats":"lanes"}`)
	} else {
		kv := p.broker.KVStats(c.tenant())
		a.RawStr(`],"kvRows":`)
		a.int(kv.Rows)
		a.RawStr(`,"kvBytes":`)
		a.int(kv.Bytes)
		a.RawStr(`,"timerRows":0,"timerBytes":0}`)
	}
	a.finish()
	return nil
}

// abandon drops an answer of which nothing was sent.
func (p *Proxy) abandon(c *call, a *answer, what string, err error) *refusal {
	a.Reset()
	return p.failed(c, what, err)
}

// lane renders what every listing shows of a queue.
func (a *answer) lane(q *broker.Queue) {
	a.RawStr(`"id":`)
	a.Str(q.ID)
	a.RawStr(`,"name":`)
	a.Str(q.Name)
	a.RawStr(`,"queue":`)
	a.Str(q.Name)
	a.RawStr(`,"createdAt":`)
	a.time(q.CreatedAt, millis)
}

// detail renders what the full list adds. What a native group holds or has given
// up is that group's: here every record is pending.
func (a *answer) detail(q *broker.Queue, messages int64) {
	a.RawStr(`,"namespace":`)
	a.Str(q.Options.Namespace)
	a.RawStr(`,"task":`)
	a.Str(q.Options.Task)
	a.RawStr(`,"storage":"segments","segments":{},"messages":{"total":`)
	a.int(messages)
	a.RawStr(`,"pending":`)
	a.int(messages)
	a.RawStr(`,"processing":0,"completed":0,"deadLetter":0},"retainedBytes":`)
	a.int(q.RetainedBytes)
	a.RawStr(`,"options":`)
	a.options(&q.Options)
}

// messages counts a queue's readable records by asking for the bounds of its
// partitions.
func (p *Proxy) messages(c *call, queue string) (int64, error) {
	sizes, _ := p.broker.PartitionSizes(c.tenant(), queue)
	probes := make([]broker.FetchEntry, 0, min(len(sizes), maxEntries))
	var total int64
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(sizes)), maxEntries) {
		probes = probes[:0]
		for _, partition := range chunk {
			probes = append(probes, broker.FetchEntry{Queue: queue, Partition: partition, Offset: math.MaxInt64, MaxBytes: 1})
		}
		results, err := p.broker.Fetch(p.ctx(c), c.tenant(), broker.FetchRequest{Entries: probes})
		if err != nil {
			return 0, err
		}
		for i := range results {
			total += results[i].HighWatermark - results[i].LogStartOffset
		}
	}
	return total, nil
}

// showQueue answers one queue with its partitions (cell-http §3.9).
func (p *Proxy) showQueue(c *call) *refusal {
	q, ok := p.broker.Queue(c.tenant(), c.target.queue)
	if !ok {
		return queueNotFound()
	}
	messages, err := p.messages(c, q.Name)
	if err != nil {
		return p.failed(c, "queue", err)
	}
	sizes, _ := p.broker.PartitionSizes(c.tenant(), q.Name)
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{`)
	a.lane(&q)
	a.detail(&q, messages)
	a.RawStr(`,"partitions":[`)
	for i, name := range slices.Sorted(maps.Keys(sizes)) {
		if i > 0 {
			a.Comma()
		}
		a.RawStr(`{"name":`)
		a.Str(name)
		a.RawStr(`,"retainedBytes":`)
		a.int(sizes[name])
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]}`)
	a.finish()
	return nil
}

// queueSizes answers retained bytes by partition (cell-http §3.9).
func (p *Proxy) queueSizes(c *call) *refusal {
	sizes, ok := p.broker.PartitionSizes(c.tenant(), c.target.queue)
	if !ok {
		return queueNotFound()
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"queue":`)
	a.Str(c.target.queue)
	a.RawStr(`,"partitions":{`)
	for i, name := range slices.Sorted(maps.Keys(sizes)) {
		if i > 0 {
			a.Comma()
		}
		a.Str(name)
		a.RawStr(`:`)
		a.int(sizes[name])
		a.flushIfFull()
	}
	a.RawStr(`}}`)
	a.finish()
	return nil
}

func queueNotFound() *refusal {
	return fromBroker(http.StatusNotFound, "not_found", "Queue not found")
}

// deleteQueue removes a queue; an absent one is no error (cell-http §3.3).
func (p *Proxy) deleteQueue(c *call) *refusal {
	existed, err := p.broker.Delete(p.ctx(c), c.tenant(), c.target.queue)
	if err != nil {
		return p.failed(c, "delete", err)
	}
	p.forgetQueue(c, c.target.queue)
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"deleted":`)
	a.Bool(existed)
	a.RawStr(`,"existed":`)
	a.Bool(existed)
	a.RawStr(`,"queue":`)
	a.Str(c.target.queue)
	if !existed {
		a.RawStr(`,"message":"Queue not found, nothing was deleted"`)
	}
	a.RawStr(`}`)
	a.finish()
	return nil
}
