package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

const (
	// purgeRowsAtOnce bounds how long one step holds the writer up.
	purgeRowsAtOnce = 4096
	// forwardBytes is how much is copied forward with one entry.
	forwardBytes = 1 << 20
)

// tidy is the goroutine that gives space back: it raises the start of logs and
// removes what has expired, removes the rows of deleted partitions and copies
// what is live in sparse segments forward. The store does the rest. It alone
// moves or removes chunks.
func (b *Broker) tidy() {
	defer b.tidied.Done()
	ticker := time.NewTicker(b.cfg.RetentionInterval)
	defer ticker.Stop()
	for {
		if err := b.tidyOnce(); err != nil {
			b.logger.Warn("space was not given back", zap.Error(err))
		}
		select {
		case <-b.closing:
			return
		case <-b.purges:
		case <-b.store.Sparse():
		case <-ticker.C:
			if err := b.expire(false); err != nil {
				b.logger.Warn("what has expired was not removed", zap.Error(err))
			}
		case done := <-b.passes:
			done <- errors.Join(b.expire(true), b.tidyOnce())
		}
	}
}

// expire makes a pass over all that ends with time.
func (b *Broker) expire(force bool) error {
	b.machine.deliveries.expire(b.now())
	return errors.Join(b.retain(), b.sweepKV(), b.sweepQueueKeys(force))
}

// Tidy does at once what is otherwise done every RetentionInterval: it raises
// log starts, removes expired keys and deduplication, and gives space back.
func (b *Broker) Tidy(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case b.passes <- done:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-b.closing:
		return ErrClosed
	}
}

func (b *Broker) wakeTidy() {
	select {
	case b.purges <- struct{}{}:
	default:
	}
}

func (b *Broker) tidyOnce() error {
	for uid, ok := b.nextPurge(); ok; uid, ok = b.nextPurge() {
		if done, err := b.purgeSome(uid); err != nil {
			return err
		} else if done {
			b.endPurge()
		}
		if b.isClosing() {
			return nil
		}
	}
	if err := b.sweepTrims(); err != nil {
		return err
	}
	for _, number := range b.store.SparseSegments() {
		if err := b.forward(number); err != nil || b.isClosing() {
			return err
		}
	}
	return nil
}

func (b *Broker) isClosing() bool {
	select {
	case <-b.closing:
		return true
	default:
		return false
	}
}

func (b *Broker) nextPurge() (uint64, bool) {
	b.machine.mu.Lock()
	defer b.machine.mu.Unlock()
	if len(b.machine.purge) == 0 {
		return 0, false
	}
	return b.machine.purge[0], true
}

func (b *Broker) endPurge() {
	b.machine.mu.Lock()
	defer b.machine.mu.Unlock()
	b.machine.purge = b.machine.purge[1:]
}

// purgeSome removes some rows of a deleted partition. It needs no log entry: a
// crash that undoes it brings the partition's 'd' row back too.
func (b *Broker) purgeSome(uid uint64) (done bool, err error) {
	return b.removeChunks(key1(chunkRows, uid), key1(chunkRows, uid+1), func(batch *store.Batch) error {
		for _, kind := range []byte{rangeRows, singleRows, cursorRows, deadRows} {
			if err := batch.DeleteRange(key1(kind, uid), key1(kind, uid+1)); err != nil {
				return err
			}
		}
		return batch.Delete(key1(purgeRows, uid))
	})
}

// removeChunks removes some of the chunk rows from (inclusive) to (exclusive),
// and says whether these were all; last, if given, goes with the last of them.
func (b *Broker) removeChunks(from, to []byte, last func(*store.Batch) error) (done bool, err error) {
	live := make(map[uint64]int64)
	n := 0
	var failed error
	err = eachRowIn(b.store, from, to, func(key, value []byte) bool {
		if n++; n > purgeRowsAtOnce {
			to = slices.Clone(key)
			return false
		}
		var c chunk
		if c, failed = decodeChunkRow(key, value); failed == nil {
			live[c.ref.Segment] -= c.live()
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return false, err
	}
	done = n <= purgeRowsAtOnce
	if n == 0 && last == nil {
		return true, nil
	}
	rows := func(batch *store.Batch) error {
		for segment, bytes := range live {
			batch.AddLive(segment, bytes)
		}
		if done && last != nil {
			if err := last(batch); err != nil {
				return err
			}
		}
		return batch.DeleteRange(from, to)
	}
	return done, b.freeing(func(d *store.Draft) error { d.Index = rows; return nil })
}

// moved is a live chunk on its way forward.
type moved struct {
	partition uint64
	chunk     chunk
	from      uint64
	blob      store.Blob
}

// forward writes what is live in a segment again, at the end of the log.
func (b *Broker) forward(number uint64) error {
	var chunks []moved
	var bytes int64
	flush := func() error {
		err := b.place(chunks, bytes)
		chunks, bytes = chunks[:0], 0
		return err
	}
	err := b.store.Scan(number, func(e *store.Entry) error {
		if b.isClosing() {
			return ErrClosed
		}
		return eachOp(e.Meta, func(o *op) error {
			if o.kind != opAppend && o.kind != opMove {
				return nil
			}
			live, err := b.isAt(o, e.Ref(o.blob))
			if err != nil || !live {
				return err
			}
			blob := e.Blob(o.blob)
			blob.Data = slices.Clone(blob.Data)
			chunks = append(chunks, moved{partition: o.uid, chunk: o.chunk, from: number, blob: blob})
			if bytes += int64(len(blob.Data)) + chunkCharge; bytes < forwardBytes {
				return nil
			}
			return flush()
		})
	})
	if err == nil {
		err = flush()
	}
	if errors.Is(err, store.ErrGone) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// isAt says whether the chunk of an operation still lies where that put it.
func (b *Broker) isAt(o *op, ref store.Ref) (bool, error) {
	key := key2(chunkRows, o.uid, uint64(o.chunk.base))
	v, err := b.store.Get(key)
	if err != nil || v == nil {
		return false, err
	}
	c, err := decodeChunkRow(key, v)
	return c.ref.Segment == ref.Segment && c.ref.Pos == ref.Pos, err
}

func (b *Broker) place(chunks []moved, bytes int64) error {
	if len(chunks) == 0 {
		return nil
	}
	return b.do(context.Background(), &store.Command{
		Plan:  func(d *store.Draft) error { return b.machine.planMoves(chunks, d) },
		Bytes: bytes, Frees: true,
	})
}

// planMoves leaves out what was deleted since it was found live.
func (m *machine) planMoves(chunks []moved, d *store.Draft) error {
	for i := range chunks {
		c := &chunks[i]
		p := m.parts[c.partition]
		if p == nil || !m.exists(p.queue) || c.chunk.base < p.plan.start {
			continue
		}
		d.Meta = appendChunkOp(d.Meta, opMove, c.partition, &c.chunk, len(d.Blobs), c.from)
		d.Blobs = append(d.Blobs, c.blob)
	}
	return nil
}
