package api

// ListOffsets (2), versions 1–10 (KIP-79, KIP-98, KIP-207, KIP-320, KIP-405, KIP-734, KIP-1005, KIP-1075). −1 is the
// high watermark, −2 the log start; both come from one probe that reads no
// record. A time gives the first record appended at or after it (the cell's
// clock, not the producer's), with that append's time; later than the newest
// append, or on a cell without the look-up, it is −1/−1 without an error. A
// look-up that fails is retriable, never −1, which would send a consumer to the
// end. From version 7 on −3 is the last of the records appended latest, with that
// time. −4 (from 8 on), the earliest record that is not in remote storage, is the
// log start; −5 (from 9 on), the latest one that is, is −1: nothing is remote. Each
// of them below its version, and every other negative time, is UNSUPPORTED_VERSION
// (35), as at an Apache broker. The time limit of a request (from version 10 on)
// is for look-ups in remote storage.

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/proxyclient"
)

const (
	latestOffset   = -1
	earliestOffset = -2
	maxTimestamp   = -3
	earliestLocal  = -4
	latestTiered   = -5
)

// knownTime reports whether a version has a time that is not a time.
func knownTime(ts int64, version int16) bool {
	switch ts {
	case maxTimestamp:
		return version >= 7
	case earliestLocal:
		return version >= 8
	case latestTiered:
		return version >= 9
	}
	return ts >= earliestOffset
}

// offsetsQuery is one ListOffsets on its way.
type offsetsQuery struct {
	h       *Handlers
	resp    *kmsg.ListOffsetsResponse
	entries []proxyclient.FetchEntry
	wanted  []int64 // timestamps, by entry
	answers []*kmsg.ListOffsetsResponseTopicPartition
	last    []int // entries of which the last record is wanted
}

func (h *Handlers) listOffsets(ctx context.Context, call Call, req *kmsg.ListOffsetsRequest) (*kmsg.ListOffsetsResponse, error) {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	q := &offsetsQuery{h: h, resp: resp}
	q.check(ctx, call, req)
	for lo := 0; lo < len(q.entries); lo += maxFetchEntries {
		q.bounds(ctx, call, lo, min(lo+maxFetchEntries, len(q.entries)))
	}
	q.newest(ctx, call)
	q.times(ctx, call)
	return resp, nil
}

// check makes the response in request order and lists what the cell is asked.
func (q *offsetsQuery) check(ctx context.Context, call Call, req *kmsg.ListOffsetsRequest) {
	topics := q.h.readableTopics(ctx, call)
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	q.entries = make([]proxyclient.FetchEntry, 0, n)
	q.wanted, q.answers = make([]int64, 0, n), make([]*kmsg.ListOffsetsResponseTopicPartition, 0, n)
	q.resp.Topics = make([]kmsg.ListOffsetsResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := &req.Topics[i], &q.resp.Topics[i]
		rt.Default()
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(t.Partitions))
		topic := topics.named(t.Topic)
		for j := range t.Partitions {
			p, rp := &t.Partitions[j], &rt.Partitions[j]
			rp.Default()
			rp.Partition, rp.Timestamp, rp.Offset, rp.LeaderEpoch = p.Partition, -1, -1, noEpoch
			switch {
			case topic.code != 0, p.Partition < 0, p.Partition >= topic.width:
				rp.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case !knownTime(p.Timestamp, req.Version):
				rp.ErrorCode = kerr.UnsupportedVersion.Code
			default:
				q.entries = append(q.entries, proxyclient.FetchEntry{
					Queue: t.Topic, Partition: p.Partition, Offset: boundsProbe, MaxBytes: 1,
				})
				q.wanted = append(q.wanted, p.Timestamp)
				q.answers = append(q.answers, rp)
			}
		}
	}
}

