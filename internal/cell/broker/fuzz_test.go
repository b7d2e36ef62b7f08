package broker

import (
	"testing"
	"time"
)

// FuzzOps decodes any bytes as the operations of an entry.
func FuzzOps(f *testing.F) {
	q := &queue{uid: 3, id: "id", name: "q", created: time.Unix(5, 0)}
	p := &partition{uid: 4, name: "0", queue: q}
	meta := appendQueueOp(nil, q, DefaultOptions())
	meta = appendPartitionOp(meta, p)
	meta = appendChunkOp(meta, opAppend, 4, &chunk{base: 1, count: 2, bytes: 3, time: 4}, 0, 0)
	meta = appendChunkOp(meta, opMove, 4, &chunk{base: 1, count: 2, bytes: 3, time: 4}, 0, 9)
	f.Add(appendDropOp(meta, q))
	f.Add([]byte{byte(opQueue), 1, 1})
	f.Fuzz(func(_ *testing.T, b []byte) { _ = eachOp(b, func(*op) error { return nil }) })
}

// FuzzBlob reads any bytes as the records of a chunk.
func FuzzBlob(f *testing.F) {
	b := appendBlobHeader(nil, newMessageID(time.Unix(1, 0)))
	b = appendRecord(b, &PushItem{Payload: []byte("payload"), TransactionID: "tx"})
	f.Add(appendRecord(b, &PushItem{}), int64(0), int64(2))
	f.Fuzz(func(_ *testing.T, b []byte, from, count int64) {
		s := span{from: from, to: count, maxBytes: 100, maxRecords: 10}
		_, _, _ = s.take(&chunk{base: 0, count: count}, b, nil)
	})
}
