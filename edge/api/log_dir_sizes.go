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

// of are a topic's sizes, where they are known.
func (z *sizes) of(s tenancy.Scope, name, queueID string) (parts []proxyclient.PartitionSize, ok bool) {
	t, ok := z.kept.Get(tenancy.KeyOf(s, name))
	if !ok || t.queueID != queueID || !z.clock().Before(t.until) {
		return nil, false
	}
	return t.parts, true
}

// ask asks the cell for a topic's sizes.
func (z *sizes) ask(ctx context.Context, s tenancy.Scope, name, queueID string) ([]proxyclient.PartitionSize, error) {
	parts, err := z.cell.Sizes(ctx, s, name)
	if err == nil && len(parts) <= keptPartitions {
		z.kept.Set(tenancy.KeyOf(s, name), topicSizes{queueID, parts, z.clock().Add(sizesLife)})
	}
	return parts, err
}
