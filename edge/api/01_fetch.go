package api

// Fetch (1), versions 4–17 (KIP-74, KIP-227, KIP-392, KIP-482, KIP-516). One uncompressed
// batch of magic 2 per partition; only committed records exist, so both
// isolation levels answer alike and the last stable offset is the high
// watermark. A throttled cell is an empty success with throttle_time_ms. The
// codes are those the Java consumer expects here, no others.
//
// From version 7 on there are fetch sessions: a session belongs to its
// connection, and an id that this one does not have is 70. What goes on with a
// session is answered with what has changed: records, bounds, errors. From
// version 13 on topics are named by id: one that this tenant has no topic for is
// 100, and 6 while the listing cannot be read.

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/session"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// firstFetchIDs is the version from which a request names topics by id.
const firstFetchIDs = 13

const (
	maxFetchEntries = 1024    // of one cell call
	defaultEntry    = 1 << 20 // bytes of one entry where the client sets no limit
	maxEntry        = 8 << 20
	minSharedEntry  = 64 << 10
	maxPoll         = 30 * time.Second
	boundsProbe     = math.MaxInt64 // an offset no log holds: answered with bounds
)

func (h *Handlers) fetch(ctx context.Context, call Call, req *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	if h.cfg.Sessions == nil || req.Version < firstSessions {
		h.fetchAll(ctx, call, req, resp)
		return resp, nil
	}
	if !goesOn(req) {
		h.endSession(call.Conn, req.SessionID)
		h.fetchAll(ctx, call, req, resp)
		if req.SessionEpoch == session.New {
			h.open(call.Conn, req, resp)
		}
		return resp, nil
	}
	s, refusal := h.resume(call.Conn, req)
	if s == nil {
		if refusal != nil {
			resp.ErrorCode = refusal.Code
		}
		return resp, nil
	}
	defer h.cfg.Sessions.Done(s)
	everything(s, req)
	h.fetchAll(ctx, call, req, resp)
	onlyChanges(s, resp)
	resp.SessionID = s.ID
	return resp, nil
}

// fetchAll answers every partition of a request.
func (h *Handlers) fetchAll(ctx context.Context, call Call, req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	f := h.newFetch(req, resp)
	f.check(h.readableTopics(ctx, call))
	f.read(call.Conn.Poll, call)
}

// fetching is one Fetch on its way.
type fetching struct {
	h       *Handlers
	req     *kmsg.FetchRequest
	resp    *kmsg.FetchResponse
	entries []proxyclient.FetchEntry
	answers []*kmsg.FetchResponseTopicPartition // by entry
	waits   bool                                // every partition can be waited for
}

// newFetch makes the response in request order.
func (h *Handlers) newFetch(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) *fetching {
	f := &fetching{h: h, req: req, resp: resp, waits: true}
	resp.Topics = make([]kmsg.FetchResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := &req.Topics[i], &resp.Topics[i]
		rt.Default()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.FetchResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			rp := &rt.Partitions[j]
			rp.Default()
			rp.Partition = t.Partitions[j].Partition
			rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = -1, -1, -1
			rp.PreferredReadReplica = -1
			rp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
			rp.RecordBatches = []byte{}
		}
	}
	return f
}

// check answers what needs no call and lists the rest as entries.
func (f *fetching) check(topics readable) {
	n := 0
	for i := range f.req.Topics {
		n += len(f.req.Topics[i].Partitions)
	}
	f.entries = make([]proxyclient.FetchEntry, 0, n)
	f.answers = make([]*kmsg.FetchResponseTopicPartition, 0, n)
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		topic := topics.named(t.Topic)
		if f.req.Version >= firstFetchIDs {
			topic = topics.identified(t.TopicID)
			f.resp.ThrottleMillis = max(f.resp.ThrottleMillis, topics.throttle)
		}
		for j := range t.Partitions {
			p, rp := &t.Partitions[j], &f.resp.Topics[i].Partitions[j]
			switch {
			case topic.code != 0:
				rp.ErrorCode = topic.code
			case topic.later: // empty, with the time to come back
			case p.Partition < 0, p.Partition >= topic.width:
				rp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case p.FetchOffset < 0:
				rp.ErrorCode = kerr.OffsetOutOfRange.Code // lets auto.offset.reset act
			default:
				f.entries = append(f.entries, proxyclient.FetchEntry{
					Queue: topic.name, Partition: p.Partition, Offset: p.FetchOffset,
					MaxBytes: entryBytes(p.PartitionMaxBytes, f.req.MaxBytes),
				})
				f.answers = append(f.answers, rp)
				continue
			}
			f.waits = false
		}
	}
	f.share()
}

