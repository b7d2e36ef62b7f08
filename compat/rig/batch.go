package rig

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// Producer is the idempotent part of a batch's header.
type Producer struct {
	ID            int64
	Epoch         int16
	Seq           int32
	Transactional bool
}

// NoProducer is that of a batch without one.
func NoProducer() Producer { return Producer{ID: -1, Epoch: -1, Seq: -1} }

// Batch is an uncompressed batch; its records have no keys and one time.
func Batch(at time.Time, p Producer, values ...string) []byte {
	var w batch.Writer
	w.Reset(nil)
	for i, v := range values {
		w.Add(&batch.Record{Offset: int64(i), Timestamp: at.UnixMilli(), Value: []byte(v)})
	}
	b := w.Finish()
	const crcAt, attributesAt, producerAt = 17, 21, 43
	if p.Transactional {
		b[attributesAt+1] |= 1 << 4
	}
	binary.BigEndian.PutUint64(b[producerAt:], uint64(p.ID))
	binary.BigEndian.PutUint16(b[producerAt+8:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(b[producerAt+10:], uint32(p.Seq))
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attributesAt:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}
