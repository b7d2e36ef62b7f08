package api

import (
	"context"
	"errors"

	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// TxnCell is what transactions ask of a cell.
type TxnCell interface {
	KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error)
	Transaction(ctx context.Context, s tenancy.Scope, items []proxyclient.Items, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error)
}

// NewTxnStore keeps the rows of transactional ids in the cell's keys and values
// (cell-http §4.8), and commits as one call (§3.8).
func NewTxnStore(cell TxnCell) txn.Store { return txnStore{cell} }

type txnStore struct{ cell TxnCell }

const (
	txnKeyPrefix = "qk:txn:"
	maxKVKey     = 512 // bytes (cell-http §4.7)
)

// txnKey names the row of a transactional id; "" where the id is too long for
// one.
func txnKey(id string) string {
	const hex = "0123456789ABCDEF"
	b := []byte(txnKeyPrefix)
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
		if len(b) > maxKVKey {
			return ""
		}
	}
	return string(b)
}

var errUnread = errors.New("the cell left the row of a transactional id out of its answer")

func (t txnStore) Read(ctx context.Context, s tenancy.Scope, id string) ([]byte, int64, error) {
	key := txnKey(id)
	results, err := t.cell.KV(ctx, s, []proxyclient.KVOp{{Op: proxyclient.KVGetMany, Keys: []string{key}}})
	switch {
	case err != nil:
		return nil, 0, err
	case len(results[0].Rows) == 1:
		return results[0].Rows[0].Value, results[0].Rows[0].Version, nil
	case len(results[0].Missing) == 1:
		return nil, 0, nil
	}
	return nil, 0, errUnread // never taken for absent
}

func (t txnStore) Write(ctx context.Context, s tenancy.Scope, id string, value []byte, expect int64, b txn.Bundle) (txn.Written, error) {
	row := proxyclient.KVOp{
		Op: proxyclient.KVPut, Key: txnKey(id), Value: value, Expect: proxyclient.ExpectVersion(expect), Required: true,
	}
	var results []proxyclient.KVResult
	var err error
	if len(b.Chunks)+len(b.Puts) == 0 {
		results, err = t.cell.KV(ctx, s, []proxyclient.KVOp{row})
	} else {
		items, ops := bundled(row, b)
		results, err = t.cell.Transaction(ctx, s, items, ops)
	}
	if e, ok := proxyclient.AsError(err); ok && e.Kind == proxyclient.KindPrecondition {
		return lost(e), nil
	}
	if err != nil {
		return txn.Written{}, err
	}
	return txn.Written{Applied: results[0].Applied, Version: results[0].Version, Value: results[0].Value}, nil
}

// bundled is the call of a commit. The row comes first: it is the fence.
func bundled(row proxyclient.KVOp, b txn.Bundle) ([]proxyclient.Items, []proxyclient.KVOp) {
	items := make([]proxyclient.Items, len(b.Chunks))
	for i, c := range b.Chunks {
		items[i] = proxyclient.Items{Encoded: c.Items, Count: c.Count}
	}
	ops := make([]proxyclient.KVOp, 0, 1+len(b.Puts))
	ops = append(ops, row)
	for _, p := range b.Puts {
		op := proxyclient.KVOp{Op: proxyclient.KVPut, Key: p.Key, Value: p.Value}
		if p.IfAbsent {
			op.Expect = proxyclient.ExpectAbsent()
		}
		ops = append(ops, op)
	}
	return items, ops
}

// lost reads a verdict, which may lack the winner.
func lost(e *proxyclient.Error) txn.Written {
	w := txn.Written{Version: e.Version, Value: e.Value}
	if e.Version == 0 || string(e.Value) == "null" {
		w.Version, w.Value = 0, nil
	}
	return w
}
