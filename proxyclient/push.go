package proxyclient

import (
	"context"
	"errors"
	"slices"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/tenancy"
)

// PushStatus is what became of one item (§3.4).
type PushStatus uint8

// The statuses. PushFailed is "error", "failed" and any word we do not know.
const (
	PushQueued PushStatus = iota
	PushDuplicate
	PushBuffered
	PushFailed

	pushUnanswered // while an answer is being read
)

// PushResult is the answer to one item.
type PushResult struct {
	Status PushStatus
	Offset int64 // assigned; −1 absent
}

// perPushAnswer is the most an honest result takes: ids, a name of 249 bytes
// that may be escaped sixfold, an offset.
const perPushAnswer = 2 << 10

var errPushIndex = errors.New("the push answer's indexes are not 0..n-1, each once")

// Push sends the items in [from, to) and appends one result per item, in item
// order, to dst; no items is no call. It is never repeated by itself: after a
// transport failure the items may have been stored. On an error dst is returned
// as it came.
func (c *Client) Push(ctx context.Context, s tenancy.Scope, b *PushBody, from, to Mark, dst []PushResult) ([]PushResult, error) {
	n := to.items - from.items
	if n <= 0 {
		return dst, nil
	}
	out := slices.Grow(dst, n)
	limit := maxAnswer + perPushAnswer*n
	err := c.askSource(ctx, postTarget(RoutePush, "/api/v1/push"), claimOf(s), b.source(from, to), limit, false, func(body []byte) error {
		out = out[:len(dst)+n]
		return decodePush(body, out[len(dst):])
	})
	if err != nil {
		return dst, err
	}
	return out, nil
}

// decodePush fills one result per item. Every index must be there exactly once.
func decodePush(body []byte, results []PushResult) error {
	for i := range results {
		results[i] = PushResult{Status: pushUnanswered, Offset: -1}
	}
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(body)
	items, err := d.ArrIter()
	if err != nil {
		return err
	}
	answered := 0
	for items.Next() {
		index, r, err := decodePushItem(d)
		if err != nil {
			return err
		}
		if index < 0 || index >= int64(len(results)) || results[index].Status != pushUnanswered {
			return errPushIndex
		}
		results[index] = r
		answered++
	}
	if err := items.Err(); err != nil {
		return err
	}
	if answered != len(results) {
		return errPushIndex
	}
	return atEnd(d)
}

func decodePushItem(d *jx.Decoder) (index int64, r PushResult, err error) {
	index, r = -1, PushResult{Status: PushFailed, Offset: -1}
	members, err := d.ObjIter()
	if err != nil {
		return index, r, err
	}
	for members.Next() {
		switch string(members.Key()) {
		case "index":
			index, err = d.Int64()
		case "status":
			r.Status, err = pushStatus(d)
		case "offset":
			if !isNull(d) {
				r.Offset, err = d.Int64()
			}
		default:
			err = d.Skip()
		}
		if err != nil {
			return index, r, err
		}
	}
	if r.Offset < -1 {
		return index, r, errNegativeOffset
	}
	return index, r, members.Err()
}

func pushStatus(d *jx.Decoder) (PushStatus, error) {
	word, err := d.StrBytes()
	switch string(word) {
	case "queued":
		return PushQueued, err
	case "duplicate":
		return PushDuplicate, err
	case "buffered":
		return PushBuffered, err
	}
	return PushFailed, err
}
