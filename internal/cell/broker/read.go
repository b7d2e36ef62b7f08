package broker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// errMoved says that rows and log no longer fit because chunks were copied
// forward or removed since the rows were read.
var errMoved = errors.New("the chunks have moved")

// span is a stretch of a partition to read, and how much of it.
type span struct {
	part       *partition
	from, to   int64 // offsets; to is exclusive and at most the high watermark
	maxBytes   int64 // payload bytes; a first record is given even so
	maxRecords int
}

// read appends the records of a span to out, which holds what came before them.
func (b *Broker) read(s span, out []Record) ([]Record, error) {
	for tries := 0; s.from < s.to && s.maxRecords > 0; tries++ {
		chunks, err := b.chunksOf(s)
		if err != nil {
			return out, err
		}
		blobs, err := b.readChunks(chunks)
		if errors.Is(err, errMoved) && tries < maxTries {
			continue // they were copied forward: their rows say where to
		}
		if err != nil {
			return out, err
		}
		tries = 0
		full := false
		for i := 0; i < len(chunks) && !full; i++ {
			if out, full, err = s.take(&chunks[i], blobs[i], out); err != nil {
				return out, err
			}
		}
		if full {
			return out, nil
		}
	}
	return out, nil
}

// chunksOf reads the rows of the chunks that should fill the span.
func (b *Broker) chunksOf(s span) ([]chunk, error) {
	it, err := b.store.Rows(key1(chunkRows, s.part.uid), key1(chunkRows, s.part.uid+1))
	if err != nil {
		return nil, err
	}
	var room [8]chunk
	chunks := room[:0]
	bytes, count := int64(0), int64(0)
	for ok := it.SeekLT(key2(chunkRows, s.part.uid, uint64(s.from)+1)); ok; ok = it.Next() {
		c, derr := decodeChunkRow(it.Key(), it.Value())
		if derr != nil {
			err = derr
			break
		}
		if c.base >= s.to {
			break
		}
		chunks = append(chunks, c)
		if c.base >= s.from { // of the first chunk nobody knows what is left
			bytes += c.bytes
			count += c.count
		}
		if bytes >= s.maxBytes || count >= int64(s.maxRecords) {
			break
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err == nil && (len(chunks) == 0 || chunks[0].base > s.from || chunks[0].base+chunks[0].count <= s.from) {
		err = errMoved
	}
	return chunks, err
}

func (b *Broker) readChunks(chunks []chunk) ([][]byte, error) {
	refs := make([]store.Ref, len(chunks))
	for i := range chunks {
		refs[i] = chunks[i].ref
	}
	blobs, err := b.store.Read(refs, make([][]byte, 0, len(refs)))
	if errors.Is(err, store.ErrGone) {
		return nil, errMoved
	}
	return blobs, err
}

// take appends the records of one chunk and moves the span on. It reports
// whether no more may follow.
func (s *span) take(c *chunk, blob []byte, out []Record) ([]Record, bool, error) {
	r, err := readBlob(blob)
	if err != nil {
		return out, false, err
	}
	if c.base > s.from {
		return out, false, errMoved
	}
	r.skip(s.from - c.base)
	end := min(c.base+c.count, s.to)
	out = slices.Grow(out, int(max(0, min(end-s.from, int64(s.maxRecords)))))
	at := time.UnixMicro(c.time).UTC()
	for ; s.from < end && r.err == nil; s.from++ {
		n := int64(r.peek())
		if s.maxRecords == 0 || n > s.maxBytes && len(out) > 0 {
			return out, true, r.err
		}
		out = append(out, Record{Offset: s.from, AppendTime: at})
		r.next(&out[len(out)-1])
		s.maxBytes -= n
		s.maxRecords--
	}
	if r.err != nil {
		return out, false, fmt.Errorf("the chunk at offset %d: %w", c.base, r.err)
	}
	return out, s.maxBytes <= 0 || s.maxRecords == 0, nil
}
