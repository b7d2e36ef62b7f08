package batch

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
)

// lz4MaxHeader is the longest frame header in bytes: magic, FLG, BD, content
// size, dictionary id and the header's checksum.
const lz4MaxHeader = 4 + 1 + 1 + 8 + 4 + 1

// patchedLZ4 reads an LZ4 frame with the right checksum in its header. Writers
// of magic 0 took the checksum over the frame's magic as well (KIP-57), and
// readers of magic 0 and 1 have learned not to look at it: the message's own CRC
// covers it. The library does look; the caller's bytes stay as they are.
type patchedLZ4 struct {
	header [lz4MaxHeader]byte
	left   []byte // of header
	src    *bytes.Reader
}

// reset points p at a frame that checkLZ4 has let pass.
func (p *patchedLZ4) reset(frame []byte, src *bytes.Reader) io.Reader {
	size := lz4Descriptor + 1
	if frame[4]&lz4FlagSize != 0 {
		size += 8
	}
	if frame[4]&lz4FlagDict != 0 {
		size += 4
	}
	p.left = p.header[:copy(p.header[:size], frame)]
	p.left[size-1] = byte(xxh32(p.left[4:size-1]) >> 8)
	src.Reset(frame[size:])
	p.src = src
	return p
}

func (p *patchedLZ4) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return p.src.Read(b)
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// xxh32 is XXH32 with seed 0 of fewer than 16 bytes, which a frame's descriptor
// is. (The library has it, but not for others.)
func xxh32(b []byte) uint32 {
	const (
		prime1 uint32 = 2654435761
		prime2 uint32 = 2246822519
		prime3 uint32 = 3266489917
		prime4 uint32 = 668265263
		prime5 uint32 = 374761393
	)
	h := prime5 + uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h += binary.LittleEndian.Uint32(b) * prime3
		h = bits.RotateLeft32(h, 17) * prime4
	}
	for _, c := range b {
		h += uint32(c) * prime5
		h = bits.RotateLeft32(h, 11) * prime1
	}
	h ^= h >> 15
	h *= prime2
	h ^= h >> 13
	h *= prime3
	return h ^ h>>16
}
