package broker

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"
)

// A blob holds the records of one chunk: the format, the message id of the
// first record (the ids of the others follow by counting up), then per record
// the length of the payload and of the transaction id as varints, the
// transaction id, the payload.
const (
	blobFormat = 1
	blobHeader = 1 + 16

	// chunkBytes is where a chunk ends and the next begins. It bounds what is
	// read for one record, against one index row per chunk.
	chunkBytes = 256 << 10
)

// messageID is a UUID of version 7 as two numbers.
type messageID struct{ hi, lo uint64 }

const (
	uuidRandom = 1<<62 - 1 // bits of lo that are random
	uuidRFC    = 2 << 62   // the variant, above them
)

// newMessageID begins a run of ids: adding small numbers gives more of them.
func newMessageID(now time.Time) messageID {
	ms := uint64(now.UnixMilli())
	return messageID{
		hi: ms<<16 | 7<<12 | rand.Uint64()&0xfff,
		lo: uuidRFC | rand.Uint64()&uuidRandom,
	}
}

func (m messageID) plus(n int64) messageID {
	return messageID{hi: m.hi, lo: uuidRFC | (m.lo+uint64(n))&uuidRandom}
}

func (m messageID) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], m.hi)
	binary.BigEndian.PutUint64(b[8:], m.lo)
	return b
}

func appendBlobHeader(b []byte, first messageID) []byte {
	b = append(b, blobFormat)
	b = binary.BigEndian.AppendUint64(b, first.hi)
	return binary.BigEndian.AppendUint64(b, first.lo)
}

func appendRecord(b []byte, item *PushItem) []byte {
	b = binary.AppendUvarint(b, uint64(len(item.Payload)))
	b = binary.AppendUvarint(b, uint64(len(item.TransactionID)))
	b = append(b, item.TransactionID...)
	return append(b, item.Payload...)
}

func recordBytes(item *PushItem) int {
	return varintBytes(len(item.Payload)) + varintBytes(len(item.TransactionID)) +
		len(item.TransactionID) + len(item.Payload)
}

func varintBytes(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// blobReader walks the records of a blob.
type blobReader struct {
	decoder
	first messageID
	n     int64
}

func readBlob(b []byte) (blobReader, error) {
	if len(b) < blobHeader || b[0] != blobFormat {
		return blobReader{}, fmt.Errorf("a chunk of %d bytes has an unknown format", len(b))
	}
	first := messageID{hi: binary.BigEndian.Uint64(b[1:]), lo: binary.BigEndian.Uint64(b[9:])}
	return blobReader{decoder: decoder{b: b[blobHeader:]}, first: first}, nil
}

// skip passes over n records.
func (r *blobReader) skip(n int64) {
	for ; n > 0 && r.err == nil; n-- {
		payload, tx := r.uint(), r.uint()
		r.bytes(tx)
		r.bytes(payload)
		r.n++
	}
}

// peek is the size of the next record's payload.
func (r *blobReader) peek() int {
	ahead := r.decoder
	return int(ahead.uint())
}

// next fills in all of a record that the blob knows. The payload aliases it.
func (r *blobReader) next(rec *Record) {
	payload, tx := r.uint(), r.uint()
	rec.TransactionID = string(r.bytes(tx))
	rec.Payload = r.bytes(payload)
	rec.MessageID = r.first.plus(r.n).bytes()
	r.n++
}
