package proxyclient

import (
	"context"
	"errors"
	"slices"

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
// as it came. The answer is never held whole.
func (c *Client) Push(ctx context.Context, s tenancy.Scope, b *PushBody, from, to Mark, dst []PushResult) ([]PushResult, error) {
	n := to.items - from.items
	if n <= 0 {
		return dst, nil
	}
	k, err := c.start(ctx, postTarget(RoutePush, "/api/v1/push"), claimOf(s), b.source(from, to), 0)
	if err != nil {
		return dst, err
	}
	defer k.end()
	limit := int64(maxAnswer + perPushAnswer*n)
	if k.resp.ContentLength > limit {
		return dst, k.failed(KindBody, errTooLarge)
	}
	out := slices.Grow(dst, n)[:len(dst)+n]
	r := c.pushReader()
	defer c.putPushReader(r)
	if err := r.read(k.resp.Body, limit, out[len(dst):]); err != nil {
		return dst, k.unread(err)
	}
	return out, nil
}
