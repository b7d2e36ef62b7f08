package broker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Deduplication: within a queue's dedupWindowSeconds, an item whose
// transactionId its partition has seen is answered with the offset the first
// one got, and is not stored.
//
// The keys a gateway gives the records of an idempotent producer,
// qe:<producer id>:<epoch>:<partition>:<sequence>, follow each other, so a run
// of them is kept as one row. Every other key is a row of its own. Both kinds of
// row end with the offset: a key that comes again after its window gets another
// row, so an expired one can be removed at any time without looking for who
// wrote it again.
//
//	'i' partition uid, producer id, epoch, last sequence, offset of the first:  first sequence, time
//	'j' partition uid, hash of the key, offset:  time

// keyHash stands for a key that is no sequence.
type keyHash [16]byte

// producer is who numbers its records, in one partition.
type producer struct {
	partition uint64 // uid; 0 while it is not known
	id        uint64
	epoch     uint64
}

// keyRun is a run of items with one lane that have keys: consecutive sequences
// of one producer, or one other key.
type keyRun struct {
	from   int64 // position of the first item in the lane
	count  int64
	single bool
	hash   keyHash  // when single
	by     producer // else
	first  uint64   // sequence
}

func (r *keyRun) last() uint64 { return r.first + uint64(r.count) - 1 }

// joins says whether an item's key goes on where the run ends.
func (r *keyRun) joins(next *keyRun) bool {
	return !r.single && !next.single && r.by == next.by &&
		r.first+uint64(r.count) == next.first && r.from+r.count == next.from
}

const sequenceKeys = "qe:"

// runOf is the run of one item.
func runOf(key []byte, partition string, at int64) keyRun {
	r := keyRun{from: at, count: 1}
	rest, ok := bytes.CutPrefix(key, []byte(sequenceKeys))
	if ok {
		r.by.id, rest, ok = cutNumber(rest, math.MaxInt64)
	}
	if ok {
		r.by.epoch, rest, ok = cutNumber(rest, math.MaxInt32)
	}
	if n := len(partition); ok && len(rest) > n && string(rest[:n]) == partition && rest[n] == ':' {
		if r.first, ok = number(rest[n+1:], math.MaxInt32); ok {
			return r
		}
	}
	sum := sha256.Sum256(key)
	return keyRun{from: at, count: 1, single: true, hash: keyHash(sum[:])}
}

// cutNumber takes a number and the colon behind it off the front.
func cutNumber(s []byte, limit uint64) (n uint64, rest []byte, ok bool) {
	digits, rest, ok := bytes.Cut(s, []byte{':'})
	if !ok {
		return 0, nil, false
	}
	n, ok = number(digits, limit)
	return n, rest, ok
}

// number reads a whole number of at most limit. Only the one way to write a number
// is one: else two keys would be taken for the same.
func number(digits []byte, limit uint64) (n uint64, ok bool) {
	const mostDigits = 19 // of an int64; so many always fit an uint64
	if len(digits) == 0 || len(digits) > mostDigits || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= limit
}

// keySpan is where records with known keys lie: of a run that is kept.
type keySpan struct {
	first, last uint64
	offset      int64 // of first
}

type singleKey struct {
	partition uint64
	hash      keyHash
}

// plannedKeys are the keys of records that are planned and not applied.
type plannedKeys struct {
	spans   map[producer][]keySpan
	singles map[singleKey]int64
}

func (p *plannedKeys) empty() {
	p.spans, p.singles = emptied(p.spans), emptied(p.singles)
}

func (p *plannedKeys) add(uid uint64, r *keyRun, offset int64) {
	if r.single {
		p.singles[singleKey{uid, r.hash}] = offset
		return
	}
	by := r.by
	by.partition = uid
	p.spans[by] = append(p.spans[by], keySpan{r.first, r.last(), offset})
}

func appendRangePrefix(b []byte, uid uint64, by producer) []byte {
	b = binary.BigEndian.AppendUint64(append(b, rangeRows), uid)
	b = binary.BigEndian.AppendUint64(b, by.id)
	return binary.BigEndian.AppendUint32(b, uint32(by.epoch))
}

func appendRangeKey(b []byte, uid uint64, r *keyRun, offset int64) []byte {
	b = appendRangePrefix(b, uid, r.by)
	b = binary.BigEndian.AppendUint32(b, uint32(r.last()))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

func appendSingleKey(b []byte, uid uint64, hash keyHash, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(append(b, singleRows), uid)
	b = append(b, hash[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

const (
	rangeKeyBytes  = 1 + 8 + 8 + 4 + 4 + 8
	singleKeyBytes = 1 + 8 + 16 + 8
)

// rangeRow takes a row of a range apart.
func rangeRow(key, value []byte) (s keySpan, at int64, err error) {
	if len(key) != rangeKeyBytes {
		return s, 0, errShort
	}
	d := decoder{b: value}
	s.first, at = d.uint(), d.int()
	s.last = uint64(binary.BigEndian.Uint32(key[rangeKeyBytes-12:]))
	s.offset = int64(binary.BigEndian.Uint64(key[rangeKeyBytes-8:]))
	return s, at, d.err
}

// keyRowTime is when the record of a row of either kind was appended.
func keyRowTime(key, value []byte) (int64, error) {
	d := decoder{b: value}
	if key[0] == rangeRows {
		d.uint()
	}
	at := d.int()
	return at, d.err
}

// inWindow says whether a key seen at a time still counts. Both are in µs, the
// window is in seconds and may be as long as an int64 holds.
func inWindow(seen, now, window int64) bool { return (now-seen)/1e6 < window }

// The body of an opDedup after uid and time: per run, 0 and a hash or 1 and
// producer id, epoch, first sequence and count; then the offset.
func appendDedupOp(dst []byte, uid uint64, at int64, runs []keyRun, base int64) []byte {
	return appendOp(dst, opDedup, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uid)
		b = binary.AppendUvarint(b, uint64(at))
		for i := range runs {
			r := &runs[i]
			if r.single {
				b = append(b, 0)
				b = append(b, r.hash[:]...)
			} else {
				b = append(b, 1)
				b = binary.AppendUvarint(b, r.by.id)
				b = binary.AppendUvarint(b, r.by.epoch)
				b = binary.AppendUvarint(b, r.first)
				b = binary.AppendUvarint(b, uint64(r.count))
			}
			b = appendInt(b, base+r.from)
		}
		return b
	})
}

// eachKey decodes the runs of an opDedup, each with the offset of its first
// record.
func (o *op) eachKey(visit func(r *keyRun, offset int64) error) error {
	d := decoder{b: o.keys}
	for len(d.b) > 0 {
		var r keyRun
		if r.single = d.bytes(1)[0] == 0; r.single {
			copy(r.hash[:], d.bytes(uint64(len(r.hash))))
		} else {
			r.by.id, r.by.epoch, r.first, r.count = d.uint(), d.uint(), d.uint(), d.int()
		}
		offset := d.int()
		if d.err != nil {
			return d.err
		}
		if err := visit(&r, offset); err != nil {
			return err
		}
	}
	return nil
}

// applyDedup turns the keys of a push into rows.
func (m *machine) applyDedup(o *op, b *store.Batch) error {
	var key, value [64]byte
	return o.eachKey(func(r *keyRun, offset int64) error {
		if r.single {
			return b.Set(appendSingleKey(key[:0], o.uid, r.hash, offset), appendInt(value[:0], o.created))
		}
		return b.Set(appendRangeKey(key[:0], o.uid, r, offset), appendInt(binary.AppendUvarint(value[:0], r.first), o.created))
	})
}
