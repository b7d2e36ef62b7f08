package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

var (
	// ErrCorrupt says that bytes do not hold together: a length, a CRC, a codec
	// or a varint (Kafka code 2).
	ErrCorrupt = errors.New("corrupt record batch")
	// ErrMagic says that no batch or message was recognised (Kafka code 43).
	ErrMagic = errors.New("not a record batch of magic 0 to 2")
	// ErrTooLarge says that a budget is used up (Kafka code 10).
	ErrTooLarge = errors.New("record batch exceeds the budget")
	// ErrInvalidRecord says that a sound batch holds what a broker must refuse
	// (Kafka code 87): a count that is not true, a header without a name.
	ErrInvalidRecord = errors.New("invalid record")
)

// Where the fields of a batch lie, in bytes from its start (KIP-98).
const (
	offBaseOffset      = 0
	offLength          = 8 // counts the bytes after itself
	offLeaderEpoch     = 12
	offMagic           = 16 // the same place in formats 0 and 1
	offCRC             = 17
	offAttributes      = 21 // the first byte the CRC covers
	offLastOffsetDelta = 23
	offFirstTimestamp  = 27
	offMaxTimestamp    = 35
	offProducerID      = 43
	offProducerEpoch   = 51
	offBaseSequence    = 53
	offNumRecords      = 57
	headerSize         = 61

	lengthEnd = offLength + 4
	magicV2   = 2
)

// Bits of Batch.Attributes; the lowest three are the codec.
const (
	codecMask         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

// castagnoli is read only; hash/crc32 maps it to the CPU's own instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one batch of a produce request: its header is read and its CRC
// checked, its records are still compressed. It aliases the bytes given to Next.
//
// Of magic 0 and 1, which have messages and not batches, it is a compressed
// message or a run of uncompressed ones. LastOffsetDelta then says nothing, there
// is no producer, and the offset and the timestamps are the first message's.
type Batch struct {
	BaseOffset           int64
	PartitionLeaderEpoch int32
	Magic                int8
	Attributes           int16
	LastOffsetDelta      int32
	FirstTimestamp       int64 // ms; −1 is none
	MaxTimestamp         int64 // ms; −1 is none
	ProducerID           int64 // −1 is none
	ProducerEpoch        int16
	BaseSequence         int32
	NumRecords           int32 // as declared: not proved until Each returned nil; −1: not declared

	body []byte // the records as they came
}

// Codec is how the records are compressed. A value above Zstd is none that
// Kafka knows; Each refuses it.
func (b *Batch) Codec() Codec { return Codec(b.Attributes & codecMask) }

// IsTransactional says that the batch belongs to a transaction (KIP-98).
func (b *Batch) IsTransactional() bool {
	return b.Magic == magicV2 && b.Attributes&attrTransactional != 0
}

// IsControl says that the records are markers, which only a broker may write.
func (b *Batch) IsControl() bool { return b.Magic == magicV2 && b.Attributes&attrControl != 0 }

// LogAppendTime says that MaxTimestamp is the time of every record.
func (b *Batch) LogAppendTime() bool {
	return b.Magic != magicV0 && b.Attributes&attrLogAppendTime != 0
}

// Next takes the first batch off b; rest is what follows it. Bounds, magic and
// CRC are checked; nothing is decompressed or allocated. The errors are ErrMagic
// (also for bytes too few to show a magic) and ErrCorrupt.
func Next(b []byte) (batch Batch, rest []byte, err error) {
	if len(b) <= offMagic {
		return Batch{}, nil, fmt.Errorf("%w: %d bytes", ErrMagic, len(b))
	}
	switch m := int8(b[offMagic]); m {
	case magicV2:
		return nextV2(b)
	case magicV0, magicV1:
		return nextLegacy(b)
	default:
		return Batch{}, nil, fmt.Errorf("%w: magic %d", ErrMagic, m)
	}
}

func nextV2(b []byte) (batch Batch, rest []byte, err error) {
	length := int64(int32(binary.BigEndian.Uint32(b[offLength:])))
	if length < headerSize-lengthEnd {
		return Batch{}, nil, fmt.Errorf("%w: length %d is less than a header", ErrCorrupt, length)
	}
	if length > int64(len(b)-lengthEnd) {
		return Batch{}, nil, fmt.Errorf("%w: length %d of %d bytes left", ErrCorrupt, length, len(b)-lengthEnd)
	}
	end := lengthEnd + int(length)
	raw := b[:end:end]
	if got, want := crc32.Checksum(raw[offAttributes:], castagnoli), binary.BigEndian.Uint32(raw[offCRC:]); got != want {
		return Batch{}, nil, fmt.Errorf("%w: CRC is %08x, not %08x", ErrCorrupt, got, want)
	}
	return header(raw), b[end:], nil
}

// header reads the fields of a batch whose bounds are known to be good.
func header(raw []byte) Batch {
	be := binary.BigEndian
	return Batch{
		BaseOffset:           int64(be.Uint64(raw[offBaseOffset:])),
		PartitionLeaderEpoch: int32(be.Uint32(raw[offLeaderEpoch:])),
		Magic:                magicV2,
		Attributes:           int16(be.Uint16(raw[offAttributes:])),
		LastOffsetDelta:      int32(be.Uint32(raw[offLastOffsetDelta:])),
		FirstTimestamp:       int64(be.Uint64(raw[offFirstTimestamp:])),
		MaxTimestamp:         int64(be.Uint64(raw[offMaxTimestamp:])),
		ProducerID:           int64(be.Uint64(raw[offProducerID:])),
		ProducerEpoch:        int16(be.Uint16(raw[offProducerEpoch:])),
		BaseSequence:         int32(be.Uint32(raw[offBaseSequence:])),
		NumRecords:           int32(be.Uint32(raw[offNumRecords:])),
		body:                 raw[headerSize:],
	}
}

// checkCounts refuses what Apache Kafka's LogValidator refuses of a header: no
// records, or an offset range that is not the count.
func (b *Batch) checkCounts() error {
	if b.NumRecords <= 0 {
		return fmt.Errorf("%w: %d records", ErrInvalidRecord, b.NumRecords)
	}
	if b.LastOffsetDelta != b.NumRecords-1 {
		return fmt.Errorf("%w: last offset delta %d with %d records", ErrInvalidRecord, b.LastOffsetDelta, b.NumRecords)
	}
	if b.BaseOffset > math.MaxInt64-int64(b.LastOffsetDelta) {
		return fmt.Errorf("%w: base offset %d", ErrInvalidRecord, b.BaseOffset)
	}
	return nil
}
