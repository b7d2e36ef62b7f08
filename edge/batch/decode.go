package batch

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	// minRecord is the least a record can be, in bytes: attributes, two deltas,
	// null key, null value, no headers, one byte each; one more tells its length.
	minRecord = 6
	// minHeader is an empty name and a null value, one byte each.
	minHeader = 2
	// maxHeaders bounds the headers of one record. A header of two bytes on the
	// wire takes 48 in memory, behind a codec that made the two out of nearly
	// none; this holds it to 3 MiB. Kafka has no such limit, and no client is
	// known to come near.
	maxHeaders = 64 << 10
	// keepHeaders is how long a headers slice a Decoder keeps between batches.
	keepHeaders = 1 << 10
)

// errShort is the end of the batch before its declared count.
var errShort = fmt.Errorf("%w: fewer records than declared", ErrInvalidRecord)

// Budget is what is left for one request: decompressed bytes and declared
// records. Each charges it before it takes memory, for uncompressed batches
// too. What a refused batch has used stays used.
type Budget struct {
	Bytes, Records int
}

// Decoder decompresses and walks the records of one batch at a time. It is
// reusable, and not safe for concurrent use.
type Decoder struct {
	win     window
	scratch []byte // at most keepScratch between batches
	src     bytes.Reader
	gz      *gzip.Reader
	zs      *zstd.Decoder
	lz      *lz4.Reader // of this batch only
	patched patchedLZ4
	headers []Header
	rec     Record
}

// NewDecoder returns a Decoder without any buffer or codec yet: it makes those
// it meets.
func NewDecoder() *Decoder { return &Decoder{} }

// Pool keeps Decoders for whoever needs one for the time of a request. The zero
// value is ready; it is safe for concurrent use.
type Pool struct{ p sync.Pool }

// Get takes a Decoder out of the pool, or makes one.
func (p *Pool) Get() *Decoder {
	if d, ok := p.p.Get().(*Decoder); ok {
		return d
	}
	return NewDecoder()
}

// Put gives d back; the caller no longer uses it.
func (p *Pool) Put(d *Decoder) { p.p.Put(d) }

// Each calls fn for every record in order. The Record and its slices are valid
// only during the call, and fn must not use this Decoder. Each offset is
// BaseOffset + delta; each timestamp FirstTimestamp + delta, or MaxTimestamp if
// the batch says LogAppendTime. Records of magic 0 have no timestamp (−1), those
// of magic 0 and 1 no headers, and their offset is just their place, from 0 on:
// what producers wrote there differs, and no broker has ever gone by it.
//
// An error means that the batch is refused as a whole: fn may have seen some of
// its records by then. Large streams are decompressed piece by piece, so their
// faults show late. The errors are ErrTooLarge (a budget; it goes before any
// fault of the records), ErrCorrupt (codec, varint, length), ErrInvalidRecord
// (count, offsets, header names), and what fn returned, as it is.
func (d *Decoder) Each(b *Batch, budget *Budget, fn func(*Record) error) error {
	if b.Magic != magicV2 {
		return d.eachLegacy(b, budget, fn)
	}
	if err := b.checkCounts(); err != nil {
		return err
	}
	if int(b.NumRecords) > budget.Records {
		return fmt.Errorf("%w: %d records, %d left", ErrTooLarge, b.NumRecords, budget.Records)
	}
	budget.Records -= int(b.NumRecords)
	defer d.release()
	if err := d.open(b, budget); err != nil {
		return err
	}
	return d.walk(b, fn)
}

// open points the window at the batch's records.
func (d *Decoder) open(b *Batch, budget *Budget) error {
	d.win.left = &budget.Bytes
	switch b.Codec() {
	case None:
		return d.whole(b.body, nil, budget)
	case Snappy:
		raw, err := unsnappy(d.scratch, b.body, budget.Bytes)
		return d.keep(raw, err, budget)
	case Zstd:
		if err := d.needZstd(); err != nil {
			return err
		}
		raw, err := unzstd(d.zs, d.scratch, b.body, budget.Bytes)
		return d.keep(raw, err, budget)
	case Gzip:
		return d.stream(d.gzip(b.body))
	case LZ4:
		return d.stream(d.lz4(b))
	}
	return fmt.Errorf("%w: %s codec", ErrCorrupt, b.Codec())
}

// keep is whole for memory of our own.
func (d *Decoder) keep(raw []byte, err error, budget *Budget) error {
	d.win.owned = true
	return d.whole(raw, err, budget)
}

// whole charges and takes records that are decompressed already.
func (d *Decoder) whole(raw []byte, err error, budget *Budget) error {
	if err != nil {
		return err
	}
	if len(raw) > budget.Bytes {
		return fmt.Errorf("%w: %d bytes, %d left", ErrTooLarge, len(raw), budget.Bytes)
	}
	budget.Bytes -= len(raw)
	d.win.buf = raw
	return nil
}

func (d *Decoder) stream(r io.Reader, err error) error {
	if err != nil {
		return err
	}
	d.win.buf, d.win.src, d.win.owned = d.scratch[:0], r, true
	return nil
}

func (d *Decoder) needZstd() (err error) {
	if d.zs == nil {
		d.zs, err = newZstd()
	}
	return err
}

