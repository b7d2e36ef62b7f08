package batch

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// maxVarint32 is the longest zigzag varint that stands for an int32, in bytes.
const maxVarint32 = 5

// varint32 reads a zigzag varint that must fit an int32. n is 0 when b ends
// inside it, and negative when it is too long or too large.
func varint32(b []byte) (v int32, n int) {
	if len(b) > 0 && b[0] < 0x80 { // nearly every one: a length below 64
		u := b[0]
		return int32(u>>1) ^ -int32(u&1), 1
	}
	x, n := binary.Varint(b[:min(len(b), maxVarint32)])
	if n == 0 && len(b) >= maxVarint32 {
		return 0, -1
	}
	if x < math.MinInt32 || x > math.MaxInt32 {
		return 0, -1
	}
	return int32(x), n
}

// varint64 reads a zigzag varint; n is as for varint32.
func varint64(b []byte) (v int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		u := b[0]
		return int64(u>>1) ^ -int64(u&1), 1
	}
	return binary.Varint(b)
}

// varintLen is how many bytes v takes as a zigzag varint.
func varintLen(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