func entryBytes(partition, request int32) int {
	n := int32(math.MaxInt32)
	if partition > 0 {
		n = partition
	}
	if request > 0 {
		n = min(n, request)
	}
	if n == math.MaxInt32 {
		n = defaultEntry
	}
	return int(min(n, maxEntry))
}

// share keeps a wide fetch from asking the cell for more than one response holds,
// which would be read and thrown away: beyond that the entries share it. The cell
// counts payloads, a half more than the records that are made of them.
func (f *fetching) share() {
	if len(f.entries) == 0 {
		return
	}
	each := max(f.budget()*3/2/len(f.entries), minSharedEntry)
	for i := range f.entries {
		f.entries[i].MaxBytes = min(f.entries[i].MaxBytes, each)
	}
}

// budget is how many bytes of records the response may hold.
func (f *fetching) budget() int {
	if f.req.MaxBytes > 0 {
		return min(int(f.req.MaxBytes), f.h.cfg.FetchResponse)
	}
	return f.h.cfg.FetchResponse
}

// read fetches the entries, at most maxFetchEntries a call. Only the first call
// may wait; once the response is full the rest are read for their bounds alone.
func (f *fetching) read(ctx context.Context, call Call) {
	fill := &filler{budget: f.budget(), memory: call.Conn.borrow(&f.h.memory), room: &call.Conn.answer}
	defer f.finish(fill)
	for lo := 0; lo < len(f.entries); lo += maxFetchEntries {
		hi := min(lo+maxFetchEntries, len(f.entries))
		f.readChunk(ctx, call, fill, lo, hi)
	}
}

// finish hands the batches out. An answer that could not be given for want of
// memory asks the client to come back later.
func (f *fetching) finish(fill *filler) {
	fill.finish()
	if fill.starved && len(fill.made) == 0 {
		f.resp.ThrottleMillis = max(f.resp.ThrottleMillis, int32(minThrottle.Milliseconds()))
	}
}

func (f *fetching) readChunk(ctx context.Context, call Call, fill *filler, lo, hi int) {
	entries := f.entries[lo:hi]
	wait, minBytes := time.Duration(0), 0
	if lo == 0 && f.waits {
		wait = min(max(time.Duration(f.req.MaxWaitMillis)*time.Millisecond, 0), maxPoll)
		minBytes = max(int(f.req.MinBytes), 0)
	}
	full := fill.full()
	if full {
		for i := range entries {
			entries[i].Offset, entries[i].MaxBytes = boundsProbe, 1
		}
	}
	fill.start(f.answers[lo:hi])
	results, err := f.h.cfg.Cell.Fetch(ctx, call.Scope, entries, wait, minBytes, fill.record, nil)
	fill.endEntry()
	if err != nil {
		f.fail(ctx, f.answers[lo:hi], err)
		return
	}
	for i, res := range results {
		f.settle(f.answers[lo+i], res, full)
	}
}

// fail answers a chunk whose call failed. A throttled cell is not an error to a
// consumer: it gets nothing, and when to come back. Nor is a poll that ended
// because the gateway drains.
func (f *fetching) fail(ctx context.Context, answers []*kmsg.FetchResponseTopicPartition, err error) {
	o := readCodes.of(err)
	f.resp.ThrottleMillis = max(f.resp.ThrottleMillis, o.throttle)
	if kindOf(err) == throttled || ctx.Err() != nil {
		o.code = 0
	}
	for _, a := range answers {
		a.ErrorCode = o.code
	}
}

func (f *fetching) settle(a *kmsg.FetchResponseTopicPartition, res proxyclient.FetchResult, probe bool) {
	switch res.Error {
	case proxyclient.EntryOK:
	case proxyclient.EntryOffsetOutOfRange:
		if !probe { // the answer a probe expects
			a.ErrorCode = kerr.OffsetOutOfRange.Code
		}
	case proxyclient.EntryUnknownTopicOrPartition:
		a.ErrorCode = kerr.UnknownTopicOrPartition.Code
	default:
		a.ErrorCode = kerr.UnknownServerError.Code
		f.h.cfg.Log.Error("the cell answered a fetch with an unknown marker")
	}
	if a.ErrorCode != 0 {
		return
	}
	a.HighWatermark, a.LastStableOffset, a.LogStartOffset = res.HighWatermark, res.HighWatermark, res.LogStart
}
