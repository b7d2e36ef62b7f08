package proxy

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// ackText is an acknowledgment as it is written down.
type ackText struct {
	transaction, partition, status, text, lease, group string
}

// member reads one; what is no member of an acknowledgment is passed over.
func (t *ackText) member(key []byte, d *jx.Decoder, complain func(string)) error {
	var into *string
	switch string(key) {
	case "transactionId":
		into = &t.transaction
	case "partitionId":
		into = &t.partition
	case "status":
		into = &t.status
	case "error":
		into = &t.text
	case "leaseId":
		into = &t.lease
	case "consumerGroup":
		into = &t.group
	default:
		return d.Skip()
	}
	if d.Next() == jx.Null {
		return d.Null()
	}
	if d.Next() != jx.String {
		complain(string(key) + " must be a string")
		return d.Skip()
	}
	var err error
	*into, err = d.Str()
	return err
}

// verdict is what the broker is told; group is that of the call.
func (t *ackText) verdict(group string, complain func(string)) broker.Ack {
	switch {
	case t.transaction == "":
		complain("an acknowledgment's transactionId is required")
	case t.partition == "":
		complain("an acknowledgment's partitionId is required")
	}
	a := broker.Ack{
		Partition: broker.PartitionID(uuidOf(t.partition)), TransactionID: t.transaction,
		Lease: leaseID(t.lease), Group: t.group, Error: t.text,
	}
	if a.Group == "" {
		a.Group = group
	}
	switch t.status {
	case "", "completed":
	case "failed":
		a.Status = broker.FailedOnce
	case "retry":
		a.Status = broker.RetryLater
	case "dlq":
		a.Status = broker.DeadLetter
	default:
		complain("status must be completed, failed, retry or dlq")
	}
	return a
}

// leaseID is a lease's name; what is none is a lease that is not there.
func leaseID(text string) broker.LeaseID {
	id := broker.LeaseID(uuidOf(text))
	if text != "" && id == (broker.LeaseID{}) {
		id[0] = 0xff // no lease has a first byte alone
	}
	return id
}

// uuidOf reads a UUID; what is none is the zero one, which nothing has.
func uuidOf(text string) (id [16]byte) {
	digits := strings.ReplaceAll(text, "-", "")
	if len(text) != 36 || len(digits) != 2*len(id) {
		return id
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return [16]byte{}
	}
	return id
}

// ackBody decodes an acknowledgment, or a batch of them.
type ackBody struct {
	dec   jx.Decoder
	texts []ackText
	wrong string
}

func (b *ackBody) complain(text string) {
	if b.wrong == "" {
		b.wrong = text
	}
}

// decode reads a body: a batch has a list of acknowledgments, else the body
// itself is one.
func (b *ackBody) decode(body []byte) ([]broker.Ack, *refusal) {
	if !utf8.Valid(body) {
		return nil, badBody()
	}
	b.dec.ResetBytes(body)
	if b.dec.Next() != jx.Object {
		return nil, notAnObject(&b.dec)
	}
	one, batch := ackText{}, false
	members, err := b.dec.ObjIter()
	if err != nil {
		return nil, badBody()
	}
	for members.Next() {
		if string(members.Key()) == "acknowledgments" {
			batch = true
			err = b.list()
		} else {
			err = one.member(members.Key(), &b.dec, b.complain)
		}
		if err != nil {
			return nil, badBody()
		}
	}
	if members.Err() != nil || trailing(&b.dec) {
		return nil, badBody()
	}
	if !batch {
		b.texts = append(b.texts, one)
	}
	acks := make([]broker.Ack, len(b.texts))
	for i := range b.texts {
		acks[i] = b.texts[i].verdict(one.group, b.complain)
	}
	if b.wrong != "" {
		return nil, badRequest(b.wrong)
	}
	return acks, nil
}

// list reads a batch; one too many ends it before it is kept.
func (b *ackBody) list() error {
	if b.dec.Next() != jx.Array {
		b.complain("acknowledgments must be an array")
		return b.dec.Skip()
	}
	return eachObject(&b.dec, b.element, func() { b.complain("an acknowledgment must be an object") })
}

func (b *ackBody) element() error {
	if len(b.texts) == broker.MaxAcks {
		b.complain(fmt.Sprintf("more than %d acknowledgments", broker.MaxAcks))
		return b.dec.Skip()
	}
	var t ackText
	members, err := b.dec.ObjIter()
	if err != nil {
		return err
	}
	for members.Next() {
		if err := t.member(members.Key(), &b.dec, b.complain); err != nil {
			return err
		}
	}
	b.texts = append(b.texts, t)
	return members.Err()
}

// ack takes verdicts on delivered records: an array answers, and says of each
// whether it was taken.
func (p *Proxy) ack(c *call) *refusal {
	body, f := p.readBody(c)
	if f != nil {
		return f
	}
	defer p.giveBack(body)
	var in ackBody
	acks, f := in.decode(body.b)
	if f != nil {
		return f
	}
	results, err := p.broker.Ack(p.ctx(c), c.tenant(), acks)
	if err != nil {
		return p.failed(c, "ack", err)
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.ArrStart()
	for i := range results {
		if i > 0 {
			a.Comma()
		}
		r := &results[i]
		a.RawStr(`{"index":`)
		a.int(int64(i))
		a.RawStr(`,"transactionId":`)
		a.Str(acks[i].TransactionID)
		a.RawStr(`,"success":`)
		a.Bool(r.Refused == "")
		a.RawStr(`,"error":`)
		if r.Refused == "" {
			a.Null()
		} else {
			a.Str(r.Refused)
		}
		a.RawStr(`,"queueName":`)
		a.Str(r.Queue)
		a.RawStr(`,"partitionName":`)
		a.Str(r.Partition)
		a.RawStr(`,"leaseReleased":`)
		a.Bool(r.Released)
		a.RawStr(`,"dlq":`)
		a.Bool(r.Dead)
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.ArrEnd()
	a.finish()
	return nil
}
