package api

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// Versions of the Fetch response.
const (
	firstFetchStart    = 5  // the log's start
	firstFetchReplica  = 11 // KIP-392
	firstFetchFlexible = 12
)

// fetchEncoder writes a Fetch response as kmsg's AppendTo does, except that the
// batches stay where they are: an answer has tens of megabytes, and they have
// been copied once when they were made. It writes what fetch answers with, and so
// no aborted transactions, and none of the tagged fields that speak of other
// brokers.
type fetchEncoder struct {
	out      []byte
	lent     []wire.Lent
	version  int16
	flexible bool
}

// appendFetch appends resp to out, and its batches to lent.
func appendFetch(out []byte, lent []wire.Lent, resp *kmsg.FetchResponse) ([]byte, []wire.Lent) {
	e := fetchEncoder{out: out, lent: slices.Grow(lent, batchesOf(resp)), version: resp.Version, flexible: resp.Version >= firstFetchFlexible}
	e.int32(resp.ThrottleMillis)
	if e.version >= firstSessions {
		e.int16(resp.ErrorCode)
		e.int32(resp.SessionID)
	}
	e.length(len(resp.Topics), math.MaxUint32)
	for i := range resp.Topics {
		e.topic(&resp.Topics[i])
	}
	e.noTags()
	return e.out, e.lent
}

// batchesOf is how many partitions of an answer have records.
func batchesOf(resp *kmsg.FetchResponse) (n int) {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if len(resp.Topics[i].Partitions[j].RecordBatches) > 0 {
				n++
			}
		}
	}
	return n
}

func (e *fetchEncoder) topic(t *kmsg.FetchResponseTopic) {
	if e.version >= firstFetchIDs {
		e.out = append(e.out, t.TopicID[:]...)
	} else {
		e.length(len(t.Topic), math.MaxUint16)
		e.out = append(e.out, t.Topic...)
	}
	e.length(len(t.Partitions), math.MaxUint32)
	for i := range t.Partitions {
		e.partition(&t.Partitions[i])
	}
	e.noTags()
}

func (e *fetchEncoder) partition(p *kmsg.FetchResponseTopicPartition) {
	e.int32(p.Partition)
	e.int16(p.ErrorCode)
	e.int64(p.HighWatermark)
	e.int64(p.LastStableOffset)
	if e.version >= firstFetchStart {
		e.int64(p.LogStartOffset)
	}
	e.length(0, math.MaxUint32) // aborted transactions
	if e.version >= firstFetchReplica {
		e.int32(p.PreferredReadReplica)
	}
	e.length(len(p.RecordBatches), math.MaxUint32)
	if len(p.RecordBatches) > 0 {
		e.lent = append(e.lent, wire.Lent{At: len(e.out), Bytes: p.RecordBatches})
	}
	e.noTags()
}

// length writes how long something is that is not null. most says how wide its
// field is where the version has no varints for it.
func (e *fetchEncoder) length(n int, most uint32) {
	switch {
	case e.flexible:
		e.out = binary.AppendUvarint(e.out, uint64(n)+1) // 0 is null (KIP-482)
	case most == math.MaxUint16:
		e.int16(int16(n))
	default:
		e.int32(int32(n))
	}
}

func (e *fetchEncoder) noTags() {
	if e.flexible {
		e.out = append(e.out, 0)
	}
}

func (e *fetchEncoder) int16(n int16) { e.out = binary.BigEndian.AppendUint16(e.out, uint16(n)) }
func (e *fetchEncoder) int32(n int32) { e.out = binary.BigEndian.AppendUint32(e.out, uint32(n)) }
func (e *fetchEncoder) int64(n int64) { e.out = binary.BigEndian.AppendUint64(e.out, uint64(n)) }