// bounds answers the two ends of the log, and finds out for the times whether
// the topic is there at all.
func (q *offsetsQuery) bounds(ctx context.Context, call Call, lo, hi int) {
	results, err := q.h.cfg.Cell.Fetch(ctx, call.Scope, q.entries[lo:hi], 0, 0, nil, nil)
	if err != nil {
		q.fail(lo, hi, err)
		return
	}
	for i, res := range results {
		a := q.answers[lo+i]
		switch res.Error {
		case proxyclient.EntryOK, proxyclient.EntryOffsetOutOfRange:
		case proxyclient.EntryUnknownTopicOrPartition:
			a.ErrorCode = kerr.UnknownTopicOrPartition.Code
			continue
		default:
			a.ErrorCode = kerr.UnknownServerError.Code
			continue
		}
		switch q.wanted[lo+i] {
		case latestOffset:
			a.Offset = res.HighWatermark
		case earliestOffset, earliestLocal:
			a.Offset = res.LogStart
		case maxTimestamp:
			if res.HighWatermark > res.LogStart {
				q.last = append(q.last, lo+i)
				q.entries[lo+i].Offset = res.HighWatermark - 1
			}
		}
	}
}

// newest answers with the last record of each log that has one: append times
// never go back.
func (q *offsetsQuery) newest(ctx context.Context, call Call) {
	for index := range slices.Chunk(q.last, maxFetchEntries) {
		entries := make([]proxyclient.FetchEntry, len(index))
		for k, i := range index {
			entries[k] = q.entries[i]
		}
		results, err := q.h.cfg.Cell.Fetch(ctx, call.Scope, entries, 0, 0, nil, nil)
		if err != nil {
			q.resp.ThrottleMillis = max(q.resp.ThrottleMillis, throttleOf(err))
		}
		for k, i := range index {
			a := q.answers[i]
			switch {
			case err != nil:
				a.ErrorCode = readCodes.of(err).code
			case results[k].Error != proxyclient.EntryOK: // it went meanwhile
				a.ErrorCode = kerr.NotLeaderForPartition.Code
			default:
				a.Offset = entries[k].Offset
				if at := results[k].Appended; at > 0 {
					a.Timestamp = at
				}
			}
		}
	}
}

// times looks up the concrete timestamps.
func (q *offsetsQuery) times(ctx context.Context, call Call) {
	var asked []proxyclient.TimeQuery
	var index []int
	flush := func() {
		if len(asked) > 0 {
			q.timesChunk(ctx, call, asked, index)
			asked, index = asked[:0], index[:0]
		}
	}
	for i, ts := range q.wanted {
		if ts < 0 || q.answers[i].ErrorCode != 0 {
			continue
		}
		e := q.entries[i]
		asked = append(asked, proxyclient.TimeQuery{Queue: e.Queue, Partition: e.Partition, Timestamp: ts})
		index = append(index, i)
		if len(asked) == maxFetchEntries {
			flush()
		}
	}
	flush()
}

func (q *offsetsQuery) timesChunk(ctx context.Context, call Call, asked []proxyclient.TimeQuery, index []int) {
	answers, err := q.h.cfg.Cell.OffsetsForTimes(ctx, call.Scope, asked)
	if errors.Is(err, proxyclient.ErrNoTimes) {
		return // −1/−1: this cell cannot say
	}
	for k, i := range index {
		a := q.answers[i]
		switch {
		case err != nil:
			a.ErrorCode = readCodes.of(err).code
		case answers[k].Error == proxyclient.EntryUnknownTopicOrPartition:
			a.ErrorCode = kerr.UnknownTopicOrPartition.Code
		case answers[k].Error != proxyclient.EntryOK:
			a.ErrorCode = kerr.UnknownServerError.Code
		default:
			a.Offset, a.Timestamp = answers[k].Offset, answers[k].Timestamp
		}
	}
	if err != nil {
		q.resp.ThrottleMillis = max(q.resp.ThrottleMillis, throttleOf(err))
	}
}

func (q *offsetsQuery) fail(lo, hi int, err error) {
	o := readCodes.of(err)
	q.resp.ThrottleMillis = max(q.resp.ThrottleMillis, o.throttle)
	for _, a := range q.answers[lo:hi] {
		a.ErrorCode = o.code
	}
}
