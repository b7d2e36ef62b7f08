package broker

import (
	"encoding/binary"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Rows of the index, by the first byte of the key. Uids and offsets are big
// endian, so that rows of one partition lie in order of their offsets.
//
//	'q' queue uid                      the queue
//	'p' queue uid, partition uid       the partition: name and floor
//	'c' partition uid, base offset     a chunk: where it lies and what is in it
//	'd' partition uid                  the chunks of a deleted partition are to be removed
//	'i' partition uid, producer, …     a range of deduplication keys, see dedup.go
//	'j' partition uid, hash, offset    one deduplication key
//	'k' tenant, namespace, 0, key      a row of a tenant's keys
//	'x' expiry µs, key of a 'k' row    that row expires
//	's' tenant                         what its keys take: rows, bytes
//	'g' queue uid, group               a native consumer group's subscription
//	'h' partition uid, group           what the group has settled there
//	'e' partition uid, offset, group   a dead letter of the group
//	'u'                                the next uid
//	'v'                                no version was given from here on
const (
	queueRows     = 'q'
	partitionRows = 'p'
	chunkRows     = 'c'
	purgeRows     = 'd'
	rangeRows     = 'i'
	singleRows    = 'j'
	kvRows        = 'k'
	expiryRows    = 'x'
	usageRows     = 's'
	groupRows     = 'g'
	cursorRows    = 'h'
	deadRows      = 'e'
	uidRow        = 'u'
	versionRow    = 'v'
)

// chunk is a run of records that one push appended to one partition. They lie
// in one blob of the log.
type chunk struct {
	base   int64 // offset of its first record
	count  int64
	bytes  int64 // payload bytes
	time   int64 // append time, µs since 1970
	before int64 // payload bytes ever appended to the partition before it
	ref    store.Ref
}

// chunkCharge is counted as live for a chunk beside its bytes: about what it
// costs to write it again. Without it, a segment full of tiny chunks would
// look sparse for ever.
const chunkCharge = 64

func (c *chunk) live() int64 { return int64(c.ref.Len) + chunkCharge }

func key1(kind byte, a uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, a)
}

func key2(kind byte, a, b uint64) []byte {
	k := make([]byte, 0, 17)
	k = binary.BigEndian.AppendUint64(append(k, kind), a)
	return binary.BigEndian.AppendUint64(k, b)
}

func appendChunkRow(b []byte, c *chunk) []byte {
	b = binary.AppendUvarint(b, c.ref.Segment)
	b = binary.AppendUvarint(b, uint64(c.ref.Pos))
	b = binary.AppendUvarint(b, uint64(c.ref.Len))
	b = binary.AppendUvarint(b, uint64(c.ref.CRC))
	b = binary.AppendUvarint(b, uint64(c.count))
	b = binary.AppendUvarint(b, uint64(c.bytes))
	b = binary.AppendUvarint(b, uint64(c.time))
	return binary.AppendUvarint(b, uint64(c.before))
}

func decodeChunkRow(key, value []byte) (chunk, error) {
	if len(key) != 17 {
		return chunk{}, errShort
	}
	d := decoder{b: value}
	c := chunk{base: int64(binary.BigEndian.Uint64(key[9:]))}
	c.ref = store.Ref{Segment: d.uint(), Pos: d.int(), Len: uint32(d.uint()), CRC: uint32(d.uint())}
	c.count, c.bytes, c.time, c.before = d.int(), d.int(), d.int(), d.int()
	return c, d.err
}

// floor is what a partition's row keeps for the time when no chunk is left to
// tell: it begins at start, and whatever was appended ends at next.
type floor struct {
	start, next, time, before int64
}

func appendPartitionRow(b []byte, name string, f floor) []byte {
	b = binary.AppendUvarint(b, uint64(f.start))
	b = binary.AppendUvarint(b, uint64(f.next))
	b = binary.AppendUvarint(b, uint64(f.time))
	b = binary.AppendUvarint(b, uint64(f.before))
	return appendString(b, name)
}

func decodePartitionRow(value []byte) (string, floor, error) {
	d := decoder{b: value}
	f := floor{start: d.int(), next: d.int(), time: d.int(), before: d.int()}
	name := d.string()
	return name, f, d.err
}
