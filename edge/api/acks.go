package api

import (
	"encoding/binary"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// WantsNoAnswer reports a Produce with acks=0, by the few bytes that say so. One
// that does not decode is none.
func WantsNoAnswer(r Request) bool {
	if r.Row.Key != produceKey {
		return false
	}
	_, b, err := wire.ParseHeader(r.Frame, r.Version >= firstFlexibleProduce)
	if err != nil {
		return false
	}
	if b = skipTransactionalID(b, r.Version); len(b) < 2 {
		return false
	}
	return binary.BigEndian.Uint16(b) == 0
}

// Versions from which a Produce is flexible, and has a transactional id.
const (
	firstFlexibleProduce      = 9
	firstTransactionalProduce = 3
)

// skipTransactionalID returns what follows the first field of a Produce; nil
// where it is cut short.
func skipTransactionalID(b []byte, version int16) []byte {
	n := 0
	switch {
	case version < firstTransactionalProduce:
		return b
	case version < firstFlexibleProduce:
		if len(b) < 2 {
			return nil
		}
		n, b = int(int16(binary.BigEndian.Uint16(b))), b[2:]
	default:
		size, used := binary.Uvarint(b)
		if used <= 0 || size > uint64(len(b)) {
			return nil
		}
		n, b = int(size)-1, b[used:]
	}
	if n > len(b) {
		return nil
	}
	return b[max(n, 0):]
}
