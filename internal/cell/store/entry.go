package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// An entry on disk, little endian:
//
//	 0 u32 CRC-32C of bytes 4 … end of meta
//	 4 u32 bytes of meta
//	 8 u32 number of blobs
//	12 u32 format
//	16 u64 number of the segment it was written to
//	24 u64 sequence number
//	32 u64 bytes of all blobs together
//	40     per blob: u32 bytes, u32 CRC-32C
//	       meta
//	       blobs
//
// The checksum does not run over the blobs: each has its own, so that a reader
// can check one blob without the others and its maker can compute it early.
const (
	entryHeader = 40
	blobRow     = 8
	entryFormat = 1

	// maxEntryBytes bounds one entry. A push of the contract has 16 MiB, a
	// transaction 8 MiB.
	maxEntryBytes = 1 << 30
	// maxMetaBytes and maxBlobs bound what a scan allocates for an entry
	// before its checksum has vouched for the lengths.
	maxMetaBytes = 256 << 20
	maxBlobs     = 1 << 22
)

// Blob is one run of bytes that is read back on its own.
type Blob struct {
	Data []byte
	CRC  uint32 // Checksum(Data)
}

// Ref says where a blob lies.
type Ref struct {
	Segment uint64
	Pos     int64
	Len     uint32
	CRC     uint32
}

// Entry is one durable entry as Machine.Apply and Scan see it. It is valid
// during that call only.
type Entry struct {
	Seq  uint64
	Meta []byte

	segment uint64
	pos     int64 // of the first byte of the header
	sizes   []blobSize
	head    []byte // everything but the blobs; in a scan only
	data    []byte // all blobs; in a scan only
}

type blobSize struct {
	len, crc uint32
	at       int64 // from the first byte of the first blob
}

// Blobs is the number of blobs.
func (e *Entry) Blobs() int { return len(e.sizes) }

// Ref says where blob i lies.
func (e *Entry) Ref(i int) Ref {
	s := e.sizes[i]
	return Ref{Segment: e.segment, Pos: e.blobsAt() + s.at, Len: s.len, CRC: s.crc}
}

// Blob gives blob i itself; in Scan only.
func (e *Entry) Blob(i int) Blob {
	s := e.sizes[i]
	return Blob{Data: e.data[s.at : s.at+int64(s.len)], CRC: s.crc}
}

func (e *Entry) blobsAt() int64 {
	return e.pos + entryHeader + int64(len(e.sizes))*blobRow + int64(len(e.Meta))
}

func (e *Entry) end() int64 {
	end := e.blobsAt()
	if n := len(e.sizes); n > 0 {
		end += e.sizes[n-1].at + int64(e.sizes[n-1].len)
	}
	return end
}

// Checksum is the CRC-32C a Blob carries.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// entryBytes is what an entry takes on disk.
func entryBytes(meta []byte, blobs []Blob) int64 {
	n := int64(entryHeader) + int64(len(blobs))*blobRow + int64(len(meta))
	for i := range blobs {
		n += int64(len(blobs[i].Data))
	}
	return n
}

// appendPrefix appends everything of an entry but its blobs.
func appendPrefix(dst []byte, segment, seq uint64, meta []byte, blobs []Blob) []byte {
	le := binary.LittleEndian
	from := len(dst)
	var data uint64
	for i := range blobs {
		data += uint64(len(blobs[i].Data))
	}
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint32(dst, uint32(len(meta)))
	dst = le.AppendUint32(dst, uint32(len(blobs)))
	dst = le.AppendUint32(dst, entryFormat)
	dst = le.AppendUint64(dst, segment)
	dst = le.AppendUint64(dst, seq)
	dst = le.AppendUint64(dst, data)
	for i := range blobs {
		dst = le.AppendUint32(dst, uint32(len(blobs[i].Data)))
		dst = le.AppendUint32(dst, blobs[i].CRC)
	}
	dst = append(dst, meta...)
	le.PutUint32(dst[from:], Checksum(dst[from+4:]))
	return dst
}

// prefix is a parsed entry header.
type prefix struct {
	crc, meta, blobs uint32
	segment, seq     uint64
	data             uint64
}

// errNoEntry says that the bytes are not an entry of this segment and sequence
// number: the log ends here.
var errNoEntry = errors.New("no entry")

// parseHeader checks the fixed part of an entry against what it must be and
// against room, the bytes left in the segment.
func parseHeader(h []byte, segment, seq uint64, room int64) (prefix, error) {
	le := binary.LittleEndian
	p := prefix{
		crc: le.Uint32(h), meta: le.Uint32(h[4:]), blobs: le.Uint32(h[8:]),
		segment: le.Uint64(h[16:]), seq: le.Uint64(h[24:]), data: le.Uint64(h[32:]),
	}
	switch {
	case p.segment != segment, p.seq != seq, le.Uint32(h[12:]) != entryFormat:
		return p, errNoEntry
	case p.meta > maxMetaBytes, p.blobs > maxBlobs, p.data > maxEntryBytes:
		return p, errNoEntry
	case entryHeader+int64(p.blobs)*blobRow+int64(p.meta)+int64(p.data) > room:
		return p, errNoEntry
	}
	return p, nil
}

// parseRest checks the checksum over head (the whole entry but its blobs) and
// takes it apart. The entry aliases head.
func parseRest(p prefix, head []byte, pos int64, sizes []blobSize) (Entry, error) {
	le := binary.LittleEndian
	e := Entry{Seq: p.seq, segment: p.segment, pos: pos}
	if Checksum(head[4:]) != p.crc {
		return e, errNoEntry
	}
	table := head[entryHeader : entryHeader+int(p.blobs)*blobRow]
	var at int64
	for ; len(table) > 0; table = table[blobRow:] {
		s := blobSize{len: le.Uint32(table), crc: le.Uint32(table[4:]), at: at}
		at += int64(s.len)
		sizes = append(sizes, s)
	}
	if uint64(at) != p.data {
		return e, errNoEntry
	}
	e.sizes, e.head = sizes, head
	e.Meta = head[entryHeader+int(p.blobs)*blobRow:]
	return e, nil
}
