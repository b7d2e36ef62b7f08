package proxyclient

import (
	"strconv"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/slab"
	"github.com/segmentio/asm/base64"
)

const (
	pushHead = `{"items":[`
	pushTail = `]}`
	// mostChunk is how large the pieces of a body become that hold several items.
	mostChunk = 256 << 10
)

// PushBody is the items of one or several Produce frames, encoded once. Any
// span between two marks can be sent alone, and what was sent can be dropped
// while more is added. It is used by one goroutine, except that a Push may read
// its span while items are added behind it.
//
// It lies in chunks that do not move once they are written, so it grows without
// being copied, and its memory is lent to the next body in the same pieces.
type PushBody struct {
	chunks []*[]byte // none is empty but the last; every item is preceded by a comma
	first  int       // number of chunks[0], counted from the body's beginning
	bytes  int       // of all items there ever were
	items  int       // as many
	held   int       // memory of the chunks

	lane lane
}

// Mark is a position between items.
type Mark struct {
	bytes, items int
	chunk, at    int // where it lies; a mark at a chunk's end is that chunk's
}

// Items is the number of items before the mark.
func (m Mark) Items() int { return m.items }

// Bytes is the encoded size of the items before the mark.
func (m Mark) Bytes() int { return m.bytes }

// pushMemory lends bodies and their chunks. They are of no tenant: a body is
// empty when it is taken, and Push lets go of its bytes before it returns.
type pushMemory struct {
	bodies bodies
	chunks slab.Pool
}

var pushBodies pushMemory

// NewPushBody takes an empty body from a pool. Release gives it back.
func NewPushBody() *PushBody { return pushBodies.bodies.get() }

// Release gives the body's memory back; the body and its marks are dead.
func (b *PushBody) Release() {
	for i, c := range b.chunks {
		pushBodies.chunks.Put(c)
		b.chunks[i] = nil
	}
	*b = PushBody{chunks: b.chunks[:0], lane: lane{text: b.lane.text[:0]}}
	pushBodies.bodies.put(b)
}

// Mark is the position after the last item.
func (b *PushBody) Mark() Mark {
	m := Mark{bytes: b.bytes, items: b.items}
	if n := len(b.chunks); n > 0 {
		m.chunk, m.at = b.first+n-1, len(*b.chunks[n-1])
	}
	return m
}

// Truncate drops the items after m, which must be a mark of this body.
func (b *PushBody) Truncate(m Mark) {
	keep := m.chunk - b.first + 1
	for i := keep; i < len(b.chunks); i++ {
		b.giveBack(i)
	}
	if keep <= len(b.chunks) {
		b.chunks = b.chunks[:keep]
		*b.chunks[keep-1] = (*b.chunks[keep-1])[:m.at]
	}
	b.bytes, b.items = m.bytes, m.items
}

// Drop gives back the memory of the items before m, which must be a mark of
// this body. Marks before it are dead.
func (b *PushBody) Drop(m Mark) {
	n := min(m.chunk-b.first, len(b.chunks))
	for i := range n {
		b.giveBack(i)
	}
	left := copy(b.chunks, b.chunks[n:])
	clear(b.chunks[left:])
	b.chunks = b.chunks[:left]
	b.first += n
}

func (b *PushBody) giveBack(i int) {
	b.held -= cap(*b.chunks[i])
	pushBodies.chunks.Put(b.chunks[i])
	b.chunks[i] = nil
}

// Items is the number of items there ever were, but for what was truncated.
func (b *PushBody) Items() int { return b.items }

// Bytes is their encoded size.
func (b *PushBody) Bytes() int { return b.bytes }

// Held is the memory that the body takes, in bytes.
func (b *PushBody) Held() int { return b.held }

// Add appends one record as an item whose payload is the envelope {h,k,t,v} of
// §3.4: h only with headers, t only with a timestamp, k and v always. It copies
// what it needs of r. A header name that is not UTF-8 gets U+FFFD for the bytes
// that are not.
func (b *PushBody) Add(queue string, partition int32, r *batch.Record) {
	if !b.lane.is(queue, partition) {
		b.lane.set(queue, partition)
	}
	out, from := b.room(r)
	out = append(out, b.lane.text...)
	b.put(append(out, `,"payload":{`...), from, r)
}

