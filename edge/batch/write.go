package batch

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// maxBatch is the largest batch a length field can tell, in bytes.
const maxBatch = math.MaxInt32

// nullLength is the length that stands for a null key or value.
const nullLength = -1

// Writer builds one uncompressed batch, appended to a buffer of the caller's:
// CreateTime, producer id, epoch and sequence −1, leader epoch −1. Gaps between
// offsets become deltas. Reset comes before the first Add; nothing is allocated
// but the buffer's own growth. It is not safe for concurrent use.
type Writer struct {
	dst        []byte
	start      int // where the batch begins in dst
	count      int
	done       bool
	baseOffset int64
	lastOffset int64
	baseTime   int64
	maxTime    int64
}

// Reset starts a new batch at the end of dst.
func (w *Writer) Reset(dst []byte) {
	*w = Writer{dst: dst, start: len(dst)}
}

// Room is how many bytes can be added before the buffer grows.
func (w *Writer) Room() int { return cap(w.dst) - len(w.dst) }

// Move goes on with the batch at the end of dst, to which what there is of it is
// copied.
func (w *Writer) Move(dst []byte) {
	open := w.dst[w.start:]
	w.start = len(dst)
	w.dst = append(dst, open...)
}

// Len is the size of the batch so far in bytes, its header included; 0 while it
// has no record.
func (w *Writer) Len() int { return len(w.dst) - w.start }

// Count is the number of records so far.
func (w *Writer) Count() int { return w.count }

// Size is how many bytes Add(r) would add: exact, with the batch's header if r
// is the first record.
func (w *Writer) Size(r *Record) int {
	body := w.bodySize(r)
	size := varintLen(int64(body)) + body
	if w.count == 0 {
		size += headerSize
	}
	return size
}

// Add appends one record. It returns false, and writes nothing, when the batch
// cannot hold the record: its offset is negative, not above the one before, or
// more than an int32 from the first; or the batch would outgrow its length
// field. The caller then finishes this batch and starts another. A nil header
// key is written as an empty one, since Kafka has no null there.
func (w *Writer) Add(r *Record) (ok bool) {
	if w.done || r.Offset < 0 {
		return false
	}
	if w.count > 0 && (r.Offset <= w.lastOffset || r.Offset-w.baseOffset > math.MaxInt32) {
		return false
	}
	body := w.bodySize(r)
	if body > maxBatch-headerSize-maxVarint32-w.Len() {
		return false
	}
	if w.count == 0 {
		w.begin(r)
	}
	w.put(r, body)
	w.lastOffset = r.Offset
	w.maxTime = max(w.maxTime, r.Timestamp)
	w.count++
	return true
}

// begin leaves room for the header and takes the bases of the deltas from r.
func (w *Writer) begin(r *Record) {
	var room [headerSize]byte
	w.dst = append(w.dst, room[:]...)
	w.baseOffset = r.Offset
	w.baseTime = r.Timestamp
	w.maxTime = r.Timestamp
}

func (w *Writer) put(r *Record, body int) {
	b := binary.AppendVarint(w.dst, int64(body))
	b = append(b, 0) // record attributes: no bit is in use
	b = binary.AppendVarint(b, r.Timestamp-w.baseTime)
	b = binary.AppendVarint(b, r.Offset-w.baseOffset)
	b = appendNullable(b, r.Key)
	b = appendNullable(b, r.Value)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		b = binary.AppendVarint(b, int64(len(h.Key)))
		b = append(b, h.Key...)
		b = appendNullable(b, h.Value)
	}
	w.dst = b
}

// bodySize is the record's length without the varint that tells it.
func (w *Writer) bodySize(r *Record) int {
	var offsetDelta, timeDelta int64
	if w.count > 0 {
		offsetDelta, timeDelta = r.Offset-w.baseOffset, r.Timestamp-w.baseTime
	}
	n := 1 + varintLen(timeDelta) + varintLen(offsetDelta)
	n += nullableSize(r.Key) + nullableSize(r.Value) + varintLen(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintLen(int64(len(h.Key))) + len(h.Key) + nullableSize(h.Value)
	}
	return n
}

// Finish writes the header and returns the buffer with the batch appended; it
// is the buffer given to Reset, unchanged, if there is no record. Len and Count
// stay readable; Add refuses until the next Reset.
func (w *Writer) Finish() []byte {
	w.done = true
	if w.count == 0 {
		return w.dst
	}
	be, raw := binary.BigEndian, w.dst[w.start:]
	be.PutUint64(raw[offBaseOffset:], uint64(w.baseOffset))
	be.PutUint32(raw[offLength:], uint32(len(raw)-lengthEnd))
	be.PutUint32(raw[offLeaderEpoch:], math.MaxUint32) // −1: none
	raw[offMagic] = magicV2
	be.PutUint16(raw[offAttributes:], 0)
	be.PutUint32(raw[offLastOffsetDelta:], uint32(w.lastOffset-w.baseOffset))
	be.PutUint64(raw[offFirstTimestamp:], uint64(w.baseTime))
	be.PutUint64(raw[offMaxTimestamp:], uint64(w.maxTime))
	be.PutUint64(raw[offProducerID:], math.MaxUint64)
	be.PutUint16(raw[offProducerEpoch:], math.MaxUint16)
	be.PutUint32(raw[offBaseSequence:], math.MaxUint32)
	be.PutUint32(raw[offNumRecords:], uint32(w.count))
	be.PutUint32(raw[offCRC:], crc32.Checksum(raw[offAttributes:], castagnoli))
	return w.dst
}

func appendNullable(b, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(b, nullLength)
	}
	b = binary.AppendVarint(b, int64(len(v)))
	return append(b, v...)
}

func nullableSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintLen(int64(len(v))) + len(v)
}
