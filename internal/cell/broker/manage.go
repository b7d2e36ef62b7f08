package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// manageBytes is about what a configure or a delete takes in the log.
const manageBytes = 2 << 10

// Configure creates a queue or changes its options. change sees the options as
// they are (the defaults for a new queue) and edits them; its error refuses the
// call and is returned as it is. It runs where writes are put in order and must
// only compute. nil changes nothing.
func (b *Broker) Configure(ctx context.Context, t Tenant, name string, change func(*Options) error) (Queue, error) {
	if name == "" {
		return Queue{}, fmt.Errorf("%w: the queue has no name", ErrBadRequest)
	}
	if len(name) > MaxNameBytes {
		return Queue{}, fmt.Errorf("%w: %d bytes, at most %d", ErrNameTooLong, len(name), MaxNameBytes)
	}
	if err := ctx.Err(); err != nil {
		return Queue{}, err
	}
	if err := b.enter(); err != nil {
		return Queue{}, err
	}
	defer b.leave()
	var q *queue
	var options Options
	plan := func(d *store.Draft) error {
		var err error
		q, options, err = b.machine.planConfigure(t, name, change, b.clock(), d)
		return err
	}
	if err := b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes}); err != nil {
		return Queue{}, err
	}
	return q.describeWith(options), nil
}

func (m *machine) planConfigure(t Tenant, name string, change func(*Options) error, now time.Time, d *store.Draft) (*queue, Options, error) {
	q := m.queues[queueKey{t, name}]
	options := DefaultOptions()
	if q != nil {
		options = q.plan.options
	}
	before := options
	if change != nil {
		if err := change(&options); err != nil {
			return nil, options, err
		}
	}
	if q != nil && options == before {
		return q, options, nil
	}
	if q == nil {
		q = m.newQueue(t, name, now)
	}
	q.plan.options = options
	d.Meta = appendQueueOp(d.Meta, q, options)
	return q, options, nil
}

// newQueue makes a queue known to the plans that follow.
func (m *machine) newQueue(t Tenant, name string, now time.Time) *queue {
	q := &queue{uid: m.takeUID(), id: newQueueID(), tenant: t, name: name, created: now.UTC().Truncate(time.Microsecond)}
	m.addQueue(q)
	return q
}

// newQueueID is a random UUID.
func newQueueID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails: crypto/rand ends the process first
	u[6] = u[6]&0x0f | 4<<4
	u[8] = u[8]&0x3f | 2<<6
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Delete deletes a queue with its partitions and records. When it returns, the
// queue is out of sight for good; a queue of that name made later has another
// id and begins at offset 0. Deleting goes on when the storage is full.
func (b *Broker) Delete(ctx context.Context, t Tenant, name string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := b.enter(); err != nil {
		return false, err
	}
	defer b.leave()
	var existed bool
	plan := func(d *store.Draft) error {
		q := b.machine.queues[queueKey{t, name}]
		if existed = q != nil; existed {
			b.machine.dropQueue(q)
			d.Meta = appendDropOp(d.Meta, q)
		}
		return nil
	}
	if err := b.do(ctx, &store.Command{Plan: plan, Bytes: manageBytes, Frees: true}); err != nil {
		return false, err
	}
	b.wakeTidy()
	return existed, nil
}
