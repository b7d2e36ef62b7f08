package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of the parts every frame has.
const (
	// SizeBytes is the length prefix.
	SizeBytes = 4
	// PrefixBytes is what says which API a frame is: key, version and
	// correlation id.
	PrefixBytes = 8
	// MaxFrame is the largest frame of any API (kafka-surface §2).
	MaxFrame = 100 << 20
	// growFrom is how much of a body is read before more memory is taken: what
	// four hostile bytes can buy.
	growFrom = 64 << 10
	// growBy is how many times what has come is taken next.
	growBy = 4
)

// Errors of a frame that ends its connection.
var (
	// ErrShortFrame is a frame too small to name its API.
	ErrShortFrame = errors.New("frame is shorter than a request header")
)

// OversizeError is a declared length beyond the limit that applies.
type OversizeError struct {
	Declared uint32
	Limit    int
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("frame declares %d bytes, the limit is %d", e.Declared, e.Limit)
}

// Size decodes a length prefix. It is read as unsigned, so a negative length is
// a huge one and meets the limit.
func Size(b [SizeBytes]byte, limit int) (int, error) {
	n := binary.BigEndian.Uint32(b[:])
	if uint64(n) > uint64(limit) {
		return 0, &OversizeError{Declared: n, Limit: limit}
	}
	return int(n), nil
}

// Prefix is the start of a request, before any version is known to be ours.
type Prefix struct {
	Key           int16
	Version       int16
	CorrelationID int32
}

// ParsePrefix reads the first PrefixBytes of a frame's content.
func ParsePrefix(b []byte) (Prefix, error) {
	if len(b) < PrefixBytes {
		return Prefix{}, ErrShortFrame
	}
	return Prefix{
		Key:           int16(binary.BigEndian.Uint16(b)),
		Version:       int16(binary.BigEndian.Uint16(b[2:])),
		CorrelationID: int32(binary.BigEndian.Uint32(b[4:])),
	}, nil
}
