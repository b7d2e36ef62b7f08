package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"time"
)

// A blob holds the records of one chunk: the format, the message id of the
// first record (the ids of the others follow by counting up), then per record
// the length of the payload and the code of the transaction id as varints, the
// transaction id, the payload. The code is 0 for no id, keyFollows for the id of
// the record before with the next sequence, else the length of the id and 1 more
// (in the older format the length; nothing follows there).
const (
	oldBlobFormat = 1
	blobFormat    = 2
	blobHeader    = 1 + 16

	keyFollows = 1

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

func appendRecord(b []byte, item *PushItem, follows bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(item.Payload)))
	switch n := len(item.TransactionID); {
	case follows:
		b = append(b, keyFollows)
	case n == 0:
		b = append(b, 0)
	default:
		b = binary.AppendUvarint(b, uint64(n)+1)
		b = append(b, item.TransactionID...)
	}
	return append(b, item.Payload...)
}

// recordBytes is the most a record takes.
func recordBytes(item *PushItem) int {
	return varintBytes(len(item.Payload)) + varintBytes(len(item.TransactionID)+1) +
		len(item.TransactionID) + len(item.Payload)
}

func varintBytes(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// blobReader walks the records of a blob.
type blobReader struct {
	decoder
	format byte
	first  messageID
	n      int64
	key    []byte // the last transaction id that is spelled out
	plus   uint64 // how many sequences the current one is behind it
}

func readBlob(b []byte) (blobReader, error) {
	if len(b) < blobHeader || b[0] != blobFormat && b[0] != oldBlobFormat {
		return blobReader{}, fmt.Errorf("a chunk of %d bytes has an unknown format", len(b))
	}
	first := messageID{hi: binary.BigEndian.Uint64(b[1:]), lo: binary.BigEndian.Uint64(b[9:])}
	return blobReader{decoder: decoder{b: b[blobHeader:]}, format: b[0], first: first}, nil
}

// skip passes over n records.
func (r *blobReader) skip(n int64) {
	for ; n > 0 && r.err == nil; n-- {
		r.record()
	}
}

// record reads a record up to its payload, which it returns.
func (r *blobReader) record() []byte {
	payload, code := r.uint(), r.uint()
	switch {
	case r.format == oldBlobFormat || code == 0:
		r.key, r.plus = r.bytes(code), 0
	case code == keyFollows:
		r.plus++
	default:
		r.key, r.plus = r.bytes(code-1), 0
	}
	r.n++
	return r.bytes(payload)
}

// transactionID is that of the record read last.
func (r *blobReader) transactionID() string {
	if r.plus == 0 {
		return string(r.key)
	}
	at := bytes.LastIndexByte(r.key, ':') + 1
	sequence, err := strconv.ParseUint(string(r.key[at:]), 10, 64)
	if err != nil {
		r.fail()
		return ""
	}
	var room [64]byte
	return string(strconv.AppendUint(append(room[:0], r.key[:at]...), sequence+r.plus, 10))
}

// peek is the size of the next record's payload.
func (r *blobReader) peek() int {
	ahead := r.decoder
	return int(ahead.uint())
}

// next fills in all of a record that the blob knows. The payload aliases it.
func (r *blobReader) next(rec *Record) {
	rec.MessageID = r.first.plus(r.n).bytes()
	rec.Payload = r.record()
	rec.TransactionID = r.transactionID()
}
