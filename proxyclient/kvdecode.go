package proxyclient

import (
	"errors"
	"strings"

	"github.com/go-faster/jx"
)

// kvAnswer is the top level of both shapes: results, or a lost precondition.
type kvAnswer struct {
	ops     []KVOp
	results []KVResult
	seen    []bool
	lost    bool
	why     string
	verdict Error
}

// decodeKV keeps slices of body.
func decodeKV(body []byte, ops []KVOp) ([]KVResult, error) {
	a := kvAnswer{ops: ops, verdict: Error{Kind: KindPrecondition, RetryAfter: -1}}
	err := object(body, func(d *jx.Decoder, key []byte) error {
		if string(key) == "results" {
			return a.list(d, a.result)
		}
		return a.verdictMember(d, key)
	})
	switch {
	case err != nil:
		return nil, err
	case a.lost && a.why == "kv_precondition":
		return nil, &a.verdict
	case a.lost:
		return nil, errors.New("the KV call was refused inside a 200")
	case a.results == nil:
		return nil, errKVIndex
	}
	for i := range ops {
		if !a.seen[i] {
			return nil, errKVIndex
		}
	}
	return a.results, nil
}

// verdictMember reads §4.6. Members a verdict lacks keep their zero.
func (a *kvAnswer) verdictMember(d *jx.Decoder, key []byte) (err error) {
	switch string(key) {
	case "ok":
		ok := true
		err = optional(d, &ok, d.Bool)
		a.lost = !ok
	case "reason":
		err = optional(d, &a.why, d.Str)
	case "failedIndex":
		err = optional(d, &a.verdict.FailedIndex, d.Int)
	case "kvReason":
		err = optional(d, &a.verdict.Reason, d.Str)
		a.verdict.Reason = cutBytes(a.verdict.Reason, maxCode)
	case "version":
		err = optional(d, &a.verdict.Version, d.Int64)
	case "value":
		a.verdict.Value, err = rawValue(d)
	default:
		err = d.Skip()
	}
	return err
}

func rawValue(d *jx.Decoder) ([]byte, error) {
	raw, err := d.Raw()
	return raw[:len(raw):len(raw)], err
}

// list reads the results, each by result.
func (a *kvAnswer) list(d *jx.Decoder, result func(*jx.Decoder) error) error {
	if isNull(d) { // a lost precondition may spell it out
		return nil
	}
	if a.results != nil {
		return errRepeated
	}
	a.results, a.seen = make([]KVResult, len(a.ops)), make([]bool, len(a.ops))
	return d.Arr(result)
}

// kvItem is one result while its members come in.
type kvItem struct {
	KVResult
	index         int
	key           string
	applied, rows bool // whether the member was there
}

// result reads one result and puts it where its index says.
func (a *kvAnswer) result(d *jx.Decoder) error {
	item := kvItem{index: -1}
	if err := d.ObjBytes(item.member); err != nil {
		return err
	}
	if item.index < 0 || item.index >= len(a.ops) || a.seen[item.index] {
		return errKVIndex
	}
	if err := item.fits(&a.ops[item.index]); err != nil {
		return err
	}
	a.seen[item.index] = true
	a.results[item.index] = item.KVResult
	return nil
}

func (r *kvItem) member(d *jx.Decoder, key []byte) (err error) {
	switch string(key) {
	case "index":
		r.index, err = d.Int()
	case "applied":
		r.applied = true
		r.Applied, err = d.Bool()
	case "reason":
		err = optional(d, &r.Reason, d.Str)
	case "key":
		err = optional(d, &r.key, d.Str)
	case "value":
		r.Value, err = rawValue(d)
	case "version":
		err = optional(d, &r.Version, d.Int64)
	case "rows":
		r.rows = true
		err = d.Arr(r.row)
	case "missing":
		err = r.missing(d)
	case "truncated":
		err = optional(d, &r.Truncated, d.Bool)
	case "nextAfter":
		err = optional(d, &r.NextAfter, d.Str)
	default:
		err = d.Skip()
	}
	return err
}

func (r *kvItem) row(d *jx.Decoder) error {
	var row KVRow
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "key":
			row.Key, err = d.Str()
		case "value":
			row.Value, err = rawValue(d)
		case "version":
			err = optional(d, &row.Version, d.Int64)
		default:
			err = d.Skip()
		}
		return err
	})
	r.Rows = append(r.Rows, row)
	return err
}

func (r *kvItem) missing(d *jx.Decoder) error {
	if isNull(d) {
		return nil
	}
	return d.Arr(func(d *jx.Decoder) error {
		key, err := d.Str()
		r.Missing = append(r.Missing, key)
		return err
	})
}

// fits checks that the result answers its operation: a wrong row taken for the
// right one would move a consumer.
func (r *kvItem) fits(op *KVOp) error {
	switch op.Op {
	case KVPut, KVDelete:
		if !r.applied || r.key != "" && r.key != op.Key {
			return errKVShape
		}
		return nil
	case KVGetMany:
		return r.fitsKeys(op.Keys)
	}
	for i := range r.Rows {
		if !strings.HasPrefix(r.Rows[i].Key, op.Prefix) {
			return errKVShape
		}
	}
	if !r.rows {
		return errKVShape
	}
	return nil
}

// fitsKeys also finds the keys the answer says nothing of (§4.5: left out by
// the byte budget). They must never be taken for absent.
func (r *kvItem) fitsKeys(asked []string) error {
	if !r.rows {
		return errKVShape
	}
	answered := make(map[string]bool, len(asked))
	for _, key := range asked {
		answered[key] = false
	}
	settle := func(key string) bool {
		_, ok := answered[key]
		answered[key] = true
		return ok
	}
	for i := range r.Rows {
		if !settle(r.Rows[i].Key) {
			return errKVShape
		}
	}
	for _, key := range r.Missing {
		if !settle(key) {
			return errKVShape
		}
	}
	for _, key := range asked {
		if !answered[key] {
			r.Unread = append(r.Unread, key)
			answered[key] = true // a key asked for twice is unread once
		}
	}
	return nil
}