// ProducerKey names one record of an idempotent producer. It travels as the
// item's transactionId, qe:<producer id>:<epoch>:<partition>:<sequence>, by
// which a cell recognises a resend (B3).
type ProducerKey struct {
	ID        int64
	Epoch     int16
	Partition int32
	Sequence  int32
}

// AddKeyed is Add for a record of an idempotent producer.
func (b *PushBody) AddKeyed(queue string, partition int32, r *batch.Record, key ProducerKey) {
	if !b.lane.isKeyed(queue, partition, key) {
		b.lane.setKeyed(queue, partition, key)
	}
	out, from := b.room(r)
	out = append(out, b.lane.text...)
	out = strconv.AppendInt(out, int64(key.Sequence), 10)
	b.put(append(out, `","payload":{`...), from, r)
}

// room is the chunk to append an item to, and how long it was.
func (b *PushBody) room(r *batch.Record) (out []byte, from int) {
	need := len(b.lane.text) + itemSize(r)
	if n := len(b.chunks); n > 0 {
		last := *b.chunks[n-1]
		if cap(last)-len(last) >= need {
			return last, len(last)
		}
	}
	// As much again as there is, so that a single record takes little.
	c := pushBodies.chunks.Get(max(need, min(b.held, mostChunk)))
	if n := len(b.chunks); n > 0 && len(*b.chunks[n-1]) == 0 { // a mark may stand in it, at 0
		b.giveBack(n - 1)
		b.chunks = b.chunks[:n-1]
	}
	b.chunks = append(b.chunks, c)
	b.held += cap(*c)
	return *c, 0
}

// put ends an item that was begun: from is where in its chunk.
func (b *PushBody) put(out []byte, from int, r *batch.Record) {
	if len(r.Headers) > 0 {
		out = appendHeaders(out, r.Headers)
	}
	out = append(out, `"k":`...)
	out = appendBase64(out, r.Key)
	if r.Timestamp != -1 {
		out = append(out, `,"t":`...)
		out = strconv.AppendInt(out, r.Timestamp, 10)
	}
	out = append(out, `,"v":`...)
	out = appendBase64(out, r.Value)
	out = append(out, '}', '}')
	*b.chunks[len(b.chunks)-1] = out
	b.bytes += len(out) - from
	b.items++
}

// itemSize is the most an item takes beside its lane: names may be escaped.
func itemSize(r *batch.Record) int {
	n := 96 + base64.StdEncoding.EncodedLen(len(r.Key)) + base64.StdEncoding.EncodedLen(len(r.Value))
	for i := range r.Headers {
		n += 24 + 6*len(r.Headers[i].Key) + base64.StdEncoding.EncodedLen(len(r.Headers[i].Value))
	}
	return n
}

func appendHeaders(b []byte, headers []batch.Header) []byte {
	b = append(b, `"h":[`...)
	for i := range headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"k":`...)
		b = appendString(b, headers[i].Key)
		b = append(b, `,"v":`...)
		b = append(appendBase64(b, headers[i].Value), '}')
	}
	return append(b, ']', ',')
}

// appendBase64 appends data as a base64 string, nil as null. There is room for it.
func appendBase64(b, data []byte) []byte {
	if data == nil {
		return append(b, "null"...)
	}
	b = append(b, '"')
	at, n := len(b), base64.StdEncoding.EncodedLen(len(data))
	b = b[:at+n]
	base64.StdEncoding.Encode(b[at:], data)
	return append(b, '"')
}

// source is the request body of the items in [from, to).
func (b *PushBody) source(from, to Mark) *source {
	parts := make([][]byte, 0, to.chunk-from.chunk+3)
	parts = b.span(append(parts, []byte(pushHead)), from, to)
	parts[1] = parts[1][1:] // the comma before the first item
	return newSource(append(parts, []byte(pushTail))...)
}

// span appends the pieces that hold the items in [from, to); none is empty.
func (b *PushBody) span(parts [][]byte, from, to Mark) [][]byte {
	for n := from.chunk; n <= to.chunk && n-b.first < len(b.chunks); n++ {
		piece := *b.chunks[n-b.first]
		if n == to.chunk {
			piece = piece[:to.at]
		}
		if n == from.chunk {
			piece = piece[from.at:]
		}
		if len(piece) > 0 {
			parts = append(parts, piece)
		}
	}
	return parts
}
