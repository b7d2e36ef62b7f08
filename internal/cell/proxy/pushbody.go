package proxy

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// defaultPartition is where a record goes that names none.
const defaultPartition = "Default"

// keptItems is the longest item list that goes back to the pool.
const keptItems = 64 << 10

// itemBytes is about what an item takes, with its result.
const itemBytes = 128

// pushBody decodes the body of a push (cell-http §3.4). Payloads alias the
// body. It is reused: nothing may keep items.
type pushBody struct {
	dec     jx.Decoder
	items   []broker.PushItem
	results []broker.PushResult // what became of them
	limits  control.Limits

	queues, partitions interner

	count    int64  // items in the body, kept or not
	big      int64  // index of the first item whose payload is too large, or −1
	bigSize  int64  // its payload's bytes
	wrong    string // first thing of the wrong shape
	hasItems bool
}

// decode reads a body. What the proxy refuses (too many, too large) goes
// before what the broker would (the shape), and broken JSON before both; so
// the whole text is read, yet no more items are kept than the plan allows.
func (b *pushBody) decode(body []byte, limits control.Limits) *refusal {
	b.reset()
	b.limits = limits
	if !b.plain(body) {
		if f := b.any(body); f != nil {
			return f
		}
	}
	return b.judged()
}

// judged is what is wrong with a body that has been read.
func (b *pushBody) judged() *refusal {
	if f := b.verdict(); f != nil {
		return f
	}
	if !b.hasItems {
		return badRequest("items is required")
	}
	return nil
}

// any reads a body as JSON may be written.
func (b *pushBody) any(body []byte) *refusal {
	b.forget()
	if !utf8.Valid(body) {
		return badBody()
	}
	b.dec.ResetBytes(body)
	if b.dec.Next() != jx.Object {
		return notAnObject(&b.dec)
	}
	if err := b.object(); err != nil || trailing(&b.dec) {
		return badBody()
	}
	return nil
}

// verdict is what is wrong with the items: the proxy's limits first.
func (b *pushBody) verdict() *refusal {
	switch {
	case b.limits.MaxBatchItems.Exceeded(b.count):
		return batchTooLarge(b.count, b.limits.MaxBatchItems)
	case b.big >= 0:
		return payloadTooLarge(b.big, b.bigSize, b.limits.MaxPayloadBytes)
	case b.wrong != "":
		return badRequest(b.wrong)
	default:
		return nil
	}
}

// reset forgets the last body, and lets go of its memory.
func (b *pushBody) reset() {
	if cap(b.items) > keptItems {
		b.items, b.results = nil, nil
	}
	b.queues.reset()
	b.partitions.reset()
	b.dec.ResetBytes(nil)
	b.forget()
}

// givePushBack ends the use of a decoded push.
func (p *Proxy) givePushBack(in *pushBody) {
	in.reset()
	p.pushes.Put(in, int64(cap(in.items))*itemBytes)
}

// forget drops what was kept of a body.
func (b *pushBody) forget() {
	clear(b.items)
	b.items, b.results = b.items[:0], b.results[:0]
	b.count, b.big, b.bigSize, b.wrong, b.hasItems = 0, -1, 0, "", false
}

// object reads the body's members.
func (b *pushBody) object() error {
	members, err := b.dec.ObjIter()
	if err != nil {
		return err
	}
	for members.Next() {
		if string(members.Key()) != "items" {
			if err := b.dec.Skip(); err != nil {
				return err
			}
			continue
		}
		if err := b.list(); err != nil {
			return err
		}
	}
	return members.Err()
}

// list reads the items.
func (b *pushBody) list() error {
	if b.hasItems {
		b.complain("items is there twice")
	}
	b.hasItems = true
	if b.dec.Next() != jx.Array {
		b.complain("items must be an array")
		return b.dec.Skip()
	}
	return eachObject(&b.dec, func() error {
		err := b.item() // which looks at the count of those before it
		b.count++
		return err
	}, func() {
		b.count++
		b.complain("an item must be an object")
	})
}

// eachObject reads the objects of an array; other is told of what is none.
func eachObject(d *jx.Decoder, read func() error, other func()) error {
	elements, err := d.ArrIter()
	if err != nil {
		return err
	}
	for elements.Next() {
		if d.Next() == jx.Object {
			err = read()
		} else {
			other()
			err = d.Skip()
		}
		if err != nil {
			return err
		}
	}
	return elements.Err()
}

// item reads one record.
func (b *pushBody) item() error {
	members, err := b.dec.ObjIter()
	if err != nil {
		return err
	}
	it := broker.PushItem{Partition: defaultPartition}
	for members.Next() {
		switch string(members.Key()) {
		case "queue":
			it.Queue, err = b.text("queue", &b.queues)
		case "partition":
			it.Partition, err = b.textOr("partition", defaultPartition, &b.partitions)
		case "transactionId":
			it.TransactionID, err = b.bytesOrNull("transactionId")
		case "payload":
			it.Payload, err = b.dec.Raw()
		default:
			err = b.dec.Skip()
		}
		if err != nil {
			return err
		}
	}
	b.keep(it)
	return members.Err()
}

// keep appends an item that is whole and within the plan.
func (b *pushBody) keep(it broker.PushItem) {
	if size := int64(len(it.Payload)); b.big < 0 && b.limits.MaxPayloadBytes.Exceeded(size) {
		b.big, b.bigSize = b.count, size
	}
	switch {
	case it.Queue == "":
		b.complain("an item's queue is required")
	case it.Partition == "":
		b.complain("an item's partition must not be empty")
	case it.Payload == nil:
		b.complain("an item's payload is required")
	}
	if b.wrong != "" || b.big >= 0 || b.limits.MaxBatchItems.Exceeded(b.count+1) {
		return
	}
	b.items = append(b.items, it)
}

// bytes reads a string member; nil and no error: it is none. It is valid until
// the decoder reads on.
func (b *pushBody) bytes(name string) ([]byte, error) {
	if b.dec.Next() != jx.String {
		b.complain(name + " must be a string")
		return nil, b.dec.Skip()
	}
	return b.dec.StrBytes()
}

// bytesOrNull reads a string member that may be null. The bytes are the item's.
func (b *pushBody) bytesOrNull(name string) ([]byte, error) {
	if b.dec.Next() == jx.Null {
		return nil, b.dec.Null()
	}
	raw, err := b.bytes(name)
	return bytes.Clone(raw), err
}

// text reads a string member; the interner may be nil.
func (b *pushBody) text(name string, in *interner) (string, error) {
	raw, err := b.bytes(name)
	if err != nil {
		return "", err
	}
	if in == nil {
		return string(raw), nil
	}
	return in.intern(raw), nil
}

// textOr reads a string member that may be null.
func (b *pushBody) textOr(name, absent string, in *interner) (string, error) {
	if b.dec.Next() == jx.Null {
		return absent, b.dec.Null()
	}
	return b.text(name, in)
}

// complain remembers the first thing that is wrong.
func (b *pushBody) complain(text string) {
	if b.wrong == "" {
		b.wrong = text
	}
}
