package broker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// The meta of a log entry is a list of operations, each one kind byte, the
// length of its body as a varint and the body. They take effect together.
// Numbers are varints, texts have their length before them.
type opKind byte

const (
	opQueue     opKind = 1 // uid, tenant, name, id, created µs, options: creates or configures
	opDrop      opKind = 2 // uid of the queue
	opPartition opKind = 3 // uid, uid of the queue, name
	opAppend    opKind = 4 // uid of the partition, chunk without its place, blob
	opMove      opKind = 5 // the same, and the segment it was in
	opKV        opKind = 6 // tenant, time, change of its usage, writes
	opDedup     opKind = 7 // uid of the partition, time, deduplication keys of a push
	opTrim      opKind = 8 // uid of the partition, its floor, bytes before its start

	opGroup    opKind = 9  // uid of the queue, group, subscription
	opGroupEnd opKind = 10 // uid of the queue, group, whether the subscription goes too
	opCursor   opKind = 11 // uid of the partition, group, cursor: replaces the one before
	opDead     opKind = 12 // uid of the partition, group, offset, dead letter
)

// op is a decoded operation.
type op struct {
	kind    opKind
	uid     uint64
	queue   uint64
	tenant  Tenant
	name    string
	id      string
	created int64
	options []byte // JSON, aliases the entry
	chunk   chunk
	blob    int
	from    uint64
	kv      kvOp
	keys    []byte // of opDedup, and the tail of what groups do; aliases the entry
	floor   floor
	cut     int64
}

// appendOp frames one operation; body appends what is in it.
func appendOp(dst []byte, kind opKind, body func([]byte) []byte) []byte {
	var room [256]byte
	b := body(room[:0])
	dst = append(dst, byte(kind))
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func appendQueueOp(dst []byte, q *queue, options Options) []byte {
	return appendOp(dst, opQueue, func(b []byte) []byte {
		return appendQueueRow(binary.AppendUvarint(b, q.uid), q, options)
	})
}

// appendQueueRow is the queue's row in the index and the tail of its operation.
func appendQueueRow(b []byte, q *queue, options Options) []byte {
	text, err := json.Marshal(options)
	if err != nil {
		panic(err) // numbers, texts and truth values always marshal
	}
	b = append(b, q.tenant[:]...)
	b = appendString(b, q.name)
	b = appendString(b, q.id)
	b = binary.AppendUvarint(b, uint64(q.created.UnixMicro()))
	return append(b, text...)
}

func (o *op) decodeQueueRow(d *decoder) {
	copy(o.tenant[:], d.bytes(uint64(len(o.tenant))))
	o.name, o.id, o.created = d.string(), d.string(), d.int()
	o.options, d.b = d.b, nil
}

func appendDropOp(dst []byte, q *queue) []byte {
	return appendOp(dst, opDrop, func(b []byte) []byte { return binary.AppendUvarint(b, q.uid) })
}

func appendPartitionOp(dst []byte, p *partition) []byte {
	return appendOp(dst, opPartition, func(b []byte) []byte {
		b = binary.AppendUvarint(b, p.uid)
		b = binary.AppendUvarint(b, p.queue.uid)
		return appendString(b, p.name)
	})
}

func appendChunkOp(dst []byte, kind opKind, partition uint64, c *chunk, blob int, from uint64) []byte {
	return appendOp(dst, kind, func(b []byte) []byte {
		b = binary.AppendUvarint(b, partition)
		b = binary.AppendUvarint(b, uint64(c.base))
		b = binary.AppendUvarint(b, uint64(c.count))
		b = binary.AppendUvarint(b, uint64(c.bytes))
		b = binary.AppendUvarint(b, uint64(c.time))
		b = binary.AppendUvarint(b, uint64(c.before))
		b = binary.AppendUvarint(b, uint64(blob))
		if kind == opMove {
			b = binary.AppendUvarint(b, from)
		}
		return b
	})
}

// eachOp decodes the operations of an entry. The op is valid during visit.
func eachOp(meta []byte, visit func(*op) error) error {
	d := decoder{b: meta}
	for len(d.b) > 0 {
		var o op
		o.kind = opKind(d.bytes(1)[0])
		body := decoder{b: d.bytes(d.uint())}
		switch o.kind {
		case opQueue:
			o.uid = body.uint()
			o.decodeQueueRow(&body)
		case opDrop:
			o.uid = body.uint()
		case opPartition:
			o.uid, o.queue, o.name = body.uint(), body.uint(), body.string()
		case opAppend, opMove:
			o.uid = body.uint()
			o.chunk = chunk{base: body.int(), count: body.int(), bytes: body.int(), time: body.int(), before: body.int()}
			o.blob = int(body.uint())
			if o.kind == opMove {
				o.from = body.uint()
			}
		case opKV:
			o.decodeKV(&body)
		case opDedup:
			o.uid, o.created = body.uint(), body.int()
			o.keys, body.b = body.b, nil
		case opTrim:
			o.uid = body.uint()
			o.floor = floor{start: body.int(), next: body.int(), time: body.int(), before: body.int()}
			o.cut = body.int()
		case opGroup, opGroupEnd, opCursor, opDead:
			o.uid, o.name = body.uint(), body.string()
			o.keys, body.b = body.b, nil
		default:
			return fmt.Errorf("operation %d is not known: the folder was written by a newer version", o.kind)
		}
		switch {
		case d.err != nil:
			return d.err
		case body.err != nil:
			return body.err
		}
		if err := visit(&o); err != nil {
			return err
		}
	}
	return nil
}
