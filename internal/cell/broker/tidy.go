package broker

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

const (
	// purgeRowsAtOnce bounds how long one step holds the writer up.
	purgeRowsAtOnce = 4096
	// forwardBytes is how much is copied forward with one entry.
	forwardBytes = 1 << 20
)

// tidy is the goroutine that gives space back: it removes the rows of deleted
// partitions and copies what is live in sparse segments forward. The store
// does the rest.
func (b *Broker) tidy() {
	defer b.tidied.Done()
	for {
		if err := b.tidyOnce(); err != nil {
			b.logger.Warn("space was not given back", zap.Error(err))
		}
		select {
		case <-b.closing:
			return
		case <-b.purges:
		case <-b.store.Sparse():
		}
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
	live := make(map[uint64]int64)
	from, to := key1(chunkRows, uid), key1(chunkRows, uid+1)
	it, err := b.store.Rows(from, to)
	if err != nil {
		return false, err
	}
	n := 0
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if n++; n > purgeRowsAtOnce {
			to = slices.Clone(it.Key())
			break
		}
		var c chunk
		if c, err = decodeChunkRow(it.Key(), it.Value()); err == nil {
			live[c.ref.Segment] -= c.live()
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, err
	}
	done = n <= purgeRowsAtOnce
	rows := func(batch *store.Batch) error {
		for segment, bytes := range live {
			batch.AddLive(segment, bytes)
		}
		if done {
			if err := batch.Delete(key1(purgeRows, uid)); err != nil {
				return err
			}
		}
		return batch.DeleteRange(from, to)
	}
	err = b.do(context.Background(), &store.Command{
		Plan:  func(d *store.Draft) error { d.Index = rows; return nil },
		Frees: true,
	})
	return done, err
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
		if p == nil || m.queues[queueKey{p.queue.tenant, p.queue.name}] != p.queue {
			continue
		}
		d.Meta = appendChunkOp(d.Meta, opMove, c.partition, &c.chunk, len(d.Blobs), c.from)
		d.Blobs = append(d.Blobs, c.blob)
	}
	return nil
}
