package broker

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("the bytes end too early")

// decoder takes varints and strings off the front of bytes; the first failure
// sticks and everything after it is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 { return int64(d.uint()) }

// varint reads a number that may be negative.
func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func appendInt(dst []byte, n int64) []byte { return binary.AppendUvarint(dst, uint64(n)) }

// bytes aliases the input.
func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes(d.uint())) }

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.b = nil
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
