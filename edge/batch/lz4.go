package batch

import (
	"encoding/binary"
	"fmt"
)

// The LZ4 frame format, as far as walking it needs.
const (
	lz4Magic         = 0x184D2204
	lz4Descriptor    = 6 // where the optional fields begin: after magic, FLG and BD
	lz4FlagDict      = 1 << 0
	lz4FlagChecksum  = 1 << 2
	lz4FlagSize      = 1 << 3
	lz4FlagBlockSums = 1 << 4
	lz4Stored        = 1 << 31 // in a block's length: not compressed
)

// checkLZ4 proves that src is exactly one LZ4 frame, by its lengths alone. It
// stands before the library's reader, which would also follow legacy frames
// (a repeated legacy magic makes it recurse once per four bytes) and frames
// after the first (which Java's consumer does not read).
func checkLZ4(src []byte) error {
	le := binary.LittleEndian
	if len(src) < lz4Descriptor || le.Uint32(src) != lz4Magic {
		return fmt.Errorf("%w: no LZ4 frame", ErrCorrupt)
	}
	flags, sums, at := src[4], 0, lz4Descriptor
	if flags&lz4FlagSize != 0 {
		at += 8
	}
	if flags&lz4FlagDict != 0 {
		at += 4
	}
	at++ // the header's checksum
	if flags&lz4FlagBlockSums != 0 {
		sums = 4
	}
	for {
		if len(src)-at < 4 {
			return fmt.Errorf("%w: LZ4 frame without an end", ErrCorrupt)
		}
		size := int64(le.Uint32(src[at:]) &^ lz4Stored)
		last := le.Uint32(src[at:]) == 0
		at += 4
		if last {
			break
		}
		if size+int64(sums) > int64(len(src)-at) {
			return fmt.Errorf("%w: LZ4 block of %d bytes, %d left", ErrCorrupt, size, len(src)-at)
		}
		at += int(size) + sums
	}
	if flags&lz4FlagChecksum != 0 {
		at += 4
	}
	if at != len(src) {
		return fmt.Errorf("%w: LZ4 frame ends at %d of %d bytes", ErrCorrupt, at, len(src))
	}
	return nil
}
