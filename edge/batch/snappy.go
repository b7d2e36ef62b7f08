package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/snappy"
)

// xerialHeader opens what Java's and most other producers call snappy: a magic
// of 8 bytes, then a version and a lowest readable version, both 1. Blocks
// follow, each a big-endian length and raw snappy.
const xerialHeader = "\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"

const (
	xerialMagicSize = 8 // readers compare the magic; some writers had other versions
	xerialBlock     = 32 << 10
	// snappyRatio is more than snappy's best: 3 bytes copy 64. A block that
	// declares more is a lie, found before memory is taken for it.
	snappyRatio = 22
)

// unsnappy decompresses src, framed or raw, over dst's memory. All lengths are
// declared, so all of them are added up and held against limit first.
func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	total := 0
	err := snappyBlocks(src, func(block []byte, size int) error {
		if size > limit-total {
			return fmt.Errorf("%w: snappy declares more than the %d bytes left", ErrTooLarge, limit)
		}
		if size > snappyRatio*len(block) {
			return fmt.Errorf("%w: a snappy block of %d bytes declares %d", ErrCorrupt, len(block), size)
		}
		total += size
		return nil
	})
	if err != nil {
		return nil, err
	}
	dst = sized(dst, total)
	at := 0
	err = snappyBlocks(src, func(block []byte, size int) error {
		// The strict decoder: the other takes S2's extension, which no
		// Kafka consumer could read if the batch were passed on as it is.
		if _, err := snappy.DecodeStrict(dst[at:at+size:at+size], block); err != nil {
			return fmt.Errorf("%w: snappy: %w", ErrCorrupt, err)
		}
		at += size
		return nil
	})
	return dst, err
}

// snappyBlocks calls fn with each block and its declared length. A header in
// the place of a block starts a concatenated stream.
func snappyBlocks(src []byte, fn func(block []byte, size int) error) error {
	if !isXerial(src) {
		return snappyBlock(src, fn)
	}
	for len(src) > 0 {
		if isXerial(src) {
			src = src[len(xerialHeader):]
			continue
		}
		if len(src) < 4 {
			return fmt.Errorf("%w: %d bytes after the last snappy block", ErrCorrupt, len(src))
		}
		size := uint64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size > uint64(len(src)) {
			return fmt.Errorf("%w: snappy block of %d bytes, %d left", ErrCorrupt, size, len(src))
		}
		if err := snappyBlock(src[:size], fn); err != nil {
			return err
		}
		src = src[size:]
	}
	return nil
}

func snappyBlock(block []byte, fn func(block []byte, size int) error) error {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return fmt.Errorf("%w: snappy: %w", ErrCorrupt, err)
	}
	return fn(block, size)
}

func isXerial(b []byte) bool {
	return len(b) >= len(xerialHeader) && string(b[:xerialMagicSize]) == xerialHeader[:xerialMagicSize]
}

// appendXerial appends raw in blocks of the size Java's writer uses.
func appendXerial(dst, raw []byte) []byte {
	dst = append(dst, xerialHeader...)
	var scratch []byte
	for len(raw) > 0 {
		n := min(len(raw), xerialBlock)
		block := snappy.Encode(scratch[:cap(scratch)], raw[:n])
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		dst = append(dst, block...)
		scratch, raw = block, raw[n:]
	}
	return dst
}
