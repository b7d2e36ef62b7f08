package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// Room for what a Produce becomes: its decompressed records and the push body
// made of them have a ceiling of the process. A run waits in line for what it is
// likely to need before it holds anything; what turns out larger takes more
// without waiting, or is told to come again (7).
const (
	// leastSwell is what a byte of an uncompressed request takes: base64, the frame
	// of an item, and what is left over of a body's pieces.
	leastSwell = 3
	// mostSwell keeps one bomb from making its connection wait for an empty house
	// for ever after.
	mostSwell = 256
	// firstGrant is the least a batch may decompress to before more is asked for.
	firstGrant = 64 << 10
	// nextGrant is by how much more it is tried again, which bounds what is
	// decompressed in vain to a third of what it becomes.
	nextGrant = 4
)

var (
	errNoRoom    = errors.New("no memory for the decompressed records at the moment")
	errNeverRoom = fmt.Errorf("%w: more memory than there is for one tenant", batch.ErrTooLarge)
)

// reserve waits for the memory the run is likely to need, judged by what the
// connection's last run became. Parts that get none are answered 7.
func (r *produceRun) reserve(ctx context.Context) {
	r.room = lease{ceiling: r.h.cfg.Inflated, scope: r.c.scope}
	for i := range r.parts {
		if p := &r.parts[i]; !p.done {
			r.sent += len(p.recs)
		}
	}
	swell := max(r.c.swell, leastSwell)
	if r.room.wait(ctx, int64(r.sent)*int64(swell), r.h.cfg.RoomWait) == nil {
		return
	}
	for i := range r.parts {
		r.refuse(&r.parts[i], kerr.RequestTimedOut.Code, noRoomText)
	}
}

const noRoomText = "The gateway has no memory for the records at the moment."

// giveRoom gives the memory back and learns how much it was.
func (r *produceRun) giveRoom() {
	if r.sent > 0 && r.room.ceiling != nil {
		r.c.swell = int(min(r.used/int64(r.sent)+1, mostSwell))
	}
	r.room.release()
}

// need is the memory of the run with so many decompressed bytes in hand.
func (r *produceRun) need(inflated int) int64 {
	return int64(r.body.Held() + inflated)
}

// take makes room for what is needed.
func (r *produceRun) take(n int64) error {
	switch {
	case r.room.cover(n):
		r.used = max(r.used, n)
		return nil
	case r.room.never(n):
		return errNeverRoom
	}
	return errNoRoom
}

// each decompresses a batch within the budget and the room there is. Where the
// room was too small it starts again with more; restart undoes what fn did.
func (r *produceRun) each(b *batch.Batch, budget *batch.Budget, restart func(), fn func(*batch.Record) error) error {
	mark := r.body.Mark()
	if r.room.ceiling == nil || int(b.NumRecords) > budget.Records {
		return r.dec.Each(b, budget, fn)
	}
	if b.Codec() == batch.None { // its records lie in the frame
		return r.dec.Each(b, budget, func(rec *batch.Record) error {
			if err := fn(rec); err != nil {
				return err
			}
			return r.take(r.need(0))
		})
	}
	for grant := firstGrant; ; grant *= nextGrant {
		held := int(min(r.room.taken-r.need(0), int64(budget.Bytes)))
		grant = min(max(grant, held), budget.Bytes)
		if err := r.take(r.need(grant)); err != nil {
			return err
		}
		sub := batch.Budget{Bytes: grant, Records: budget.Records}
		err := r.dec.Each(b, &sub, func(rec *batch.Record) error {
			if err := fn(rec); err != nil {
				return err
			}
			return r.take(r.need(grant - sub.Bytes))
		})
		if grant < budget.Bytes && errors.Is(err, batch.ErrTooLarge) && !errors.Is(err, errNeverRoom) {
			r.body.Truncate(mark)
			restart()
			continue
		}
		budget.Bytes -= grant - sub.Bytes
		budget.Records = sub.Records
		return err
	}
}
