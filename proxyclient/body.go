package proxyclient

import (
	"slices"
	"strconv"
	"sync"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/segmentio/asm/base64"
)

const (
	pushHead = `{"items":[`
	pushTail = `]}`
	// maxPooledPush is the largest body the pool keeps: a full merged push
	// (B8) and its base64.
	maxPooledPush = 20 << 20
)

// PushBody is the items of one or several Produce frames, encoded once. Any
// span between two marks can be sent alone. It is used by one goroutine.
type PushBody struct {
	buf   []byte // every item is preceded by a comma
	items int
}

// Mark is a position between items.
type Mark struct{ bytes, items int }

// Items is the number of items before the mark.
func (m Mark) Items() int { return m.items }

// Bytes is the encoded size of the items before the mark.
func (m Mark) Bytes() int { return m.bytes }

// bodyPool keeps released bodies. They are of no tenant: a body is empty when
// it is taken, and Push lets go of its bytes before it returns.
type bodyPool struct{ pool sync.Pool }

var pushBodies bodyPool

// NewPushBody takes an empty body from a pool. Release gives it back.
func NewPushBody() *PushBody {
	if b, ok := pushBodies.pool.Get().(*PushBody); ok {
		return b
	}
	return &PushBody{}
}

// Release gives the body's memory back; the body and its marks are dead.
func (b *PushBody) Release() {
	if cap(b.buf) > maxPooledPush {
		return
	}
	b.Truncate(Mark{})
	pushBodies.pool.Put(b)
}

// Mark is the position after the last item.
func (b *PushBody) Mark() Mark { return Mark{bytes: len(b.buf), items: b.items} }

// Truncate drops the items after m, which must be a mark of this body.
func (b *PushBody) Truncate(m Mark) { b.buf, b.items = b.buf[:m.bytes], m.items }

// Items is the number of items.
func (b *PushBody) Items() int { return b.items }

// Bytes is the encoded size of all items.
func (b *PushBody) Bytes() int { return len(b.buf) }

// Add appends one record as an item whose payload is the envelope {h,k,t,v} of
// §3.4: h only with headers, t only with a timestamp, k and v always. It copies
// what it needs of r. A header name that is not UTF-8 gets U+FFFD for the bytes
// that are not.
func (b *PushBody) Add(queue string, partition int32, r *batch.Record) {
	b.add(queue, partition, r, nil)
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
	b.add(queue, partition, r, &key)
}

func (b *PushBody) add(queue string, partition int32, r *batch.Record, key *ProducerKey) {
	out := slices.Grow(b.buf, itemSize(queue, r))
	out = append(out, ',', '{')
	out = appendLane(out, queue, partition)
	if key != nil {
		out = appendProducerKey(out, *key)
	}
	out = append(out, `,"payload":{`...)
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
	b.buf = append(out, '}', '}')
	b.items++
}

func appendProducerKey(b []byte, k ProducerKey) []byte {
	b = append(b, `,"transactionId":"qe:`...)
	b = append(strconv.AppendInt(b, k.ID, 10), ':')
	b = append(strconv.AppendInt(b, int64(k.Epoch), 10), ':')
	b = append(strconv.AppendInt(b, int64(k.Partition), 10), ':')
	return append(strconv.AppendInt(b, int64(k.Sequence), 10), '"')
}

// itemSize is what Add will need unless names want escaping: one growth per
// record, not one per member.
func itemSize(queue string, r *batch.Record) int {
	n := 192 + len(queue) + base64.StdEncoding.EncodedLen(len(r.Key)) + base64.StdEncoding.EncodedLen(len(r.Value))
	for i := range r.Headers {
		n += 24 + len(r.Headers[i].Key) + base64.StdEncoding.EncodedLen(len(r.Headers[i].Value))
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

// appendBase64 appends data as a base64 string, nil as null.
func appendBase64(b, data []byte) []byte {
	if data == nil {
		return append(b, "null"...)
	}
	b = append(b, '"')
	at, n := len(b), base64.StdEncoding.EncodedLen(len(data))
	b = slices.Grow(b, n+1)[:at+n]
	base64.StdEncoding.Encode(b[at:], data)
	return append(b, '"')
}

// source is the request body of the items in [from, to).
func (b *PushBody) source(from, to Mark) *source {
	return newSource([]byte(pushHead), b.buf[from.bytes+1:to.bytes], []byte(pushTail))
}
