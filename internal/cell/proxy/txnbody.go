package proxy

import (
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// txnBody decodes a transaction (cell-http §3.8): the items of all its pushes
// as a push has them, its acks, and its keys as a batch has them. Items of
// flat operations are taken too.
type txnBody struct {
	push   *pushBody
	kv     *kvBody
	acks   []broker.Ack
	leases []string // what requiredLeases names
	others string   // an operation that is neither, which this broker does not do
}

// decode reads a body. As with a push, what the proxy refuses goes first.
func (b *txnBody) decode(body []byte, limits control.Limits) *refusal {
	p := b.push
	p.reset()
	p.limits = limits
	b.kv.reset()
	if !utf8.Valid(body) {
		return badBody()
	}
	p.dec.ResetBytes(body)
	if p.dec.Next() != jx.Object {
		return notAnObject(&p.dec)
	}
	if err := b.object(); err != nil || trailing(&p.dec) {
		return badBody()
	}
	if f := p.verdict(); f != nil {
		return f
	}
	b.lendLease()
	return nil
}

// requiredLeases reads the leases a transaction names.
func (b *txnBody) requiredLeases() error {
	p := b.push
	if p.dec.Next() != jx.Array {
		return p.dec.Skip()
	}
	elements, err := p.dec.ArrIter()
	if err != nil {
		return err
	}
	for elements.Next() {
		text, err := p.textOr("a lease", "", nil)
		if err != nil {
			return err
		}
		if len(b.leases) < 2 && text != "" {
			b.leases = append(b.leases, text)
		}
	}
	return elements.Err()
}

// lendLease gives acks that name no lease the one the transaction names, where
// that is a single one.
func (b *txnBody) lendLease() {
	if len(b.leases) != 1 {
		return
	}
	for i := range b.acks {
		if b.acks[i].Lease == (broker.LeaseID{}) {
			b.acks[i].Lease = leaseID(b.leases[0])
		}
	}
}

// object reads the body's members.
func (b *txnBody) object() error {
	d := &b.push.dec
	members, err := d.ObjIter()
	if err != nil {
		return err
	}
	operations := false
	for members.Next() {
		switch string(members.Key()) {
		case "operations":
			if operations {
				b.push.complain("operations is there twice")
			}
			operations = true
			err = b.operations()
		case "kv":
			err = b.batch()
		case "requiredLeases":
			err = b.requiredLeases()
		default:
			err = d.Skip()
		}
		if err != nil {
			return err
		}
	}
	return members.Err()
}

// batch reads the keys.
func (b *txnBody) batch() error {
	d := &b.push.dec
	if d.Next() == jx.Null {
		return d.Null()
	}
	if d.Next() != jx.Array {
		b.push.complain("kv must be an array")
		return d.Skip()
	}
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	if b.kv.count > 0 {
		b.push.complain("kv is there twice")
	}
	b.kv.decode(raw)
	return nil
}

// operations reads the pushes.
func (b *txnBody) operations() error {
	d := &b.push.dec
	if d.Next() == jx.Null {
		return d.Null()
	}
	if d.Next() != jx.Array {
		b.push.complain("operations must be an array")
		return d.Skip()
	}
	elements, err := d.ArrIter()
	if err != nil {
		return err
	}
	for elements.Next() {
		if d.Next() != jx.Object {
			b.push.complain("an operation must be an object")
			err = d.Skip()
		} else {
			err = b.operation()
		}
		if err != nil {
			return err
		}
	}
	return elements.Err()
}

// operation reads one, whose type may stand anywhere in it.
func (b *txnBody) operation() error {
	p := b.push
	members, err := p.dec.ObjIter()
	if err != nil {
		return err
	}
	kind, items := "", false
	var ack ackText
	flat := broker.PushItem{Partition: defaultPartition}
	for members.Next() {
		switch string(members.Key()) {
		case "type":
			kind, err = p.text("type", nil)
		case "items":
			items, p.hasItems = true, false
			err = p.list()
		case "queue":
			flat.Queue, err = p.textOr("queue", "", &p.queues)
		case "partition":
			flat.Partition, err = p.textOr("partition", defaultPartition, &p.partitions)
		case "transactionId":
			flat.TransactionID, err = p.bytesOrNull("transactionId")
			ack.transaction = string(flat.TransactionID)
		case "payload":
			flat.Payload, err = p.dec.Raw()
		default:
			err = ack.member(members.Key(), &p.dec, p.complain)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case kind == "ack" && len(b.acks) >= broker.MaxAcks:
		p.complain("too many acknowledgments")
	case kind == "ack":
		b.acks = append(b.acks, ack.verdict("", p.complain))
	case kind != "push" && b.others == "":
		b.others = kind
		if kind == "" {
			p.complain("an operation's type is required")
		}
	case kind == "push" && !items:
		p.keep(flat)
		p.count++
	}
	return members.Err()
}