func (d *Decoder) gzip(body []byte) (_ io.Reader, err error) {
	d.src.Reset(body)
	if d.gz == nil {
		d.gz = new(gzip.Reader)
	}
	if err := d.gz.Reset(&d.src); err != nil {
		return nil, fmt.Errorf("%w: gzip: %w", ErrCorrupt, err)
	}
	return d.gz, nil
}

// lz4 makes its reader anew: a used one keeps the last 64 KiB it read, through
// Reset, and a frame of linked blocks could copy them out, whoever's they were.
// Its block buffers are the library's and are reused.
func (d *Decoder) lz4(b *Batch) (io.Reader, error) {
	if err := checkLZ4(b.body); err != nil {
		return nil, err
	}
	if b.Magic != magicV2 {
		d.lz = lz4.NewReader(d.patched.reset(b.body, &d.src))
		return d.lz, nil
	}
	d.src.Reset(b.body)
	d.lz = lz4.NewReader(&d.src)
	return d.lz, nil
}

// release drops what points at the caller's memory, and memory too large to keep.
func (d *Decoder) release() {
	if d.lz != nil {
		d.lz.Reset(nil) // gives its block buffers back
		d.lz = nil
	}
	if d.win.owned && cap(d.win.buf) > cap(d.scratch) && cap(d.win.buf) <= keepScratch {
		d.scratch = d.win.buf[:0]
	}
	d.win = window{}
	d.src.Reset(nil)
	d.rec = Record{}
	if cap(d.headers) > keepHeaders {
		d.headers = nil
	}
	clear(d.headers[:cap(d.headers)])
}

// walk reads the declared number of records and proves that nothing follows.
func (d *Decoder) walk(b *Batch, fn func(*Record) error) error {
	for i := range b.NumRecords {
		raw, err := d.win.next()
		if err != nil {
			return d.verdict(err)
		}
		if err := d.parse(raw, b, i); err != nil {
			return d.verdict(err)
		}
		if err := fn(&d.rec); err != nil {
			return err
		}
	}
	left, err := d.win.drain()
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%w: %d bytes after the last record", ErrInvalidRecord, left)
	}
	return nil
}

// verdict lets a used-up budget go before a fault in the records, so that the
// answer to a decompression bomb is one and the same for every codec.
func (d *Decoder) verdict(fault error) error {
	if _, err := d.win.drain(); err != nil {
		return err
	}
	return fault
}

// parse reads one record into d.rec.
func (d *Decoder) parse(raw []byte, b *Batch, index int32) error {
	raw = raw[1:] // attributes: no bit is in use
	timeDelta, n := varint64(raw)
	if n <= 0 {
		return fmt.Errorf("%w: timestamp delta", ErrCorrupt)
	}
	raw = raw[n:]
	offsetDelta, n := varint32(raw)
	if n <= 0 {
		return fmt.Errorf("%w: offset delta", ErrCorrupt)
	}
	if offsetDelta != index {
		return fmt.Errorf("%w: offset delta %d of record %d", ErrInvalidRecord, offsetDelta, index)
	}
	r := &d.rec
	r.Offset = b.BaseOffset + int64(offsetDelta)
	r.Timestamp = b.FirstTimestamp + timeDelta
	if b.LogAppendTime() {
		r.Timestamp = b.MaxTimestamp
	}
	var ok bool
	if r.Key, raw, ok = nullable(raw[n:]); !ok {
		return fmt.Errorf("%w: key length", ErrCorrupt)
	}
	if r.Value, raw, ok = nullable(raw); !ok {
		return fmt.Errorf("%w: value length", ErrCorrupt)
	}
	return d.parseHeaders(raw)
}

// parseHeaders reads what is left of a record, which must be just its headers.
func (d *Decoder) parseHeaders(raw []byte) error {
	count, n := varint32(raw)
	if n <= 0 || count < 0 {
		return fmt.Errorf("%w: header count %d", ErrCorrupt, count)
	}
	raw = raw[n:]
	if int(count) > len(raw)/minHeader {
		return fmt.Errorf("%w: %d headers in %d bytes", ErrCorrupt, count, len(raw))
	}
	if count > maxHeaders {
		return fmt.Errorf("%w: %d headers in a record, at most %d", ErrTooLarge, count, maxHeaders)
	}
	headers := d.headers[:0]
	for range count {
		key, rest, ok := nullable(raw)
		if !ok {
			return fmt.Errorf("%w: header name length", ErrCorrupt)
		}
		if key == nil || !utf8.Valid(key) {
			return fmt.Errorf("%w: header name is null or not UTF-8", ErrInvalidRecord)
		}
		value, rest, ok := nullable(rest)
		if !ok {
			return fmt.Errorf("%w: header value length", ErrCorrupt)
		}
		headers = append(headers, Header{Key: key, Value: value})
		raw = rest
	}
	if len(raw) > 0 {
		return fmt.Errorf("%w: %d bytes after the headers", ErrCorrupt, len(raw))
	}
	d.headers, d.rec.Headers = headers, headers
	return nil
}

// nullable reads a length and that many bytes; −1 is nil, 0 is empty, not nil.
func nullable(b []byte) (v, rest []byte, ok bool) {
	size, n := varint32(b)
	if n <= 0 {
		return nil, nil, false
	}
	b = b[n:]
	if size == nullLength {
		return nil, b, true
	}
	if size < 0 || int(size) > len(b) {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}
