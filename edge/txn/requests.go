package txn

import (
	"context"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Caller is who asks: a proved tenant, on a connection, as a producer of a
// transactional id.
type Caller struct {
	Scope    tenancy.Scope
	Session  *Session
	ID       string // the transactional id
	Producer Producer
}

// Init gives the id's producer, one epoch on, and fences those before it. The
// caller's producer is the one it names (KIP-360), or Nobody. Other ids of the
// connection without a transaction are let go: some clients take a new id for
// every transaction, on one connection.
func (c *Coordinator) Init(ctx context.Context, by Caller, timeout time.Duration) Reply {
	r := c.do(ctx, by, 0, func(req request) event {
		return initProducer{request: req, Timeout: timeout, Fresh: NewProducerID()}
	})
	if r.Outcome == OK {
		c.tidy(by)
	}
	return r
}

// tidy lets go of the connection's other ids that have no transaction.
func (c *Coordinator) tidy(by Caller) {
	key := tenancy.KeyOf(by.Scope, by.ID)
	for _, e := range by.Session.entries() {
		if e.key == key {
			continue
		}
		c.mu.Lock()
		if e.place != nil && !e.busy {
			c.end(e)
		}
		c.mu.Unlock()
	}
}

// AddPartitions adds partitions to the transaction, and opens it. Fit of the
// reply is how many were added where not all were.
func (c *Coordinator) AddPartitions(ctx context.Context, by Caller, partitions []TopicPartition) Reply {
	need := int64(0)
	for i := range partitions {
		need += int64(len(partitions[i].Topic)) + weight
	}
	return c.do(ctx, by, need, func(req request) event {
		return addPartitions{request: req, Partitions: partitions}
	})
}

// AddGroup adds a group whose offsets the transaction will carry, and opens it.
// ops is how many key-value operations one call takes.
func (c *Coordinator) AddGroup(ctx context.Context, by Caller, g Group, ops int) Reply {
	return c.do(ctx, by, g.size(), func(req request) event {
		return addGroup{request: req, Group: g, Ops: ops}
	})
}

// Batches is one partition's records of a request.
type Batches struct {
	TopicPartition
	Sequenced   bool
	First, Last int32 // sequences
	Chunk       Chunk
	Bytes       int64 // keys, values and headers
}

// StageRecords keeps a partition's records until the commit, all or none. The
// chunk's memory is the stage's from then on.
func (c *Coordinator) StageRecords(ctx context.Context, by Caller, b Batches) Reply {
	need := b.Chunk.size()
	return c.do(ctx, by, need, func(req request) event {
		return stageRecords{
			request: req, TopicPartition: b.TopicPartition, First: b.First, Last: b.Last, Sequenced: b.Sequenced,
			Chunk: b.Chunk, Bytes: b.Bytes, Never: need > c.cfg.Staged.Most(),
		}
	})
}

// StageOffsets keeps offsets of a group until the commit, all or none.
func (c *Coordinator) StageOffsets(ctx context.Context, by Caller, g Group, offsets []Offset, ops int) Reply {
	need := g.size()
	for i := range offsets {
		need += offsets[i].size()
	}
	return c.do(ctx, by, need, func(req request) event {
		return stageOffsets{request: req, Group: g, Offsets: offsets, Ops: ops}
	})
}

// End commits or aborts the transaction.
func (c *Coordinator) End(ctx context.Context, by Caller, commit bool) Reply {
	return c.do(ctx, by, 0, func(req request) event {
		return endTxn{request: req, Commit: commit}
	})
}
