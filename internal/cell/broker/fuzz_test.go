package broker

import (
	"fmt"
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
	writes := []kvWrite{{key: appendKVKey(nil, Tenant{1}, "ns", "key"), row: kvRow{version: 1, expires: 2, value: []byte("3")}, oldExpires: 4}}
	meta = appendKVOp(meta, Tenant{1}, kvOp{now: 5, rows: -1, bytes: 7}, writes)
	meta = appendDedupOp(meta, 4, 6, []keyRun{runOf([]byte("qe:1:2:0:3"), "0", 0), runOf([]byte("text"), "0", 1)}, 9)
	meta = appendTrimOp(meta, p, 8)
	f.Add(appendDropOp(meta, q))
	f.Add([]byte{byte(opQueue), 1, 1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = eachOp(b, func(o *op) error {
			if o.kind == opDedup {
				return o.eachKey(func(*keyRun, int64) error { return nil })
			}
			return o.eachWrite(func(*kvWrite) error { return nil })
		})
	})
}

// FuzzBlob reads any bytes as the records of a chunk.
func FuzzBlob(f *testing.F) {
	b := appendBlobHeader(nil, newMessageID(time.Unix(1, 0)))
	b = appendRecord(b, &PushItem{Payload: []byte("payload"), TransactionID: []byte("tx")}, false)
	b = appendRecord(b, &PushItem{Payload: []byte("payload"), TransactionID: []byte("qe:1:0:0:99")}, false)
	b = appendRecord(b, &PushItem{Payload: []byte("payload")}, true)
	f.Add(appendRecord(b, &PushItem{}, false), int64(0), int64(4))
	f.Add(appendRecord(b, &PushItem{}, true), int64(2), int64(4))
	f.Fuzz(func(_ *testing.T, b []byte, from, count int64) {
		s := span{from: from, to: count, maxBytes: 100, maxRecords: 10}
		_, _, _ = s.take(&chunk{base: 0, count: count}, b, nil)
	})
}

// FuzzKeyRun takes any text as a transaction id: what is read as a sequence is
// written in no other way.
func FuzzKeyRun(f *testing.F) {
	f.Add("qe:1:2:0:3", "0")
	f.Add("qe:9223372036854775807:2147483647:a:b:2147483647", "a:b")
	f.Fuzz(func(t *testing.T, key, partition string) {
		r := runOf([]byte(key), partition, 0)
		if want := naiveRun(key, partition, 0); r != want {
			t.Errorf("%q in %q is %+v, want %+v", key, partition, r, want)
		}
		if again := fmt.Sprintf("qe:%d:%d:%s:%d", r.by.id, r.by.epoch, partition, r.first); !r.single && again != key {
			t.Errorf("%q in %q was read as %q", key, partition, again)
		}
	})
}
