package proxyclient

import (
	"context"
	"errors"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Items are push items encoded for a transaction that is sent later (§3.8).
type Items struct {
	Encoded []byte // as Cut gave them
	Count   int
}

// Cut copies the items in [from, to) out of the body, for a transaction.
func (b *PushBody) Cut(from, to Mark) Items {
	encoded := make([]byte, 0, to.bytes-from.bytes)
	for _, piece := range b.span(nil, from, to) {
		encoded = append(encoded, piece...)
	}
	return Items{Encoded: encoded, Count: to.items - from.items}
}

// perTxnAnswer is the most an honest result of one item or operation takes,
// beside the values, which come back.
const perTxnAnswer = 2 << 10

var errTxnIndex = errors.New("the transaction's results are not one per item and one per operation")

// Transaction sends items and writes as one: all of it happens or none (§3.8).
// It is never repeated by itself: after a failure that is no KindPrecondition it
// may have happened. FailedIndex of a lost condition is the operation's ordinal.
// The items are sent from where they lie.
func (c *Client) Transaction(ctx context.Context, s tenancy.Scope, items []Items, ops []KVOp) ([]KVResult, error) {
	buf := c.getBuffer()
	defer c.putBuffer(buf)
	parts, count, values := [][]byte{[]byte(`{"operations":[{"type":"push","items":[`)}, 0, 0
	for _, it := range items {
		if it.Count == 0 {
			continue
		}
		encoded := it.Encoded
		if count == 0 {
			encoded = encoded[1:] // every item is preceded by a comma
		}
		parts, count = append(parts, encoded), count+it.Count
	}
	if count == 0 {
		parts = [][]byte{[]byte(`{"operations":[`)}
	} else {
		parts = append(parts, []byte(`]}`))
	}
	buf.b = append(buf.b, `],"kv":[`...)
	for i := range ops {
		if i > 0 {
			buf.b = append(buf.b, ',')
		}
		buf.b = appendKVOp(buf.b, &ops[i])
		values += len(ops[i].Value)
	}
	buf.b = append(buf.b, "]}"...)
	limit := maxAnswer + perTxnAnswer*(count+len(ops)) + values
	var results []KVResult
	err := c.askSource(ctx, postTarget(RouteTxn, "/api/v1/transaction"), claimOf(s), newSource(append(parts, buf.b)...), limit, true,
		func(body []byte) (err error) {
			results, err = decodeTransaction(body, count, ops)
			return err
		})
	return results, err
}

// txnAnswer is the top level of both shapes.
type txnAnswer struct {
	kvAnswer
	items   int
	pushed  int
	success bool
	refused bool // an item says that it failed
}

// decodeTransaction keeps slices of body.
func decodeTransaction(body []byte, items int, ops []KVOp) ([]KVResult, error) {
	a := txnAnswer{items: items, success: true}
	a.ops, a.verdict = ops, Error{Kind: KindPrecondition, RetryAfter: -1}
	err := object(body, func(d *jx.Decoder, key []byte) error {
		switch string(key) {
		case "results":
			return a.list(d, a.result)
		case "success":
			return optional(d, &a.success, d.Bool)
		}
		return a.verdictMember(d, key)
	})
	switch {
	case err != nil:
		return nil, err
	case (!a.success || a.lost) && a.why == "kv_precondition":
		a.verdict.FailedIndex = max(a.verdict.FailedIndex-items, 0)
		return nil, &a.verdict
	case !a.success || a.lost:
		return nil, errors.New("the transaction was refused inside a 200")
	case a.results == nil, a.pushed != items, a.refused:
		return nil, errTxnIndex
	}
	for i := range ops {
		if !a.seen[i] || !a.results[i].Applied && (ops[i].Required || !ops[i].Expect.given) {
			return nil, errTxnIndex
		}
	}
	return a.results, nil
}

// txnItem is one result while its members come in: a push's has no ordinal.
type txnItem struct {
	kvItem
	ordinal int
	kind    string
	success bool
}

func (a *txnAnswer) result(d *jx.Decoder) error {
	item := txnItem{ordinal: -1, success: true}
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "opIndex":
			return optional(d, &item.ordinal, d.Int)
		case "type":
			return optional(d, &item.kind, d.Str)
		case "success":
			return optional(d, &item.success, d.Bool)
		}
		return item.member(d, key)
	})
	if err != nil {
		return err
	}
	if item.ordinal == -1 {
		a.pushed++
		a.refused = a.refused || !item.success
		return nil
	}
	if item.ordinal < 0 || item.ordinal >= len(a.ops) || a.seen[item.ordinal] || item.kind != "kv" {
		return errTxnIndex
	}
	if err := item.fits(&a.ops[item.ordinal]); err != nil {
		return err
	}
	a.seen[item.ordinal], a.results[item.ordinal] = true, item.KVResult
	return nil
}
