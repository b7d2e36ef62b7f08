package api

import (
	"encoding/binary"
	"errors"
	"math"
)

// maxTags bounds the tagged fields of one struct of a large request
// (architecture.md, "bound before allocate"): kmsg keeps each in a map, which
// takes 40 times its bytes.
const maxTags = 32

var (
	errShortBody = errors.New("the request ends within a field")
	errTags      = errors.New("too many tagged fields")
	errNegative  = errors.New("a length is negative")
)

// walker goes over a body without decoding it. The first thing that does not fit
// stands in err, and everything after it is skipped. It says where a body ends,
// which kmsg does not.
type walker struct {
	b        []byte
	flexible bool
	err      error
}

// end reports what was wrong, bytes left over included.
func (w *walker) end() error {
	if w.err == nil && len(w.b) > 0 {
		return errLeftOver
	}
	return w.err
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

func (w *walker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.b = nil
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

// int32 reads a length or a count of the old shapes.
func (w *walker) int32() int {
	if len(w.b) < 4 {
		w.fail(errShortBody)
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(w.b)))
	w.b = w.b[4:]
	return n
}

// str goes over a string, which may be null.
func (w *walker) str() {
	if w.flexible {
		w.skip(w.uvarint() - 1)
		return
	}
	if len(w.b) < 2 {
		w.fail(errShortBody)
		return
	}
	n := int(int16(binary.BigEndian.Uint16(w.b)))
	w.b = w.b[2:]
	w.skip(n)
}

// bytes goes over bytes, which may be null.
func (w *walker) bytes() { w.skip(w.length()) }

// array goes over a list, each entry by item.
func (w *walker) array(item func()) {
	n := w.length()
	if n < -1 {
		w.fail(errNegative)
	}
	for ; n > 0 && w.err == nil; n-- {
		item()
	}
}

func (w *walker) length() int {
	if w.flexible {
		return w.uvarint() - 1
	}
	return w.int32()
}

// tags goes over the tagged fields that end a struct of a flexible request.
func (w *walker) tags() {
	if !w.flexible {
		return
	}
	n := w.uvarint()
	if n > maxTags {
		w.fail(errTags)
	}
	for ; n > 0 && w.err == nil; n-- {
		w.uvarint()
		w.skip(w.uvarint())
	}
}

// topic goes over what names a topic: an id from version ids on.
func (w *walker) topic(version, ids int16) {
	if version >= ids {
		w.skip(16)
		return
	}
	w.str()
}

const firstTopicID = 13 // version of Produce and of Fetch

// walkProduce goes over a Produce request, versions 3 to 13.
func walkProduce(version int16, body []byte) error {
	w := &walker{b: body, flexible: version >= 9}
	w.str()       // transactional id
	w.skip(2 + 4) // acks, timeout
	w.array(func() {
		w.topic(version, firstTopicID)
		w.array(func() {
			w.skip(4) // partition
			w.bytes()
			w.tags()
		})
		w.tags()
	})
	w.tags()
	return w.end()
}

// walkFetch goes over a Fetch request, versions 4 to 17.
func walkFetch(version int16, body []byte) error {
	w := &walker{b: body, flexible: version >= 12}
	since := func(first int16, n int) int {
		if version < first {
			return 0
		}
		return n
	}
	if version <= 14 {
		w.skip(4) // replica
	}
	w.skip(4 + 4 + 4 + 1 + since(7, 8)) // wait, least and most bytes, isolation, session
	partition := 4 + since(9, 4) + 8 + since(12, 4) + since(5, 8) + 4
	w.array(func() {
		w.topic(version, firstTopicID)
		w.array(func() {
			w.skip(partition)
			w.tags()
		})
		w.tags()
	})
	if version >= 7 { // forgotten topics
		w.array(func() {
			w.topic(version, firstTopicID)
			w.array(func() { w.skip(4) })
			w.tags()
		})
	}
	if version >= 11 {
		w.str() // rack
	}
	w.tags()
	return w.end()
}
