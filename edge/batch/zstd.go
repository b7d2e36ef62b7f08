package batch

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdMaxWindow is the window of level 22, the highest a Java producer can
	// ask for (KIP-390): it declares 128 MiB however small the batch. Nothing
	// is reserved for a window: the output itself is the history.
	zstdMaxWindow = 128 << 20
	// zstdMaxBlock is the most one block can decompress to.
	zstdMaxBlock = 128 << 10
	// zstdSlack is memory past a limit: a whole block, so that crossing the
	// limit shows in the output's length (the decoder's error for a block that
	// does not fit is one for damage, too), and room for its fast copies.
	zstdSlack = zstdMaxBlock + 64
)

// Kinds of zstd block (RFC 8878, 3.1.1.2.2).
const (
	zstdRaw = iota
	zstdRLE
	zstdCompressed
)

func newZstd() (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // no goroutines
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdMaxWindow),
		zstd.WithDecodeAllCapLimit(true), // the memory given is the limit
	)
}

// unzstd decompresses src over dst's memory, at most limit bytes. More than
// keepScratch is only taken for input that has decompressed to that much.
func unzstd(dec *zstd.Decoder, dst, src []byte, limit int) ([]byte, error) {
	bound, err := zstdBound(src, limit)
	if err != nil {
		return nil, err
	}
	most := int(min(bound, int64(limit)))
	for _, size := range [...]int{min(most, max(keepScratch, cap(dst))-zstdSlack), most} {
		dst = sized(dst, size+zstdSlack)
		out, err := dec.DecodeAll(src, dst[:0:size+zstdSlack])
		over := len(out) > size || errors.Is(err, zstd.ErrDecoderSizeExceeded)
		if !over && err != nil {
			return nil, fmt.Errorf("%w: zstd: %w", ErrCorrupt, err)
		}
		if !over {
			return out, nil
		}
		if size == most {
			break
		}
	}
	return nil, fmt.Errorf("%w: zstd holds more than the %d bytes left", ErrTooLarge, limit)
}

// zstdBound walks frames and blocks by their lengths and returns the most they
// can decompress to. A frame may declare its size, which the decoder then holds
// it to; one above limit is refused here.
func zstdBound(src []byte, limit int) (int64, error) {
	var bound int64
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, fmt.Errorf("%w: zstd: %w", ErrCorrupt, err)
		}
		if h.Skippable {
			skip := int64(h.HeaderSize) + int64(h.SkippableSize)
			if skip > int64(len(src)) {
				return 0, fmt.Errorf("%w: zstd skippable frame of %d bytes", ErrCorrupt, skip)
			}
			src = src[skip:]
			continue
		}
		n, size, err := zstdBlocks(src[h.HeaderSize:])
		if err != nil {
			return 0, err
		}
		if h.HasCheckSum {
			n += 4
		}
		if n > len(src)-h.HeaderSize {
			return 0, fmt.Errorf("%w: zstd frame without its checksum", ErrCorrupt)
		}
		if h.HasFCS {
			if h.FrameContentSize > uint64(limit) {
				return 0, fmt.Errorf("%w: zstd declares %d bytes, %d left", ErrTooLarge, h.FrameContentSize, limit)
			}
			if h.FrameContentSize > uint64(size) {
				return 0, fmt.Errorf("%w: zstd declares %d bytes, blocks hold %d", ErrCorrupt, h.FrameContentSize, size)
			}
			size = int64(h.FrameContentSize)
		}
		bound += size
		src = src[h.HeaderSize+n:]
	}
	return bound, nil
}

// zstdBlocks walks the blocks of one frame: n bytes, at most size decompressed.
func zstdBlocks(src []byte) (n int, size int64, err error) {
	for {
		if len(src)-n < 3 {
			return 0, 0, fmt.Errorf("%w: zstd frame without an end", ErrCorrupt)
		}
		head := uint32(src[n]) | uint32(src[n+1])<<8 | uint32(src[n+2])<<16
		n += 3
		length := int(head >> 3)
		switch head >> 1 & 3 {
		case zstdRaw:
			size += int64(length)
			n += length
		case zstdRLE:
			size += int64(length)
			n++
		case zstdCompressed:
			size += zstdMaxBlock
			n += length
		default:
			return 0, 0, fmt.Errorf("%w: reserved zstd block", ErrCorrupt)
		}
		if n > len(src) {
			return 0, 0, fmt.Errorf("%w: zstd block ends at %d of %d bytes", ErrCorrupt, n, len(src))
		}
		if head&1 != 0 {
			return n, size, nil
		}
	}
}
