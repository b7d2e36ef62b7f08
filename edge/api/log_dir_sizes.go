package api

import (
	"context"
	"time"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	// sizesLife is how long the sizes of a topic are reused: tools ask for all of
	// them again and again.
	sizesLife = 5 * time.Second
	// keptSizes is how many topics' sizes are kept, of all tenants, and
	// keptPartitions how many partitions such a topic may have.
	keptSizes      = 2048
	keptPartitions = 4096
)

// sizes keeps what topics weigh. Everybody who logs in has proved the right to
// read, which is what the cell asks for here.
type sizes struct {
	cell  Cell
	clock func() time.Time
	kept  *tenancy.LRU[string, topicSizes]
}

type topicSizes struct {
	queueID string
	parts   []proxyclient.PartitionSize
	until   time.Time
}

func newSizes(cell Cell, clock func() time.Time) *sizes {
	return &sizes{cell: cell, clock: clock, kept: tenancy.NewLRU[string, topicSizes](keptSizes)}
}

// of tells a topic's sizes; asked is whether the cell was called.
func (z *sizes) of(ctx context.Context, s tenancy.Scope, name, queueID string, mayAsk bool) (parts []proxyclient.PartitionSize, asked bool, err error) {
	key, now := tenancy.KeyOf(s, name), z.clock()
	if w, ok := z.kept.Get(key); ok && w.queueID == queueID && now.Before(w.until) {
		return w.parts, false, nil
	}
	if !mayAsk {
		return nil, false, nil
	}
	parts, err = z.cell.Sizes(ctx, s, name)
	if err == nil && len(parts) <= keptPartitions {
		z.kept.Set(key, topicSizes{queueID, parts, now.Add(sizesLife)})
	}
	return parts, true, err
}
