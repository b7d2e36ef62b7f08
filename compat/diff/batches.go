package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// records makes a record batch of magic 2. edit, where given, has the last word
// on the header; length and CRC are then made true.
func records(at int64, values []string, edit ...func(*kmsg.RecordBatch)) []byte {
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(values)) - 1,
		FirstTimestamp: at, MaxTimestamp: at + int64(max(len(values)-1, 0)),
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(values)),
	}
	for i, v := range values {
		b.Records = append(b.Records, record(i, []byte("k"), []byte(v), nil)...)
	}
	for _, e := range edit {
		e(&b)
	}
	return seal(b.AppendTo(nil))
}

// record is one record; its time is its number of ms after the first.
func record(i int, key, value []byte, headers []byte) []byte {
	body := []byte{0}
	body = binary.AppendVarint(body, int64(i))
	body = binary.AppendVarint(body, int64(i))
	body = appendBytes(body, key)
	body = appendBytes(body, value)
	if headers == nil {
		headers = []byte{0}
	}
	body = append(body, headers...)
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func appendBytes(to, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(to, -1)
	}
	return append(binary.AppendVarint(to, int64(len(b))), b...)
}

// seal makes length and CRC of a batch true.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// packed compresses the records of a batch; codecs above 4 exist nowhere.
func packed(codec int16) func(*kmsg.RecordBatch) {
	return func(b *kmsg.RecordBatch) {
		b.Attributes |= codec
		var out bytes.Buffer
		switch codec {
		case 1:
			w := gzip.NewWriter(&out)
			_, _ = w.Write(b.Records)
			_ = w.Close()
		case 2:
			out.Write(s2.EncodeSnappy(nil, b.Records))
		case 3:
			w := lz4.NewWriter(&out)
			_, _ = w.Write(b.Records)
			_ = w.Close()
		case 4:
			w, _ := zstd.NewWriter(nil)
			out.Write(w.EncodeAll(b.Records, nil))
		default:
			return
		}
		b.Records = out.Bytes()
	}
}

// by makes a batch one of an idempotent producer.
func by(producer int64, epoch int16, sequence int32) func(*kmsg.RecordBatch) {
	return func(b *kmsg.RecordBatch) {
		b.ProducerID, b.ProducerEpoch, b.FirstSequence = producer, epoch, sequence
	}
}
