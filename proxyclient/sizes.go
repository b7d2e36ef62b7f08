package proxyclient

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/tenancy"
)

// maxSizes bounds an answer with the sizes of one queue: a million partitions in
// the short form.
const maxSizes = 32 << 20

// PartitionSize is what one partition keeps.
type PartitionSize struct {
	Partition int32
	Bytes     int64
}

// ErrNoSizes is a cell that cannot say how large a queue is: it has neither
// route of §3.9.
var ErrNoSizes = errors.New("the cell does not tell sizes")

var errNegativeSize = errors.New("a negative size")

// Sizes tells the retained bytes of a queue's partitions (§3.9), those that
// Kafka can name, in no order. A cell without the short route is asked for the
// long form. Both routes answer 404 for a queue that is not there as well; that
// too is ErrNoSizes.
func (c *Client) Sizes(ctx context.Context, s tenancy.Scope, queue string) ([]PartitionSize, error) {
	sizes, err := c.sizes(ctx, s, sizesTarget(queue), decodeSizes)
	if missing(err) {
		sizes, err = c.sizes(ctx, s, queueTarget(queue), decodeQueueSizes)
	}
	if missing(err) {
		return nil, ErrNoSizes
	}
	return sizes, err
}

func missing(err error) bool {
	e, ok := AsError(err)
	return ok && e.Kind == KindStatus && e.Status == http.StatusNotFound
}

func (c *Client) sizes(ctx context.Context, s tenancy.Scope, t target, decode func([]byte) ([]PartitionSize, error)) (sizes []PartitionSize, err error) {
	err = c.ask(ctx, t, claimOf(s), nil, maxSizes, false, func(body []byte) (err error) {
		sizes, err = decode(body)
		return err
	})
	return sizes, err
}

// decodeSizes reads {"partitions":{"0":1204}}.
func decodeSizes(body []byte) (sizes []PartitionSize, err error) {
	err = object(body, func(d *jx.Decoder, key []byte) error {
		if string(key) != "partitions" {
			return d.Skip()
		}
		sizes = sizes[:0]
		return d.ObjBytes(func(d *jx.Decoder, name []byte) error {
			n, known := partitionOf(string(name))
			bytes, err := d.Int64()
			if err != nil {
				return err
			}
			if bytes < 0 {
				return errNegativeSize
			}
			if known {
				sizes = append(sizes, PartitionSize{n, bytes})
			}
			return nil
		})
	})
	return sizes, err
}

// decodeQueueSizes reads {"partitions":[{"name":"0","retainedBytes":1204}]}. A
// partition without both is passed over.
func decodeQueueSizes(body []byte) (sizes []PartitionSize, err error) {
	err = object(body, func(d *jx.Decoder, key []byte) error {
		if string(key) != "partitions" || d.Next() != jx.Array {
			return d.Skip()
		}
		sizes = sizes[:0]
		return d.Arr(func(d *jx.Decoder) error {
			size, ok, err := decodePartitionSize(d)
			if ok {
				sizes = append(sizes, size)
			}
			return err
		})
	})
	return sizes, err
}

func decodePartitionSize(d *jx.Decoder) (size PartitionSize, ok bool, err error) {
	named, sized := false, false
	err = d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		switch {
		case string(key) == "name" && d.Next() == jx.String:
			name, err := d.Str()
			size.Partition, named = partitionOf(name)
			return err
		case string(key) == "retainedBytes" && d.Next() == jx.Number:
			size.Bytes, err = d.Int64()
			sized = err == nil && size.Bytes >= 0
			return err
		}
		return d.Skip()
	})
	return size, named && sized, err
}

// partitionOf is the partition a name stands for: the canonical decimal only.
func partitionOf(name string) (int32, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name {
		return 0, false
	}
	return int32(n), true
}
