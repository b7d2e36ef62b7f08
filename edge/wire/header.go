package wire

import (
	"encoding/binary"
	"errors"
)

// ErrHeader is a request header that does not parse.
var ErrHeader = errors.New("malformed request header")

// maxHeaderTags bounds the tagged fields of one request header (KIP-482); none
// is defined for it.
const maxHeaderTags = 32

// Header is a request header of version 1, or 2 where flexible.
type Header struct {
	Prefix
	ClientID string // empty where null
}

// ParseHeader reads the header of a request and returns what follows it.
// Flexible headers end with tagged fields, which are skipped, after a null
// client id too.
func ParseHeader(b []byte, flexible bool) (Header, []byte, error) {
	p, err := ParsePrefix(b)
	if err != nil {
		return Header{}, nil, err
	}
	h := Header{Prefix: p}
	b = b[PrefixBytes:]
	if len(b) < 2 {
		return h, nil, ErrHeader
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	switch {
	case n < -1 || n > len(b):
		return h, nil, ErrHeader
	case n > 0:
		h.ClientID = string(b[:n])
		b = b[n:]
	}
	if !flexible {
		return h, b, nil
	}
	b, err = skipTags(b)
	return h, b, err
}

// skipTags skips one section of tagged fields.
func skipTags(b []byte) ([]byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxHeaderTags {
		return nil, ErrHeader
	}
	b = b[n:]
	for range count {
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, ErrHeader
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, ErrHeader
		}
		b = b[n+int(size):]
	}
	return b, nil
}

// BeginResponse starts a response frame in dst: room for the length and the
// response header (version 1 with an empty tag section where flexible).
func BeginResponse(dst []byte, correlationID int32, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

// EndResponse patches the length of the frame that starts at from in dst, of
// which lent bytes lie elsewhere, and reports whether it fits MaxFrame.
func EndResponse(dst []byte, from, lent int) bool {
	n := len(dst) + lent - from - SizeBytes
	binary.BigEndian.PutUint32(dst[from:], uint32(n))
	return n <= MaxFrame
}
