package api

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Bounds of one request before it is decoded (architecture.md, "bound before
// allocate"). kmsg alone bounds only counts, by the bytes left.
const (
	// maxTags bounds the unknown tagged fields of one struct. No client is known
	// to send one.
	maxTags = 32
	// freeDecoded is what any request may take in memory beside what its bytes
	// allow (Row.weight): short requests are mostly names and counts.
	freeDecoded = 256 << 10
	// firstTagBytes and tagBytes are what kmsg's map of unknown tags takes for
	// its first entry, and for every other one while it grows.
	firstTagBytes = 400
	tagBytes      = 160
	// pointerBytes is the string behind a pointer.
	pointerBytes = 16
	// structBytes is a struct behind a pointer.
	structBytes = 64
	// allocStep is the least memory text takes.
	allocStep = 16
)

var (
	errShortBody = errors.New("the request ends within a field")
	errTags      = errors.New("too many tagged fields")
	errNegative  = errors.New("a length is negative")
	errSwollen   = errors.New("the request would take too much memory for its size")
)

// walker goes over a body without decoding it. The first thing that does not fit
// stands in err, and everything after it is skipped. It says where a body ends,
// which kmsg does not, and how much memory it will take.
type walker struct {
	b        []byte
	version  int16
	flexible bool
	cost     int // bytes of memory
	entries  int // of all lists
	err      error
}

// walk goes over a body of a row, and refuses what is too short, has bytes left
// over, or would take more memory than was set aside for it.
func (r *Row) walk(version int16, body []byte) error {
	_, err := r.count(version, body)
	return err
}

// count is walk that tells how many entries the lists of a body have together.
func (r *Row) count(version int16, body []byte) (int, error) {
	w := walker{b: body, version: version, flexible: version >= r.shape.flexible, cost: len(body)}
	w.fields(r.shape.fields)
	w.tags(r.shape.tags)
	if most := r.Weigh(len(body)); w.err == nil && int64(w.cost) > most {
		w.fail(fmt.Errorf("%w: %d bytes make %d", errSwollen, len(body), w.cost))
	}
	if w.err == nil && len(w.b) > 0 && !r.padded {
		return 0, errLeftOver
	}
	return w.entries, w.err
}

func (w *walker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.b = nil
}

func (w *walker) fields(fields []field) {
	for i := range fields {
		f := &fields[i]
		if w.version >= f.min && w.version <= f.max {
			w.field(f)
		}
	}
}

func (w *walker) field(f *field) {
	switch f.kind {
	case fixedField:
		w.skip(f.size)
	case stringField:
		w.str()
	case nullableField:
		w.cost += pointerBytes
		w.str()
	case bytesField:
		n := w.length()
		w.cost += max(n, 0) * f.size
		w.skip(n)
	case structField:
		w.fields(f.fields)
		w.tags(f.tags)
	case nullStructField:
		w.nullable(f)
	case listField, plainListField:
		w.list(f)
	}
}

// nullable goes over a struct that may be null, as kmsg does: only −1 says so.
func (w *walker) nullable(f *field) {
	if len(w.b) == 0 {
		w.fail(errShortBody)
		return
	}
	there := int8(w.b[0]) != -1
	w.skip(1)
	if there {
		w.cost += structBytes
		w.fields(f.fields)
		w.tags(f.tags)
	}
}

// list goes over a list, which may be null.
func (w *walker) list(f *field) {
	n := w.length()
	if n > len(w.b) { // an entry has a byte at least
		w.fail(errShortBody)
		return
	}
	if n < -1 {
		w.fail(errNegative)
	}
	for ; n > 0 && w.err == nil; n-- {
		w.cost += f.size
		w.entries++
		w.fields(f.fields)
		if f.kind == listField {
			w.tags(f.tags)
		}
	}
}

// skip goes over n bytes; a null, −1, has none.
func (w *walker) skip(n int) {
	switch {
	case n == -1:
	case n < 0: // null to kmsg, an error to Apache Kafka
		w.fail(errNegative)
	case n > len(w.b):
		w.fail(errShortBody)
	default:
		w.b = w.b[n:]
	}
}

// uvarint reads an unsigned varint of 32 bits, as kmsg does.
func (w *walker) uvarint() int {
	v, n := binary.Uvarint(w.b)
	if n <= 0 || n > 5 || v > math.MaxUint32 {
		w.fail(errShortBody)
		return 0
	}
	w.b = w.b[n:]
	return int(v)
}

// str goes over a string, which may be null.
func (w *walker) str() {
	n := 0
	switch {
	case w.flexible:
		n = w.uvarint() - 1
	case len(w.b) < 2:
		w.fail(errShortBody)
	default:
		n = int(int16(binary.BigEndian.Uint16(w.b)))
		w.b = w.b[2:]
	}
	if n > 1 { // a string of one byte takes no memory
		w.cost += (n + allocStep - 1) &^ (allocStep - 1)
	}
	w.skip(n)
}

// length reads the length of bytes or of a list.
func (w *walker) length() int {
	if w.flexible {
		return int(int32(w.uvarint() - 1)) // as kmsg: beyond 2 GiB it is negative
	}
	if len(w.b) < 4 {
		w.fail(errShortBody)
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(w.b)))
	w.b = w.b[4:]
	return n
}

// tags goes over the tagged fields that end a struct of a flexible request, into
// those that kmsg knows.
func (w *walker) tags(known []field) {
	if !w.flexible {
		return
	}
	n := w.uvarint()
	if n > maxTags {
		w.fail(errTags)
		return
	}
	unknown := 0
	for ; n > 0 && w.err == nil; n-- {
		number, size := w.uvarint(), 0
		if size = w.uvarint(); size > len(w.b) {
			w.fail(errShortBody)
			return
		}
		value := w.b[:size]
		w.b = w.b[size:]
		if f := tagOf(known, number); f != nil {
			w.known(f, value)
			continue
		}
		unknown++
	}
	if unknown > 0 {
		w.cost += firstTagBytes + (unknown-1)*tagBytes
	}
}

func tagOf(known []field, number int) *field {
	for i := range known {
		if known[i].size == number {
			return &known[i]
		}
	}
	return nil
}

// known goes over the value of a known tag: kmsg reads it at every flexible
// version, and lets bytes after it be.
func (w *walker) known(f *field, value []byte) {
	rest := w.b
	w.b = value
	w.field(&f.fields[0])
	if w.err == nil {
		w.b = rest
	}
}
