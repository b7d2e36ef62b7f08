package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Where the fields of a message lie, in bytes from its start (formats 0 and 1,
// KIP-32). Offset, length and magic are where a batch of format 2 has them.
const (
	offMessageCRC        = 12 // IEEE, of everything after it
	offMessageAttributes = 17
	offMessageTime       = 18 // magic 1 only

	magicV0 = 0
	magicV1 = 1

	// overheadV0 is a message of magic 0 without key and value, in bytes after
	// its length: CRC, magic, attributes, and two null lengths.
	overheadV0 = 4 + 1 + 1 + 4 + 4
	overheadV1 = overheadV0 + 8 // the timestamp

	// noTime is the timestamp of a record that has none.
	noTime = -1
	// undeclared is the NumRecords of a compressed message: it declares none.
	undeclared = -1
)

// MagicOf is the format of the batch or message that b begins with; ok is false
// if b is too short to tell, or its length is less than any format's.
func MagicOf(b []byte) (magic int8, ok bool) {
	if len(b) <= offMagic || int32(binary.BigEndian.Uint32(b[offLength:])) < overheadV0 {
		return 0, false
	}
	return int8(b[offMagic]), true
}

// message is one message of magic 0 or 1.
type message struct {
	offset     int64
	timestamp  int64 // −1 is none
	magic      int8
	attributes int8
	key, value []byte // nil is null
}

func (m *message) codec() Codec { return Codec(m.attributes & codecMask) }

// bounds cuts the message that b begins with: all of it, up to its end.
func bounds(b []byte) (raw []byte, err error) {
	if len(b) < lengthEnd {
		return nil, fmt.Errorf("%w: %d bytes where a message begins", ErrCorrupt, len(b))
	}
	length := int64(int32(binary.BigEndian.Uint32(b[offLength:])))
	if length < overheadV0 {
		return nil, fmt.Errorf("%w: message of %d bytes", ErrCorrupt, length)
	}
	if length > int64(len(b)-lengthEnd) {
		return nil, fmt.Errorf("%w: message of %d bytes, %d left", ErrCorrupt, length, len(b)-lengthEnd)
	}
	end := lengthEnd + int(length)
	return b[:end:end], nil
}

// checkMessageCRC is for a message whose bounds are known to be good.
func checkMessageCRC(raw []byte) error {
	got, want := crc32.ChecksumIEEE(raw[offMagic:]), binary.BigEndian.Uint32(raw[offMessageCRC:])
	if got != want {
		return fmt.Errorf("%w: CRC of a message is %08x, not %08x", ErrCorrupt, got, want)
	}
	return nil
}

// parseMessage reads a message whose bounds are known to be good.
func parseMessage(raw []byte) (m message, err error) {
	be := binary.BigEndian
	m = message{
		offset: int64(be.Uint64(raw)), timestamp: noTime,
		magic: int8(raw[offMagic]), attributes: int8(raw[offMessageAttributes]),
	}
	rest := raw[offMessageAttributes+1:]
	switch m.magic {
	case magicV0:
	case magicV1:
		if len(raw) < lengthEnd+overheadV1 {
			return message{}, fmt.Errorf("%w: message of magic 1 in %d bytes", ErrCorrupt, len(raw))
		}
		m.timestamp = int64(be.Uint64(raw[offMessageTime:]))
		rest = rest[8:]
	default:
		return message{}, fmt.Errorf("%w: message of magic %d", ErrInvalidRecord, m.magic)
	}
	var ok bool
	if m.key, rest, ok = sizedBytes(rest); !ok {
		return message{}, fmt.Errorf("%w: key length of a message", ErrCorrupt)
	}
	if m.value, rest, ok = sizedBytes(rest); !ok {
		return message{}, fmt.Errorf("%w: value length of a message", ErrCorrupt)
	}
	if len(rest) > 0 {
		return message{}, fmt.Errorf("%w: %d bytes after a message's value", ErrCorrupt, len(rest))
	}
	return m, nil
}

// sizedBytes reads a length of 4 bytes and that many; −1 is nil, 0 is empty.
func sizedBytes(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if size == nullLength {
		return nil, b, true
	}
	if size < 0 || size > int64(len(b)) {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}

// nextLegacy takes a compressed message off b, or the whole run of uncompressed
// ones of one magic: as a Batch of their own, messages of a few bytes each would
// take many times their size.
func nextLegacy(b []byte) (batch Batch, rest []byte, err error) {
	raw, err := bounds(b)
	if err != nil {
		return Batch{}, nil, err
	}
	if err := checkMessageCRC(raw); err != nil {
		return Batch{}, nil, err
	}
	m, err := parseMessage(raw)
	if err != nil {
		return Batch{}, nil, err
	}
	batch = Batch{
		Magic: m.magic, BaseOffset: m.offset, PartitionLeaderEpoch: -1,
		Attributes:     int16(m.attributes & (codecMask | attrLogAppendTime)),
		FirstTimestamp: m.timestamp, MaxTimestamp: m.timestamp,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}
	if m.codec() != None {
		batch.NumRecords, batch.body = undeclared, m.value
		return batch, b[len(raw):], nil
	}
	size := len(raw)
	for batch.NumRecords = 1; ; batch.NumRecords++ {
		n := sameRun(b[size:], m.magic)
		if n == 0 {
			break
		}
		size += n
	}
	batch.body = b[:size:size]
	return batch, b[size:], nil
}

// sameRun is the size of the message that b begins with, if that is a sound and
// uncompressed one of this magic; else 0. What is wrong with it is for the Next
// that begins there to say.
func sameRun(b []byte, magic int8) int {
	if len(b) <= offMessageAttributes || int8(b[offMagic]) != magic || b[offMessageAttributes]&codecMask != 0 {
		return 0
	}
	raw, err := bounds(b)
	if err != nil || checkMessageCRC(raw) != nil {
		return 0
	}
	return len(raw)
}

// eachLegacy is Each for magic 0 and 1.
func (d *Decoder) eachLegacy(b *Batch, budget *Budget, fn func(*Record) error) error {
	switch {
	case b.Codec() == Zstd: // younger than these formats (KIP-110)
		return fmt.Errorf("%w: zstd in a message of magic %d", ErrInvalidRecord, b.Magic)
	case b.Codec() != None && b.body == nil:
		return fmt.Errorf("%w: compressed message with a null value", ErrInvalidRecord)
	}
	defer d.release()
	if err := d.open(b, budget); err != nil {
		return err
	}
	return d.walkLegacy(b, budget, fn)
}

// walkLegacy reads messages to the end of what is decompressed: how many they
// are is declared nowhere, so each is charged as it comes.
func (d *Decoder) walkLegacy(b *Batch, budget *Budget, fn func(*Record) error) error {
	var last int64
	index := int64(0)
	for ; ; index++ {
		raw, err := d.win.nextMessage()
		if err == io.EOF {
			break
		}
		if err != nil {
			return d.verdict(err)
		}
		if budget.Records < 1 {
			return fmt.Errorf("%w: no record is left", ErrTooLarge)
		}
		budget.Records--
		if last, err = d.parseLegacy(raw, b, index); err != nil {
			return d.verdict(err)
		}
		if err := fn(&d.rec); err != nil {
			return err
		}
	}
	// The budget may have ended where a message does.
	if _, err := d.win.drain(); err != nil {
		return err
	}
	return b.checkLegacy(index, last)
}

// parseLegacy reads one message into d.rec and returns the offset it came with.
func (d *Decoder) parseLegacy(raw []byte, b *Batch, index int64) (int64, error) {
	wrapped := b.Codec() != None
	if wrapped { // others were checked by Next
		if err := checkMessageCRC(raw); err != nil {
			return 0, err
		}
	}
	m, err := parseMessage(raw)
	switch {
	case err != nil:
		return 0, err
	case m.magic != b.Magic:
		return 0, fmt.Errorf("%w: message of magic %d in one of magic %d", ErrInvalidRecord, m.magic, b.Magic)
	case m.codec() != None:
		return 0, fmt.Errorf("%w: a compressed message within one", ErrInvalidRecord)
	}
	d.rec = Record{Offset: index, Timestamp: m.timestamp, Key: m.key, Value: m.value}
	if wrapped && b.LogAppendTime() {
		d.rec.Timestamp = b.MaxTimestamp
	}
	return m.offset, nil
}

// checkLegacy refuses what Apache Kafka refuses of a compressed message at its
// end: nothing inside, or an offset of magic 1 that is less than the last inner
// one. Inner offsets there are relative and the wrapper has the last one's
// absolute offset; 0 is what some librdkafka wrote. What else the offsets are
// does not matter: the broker gives its own.
func (b *Batch) checkLegacy(count, last int64) error {
	if count == 0 {
		return fmt.Errorf("%w: compressed message without a message inside", ErrInvalidRecord)
	}
	if b.Magic == magicV1 && b.Codec() != None && b.BaseOffset != 0 && b.BaseOffset < last {
		return fmt.Errorf("%w: offset %d of a compressed message, last one inside is %d", ErrInvalidRecord, b.BaseOffset, last)
	}
	return nil
}

// nextMessage is the next message of magic 0 or 1, whole; io.EOF is the end. It
// is valid until the next call.
func (w *window) nextMessage() ([]byte, error) {
	if err := w.fill(lengthEnd); err != nil {
		return nil, err
	}
	head := w.buf[w.pos:]
	if len(head) == 0 {
		return nil, io.EOF
	}
	if len(head) < lengthEnd {
		return nil, fmt.Errorf("%w: %d bytes where a message begins", ErrCorrupt, len(head))
	}
	length := int64(int32(binary.BigEndian.Uint32(head[offLength:])))
	size := lengthEnd + length
	if length < overheadV0 || size > int64(w.most()) {
		return nil, fmt.Errorf("%w: message of %d bytes, %d left", ErrCorrupt, length, w.most()-lengthEnd)
	}
	if err := w.fill(int(size)); err != nil {
		return nil, err
	}
	raw, err := bounds(w.buf[w.pos:])
	if err != nil {
		return nil, err
	}
	w.pos += len(raw)
	return raw, nil
}
