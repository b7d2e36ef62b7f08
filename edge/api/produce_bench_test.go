package api

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// takingCell takes every push, whatever it holds.
type takingCell struct{ listingCell }

func (takingCell) Push(_ context.Context, _ tenancy.Scope, _ *proxyclient.PushBody, from, to proxyclient.Mark, dst []proxyclient.PushResult) ([]proxyclient.PushResult, error) {
	for i := range to.Items() - from.Items() {
		dst = append(dst, proxyclient.PushResult{Status: proxyclient.PushQueued, Offset: int64(i)})
	}
	return dst, nil
}

// idempotentBatch is one batch of n records of so many bytes, from a sequence on.
func idempotentBatch(n, size, sequence int) []byte {
	value := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	var w batch.Writer
	w.Reset(nil)
	for i := range n {
		w.Add(&batch.Record{Offset: int64(i), Timestamp: 1790000000000 + int64(i), Value: value})
	}
	b := w.Finish()
	const attributes, producer, crc = 21, 43, 17
	binary.BigEndian.PutUint64(b[producer:], 1<<61+12345)
	binary.BigEndian.PutUint16(b[producer+8:], 0)
	binary.BigEndian.PutUint32(b[producer+10:], uint32(sequence))
	binary.BigEndian.PutUint32(b[crc:], crc32.Checksum(b[attributes:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// received is a request as it comes off the wire.
func received(tb testing.TB, h *Handlers, req kmsg.Request) Request {
	tb.Helper()
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[wire.SizeBytes:]
	prefix, _ := wire.ParsePrefix(frame)
	row, err := h.Lookup(prefix)
	if err != nil {
		tb.Fatal(err)
	}
	return Request{Prefix: prefix, Row: row, Frame: frame}
}

// BenchmarkProduceRun is a run of requests that were received together, from
// their frames to the push bodies and back; the cell costs nothing.
func BenchmarkProduceRun(b *testing.B) {
	const partitions = 4
	cell := takingCell{listingCell{queues: []proxyclient.Queue{{Name: "orders", ID: "orders", Partitions: partitions}}}}
	h := New(Config{
		Cell:              cell,
		Catalog:           catalog.New(cell, catalog.Config{DefaultPartitions: 1, MaxPartitions: 1 << 10, MaxTenants: 4}),
		Inflated:          tenancy.NewCeiling(1<<30, 0.25),
		Producers:         tenancy.NewCeiling(1<<20, 0.25),
		RoomWait:          10 * time.Second,
		DecompressedBytes: 100 << 20, ProduceRecords: 1_000_000,
	})
	scope := someScope(b, "acme")
	for _, size := range []int{100, 1000} {
		for _, frames := range []int{1, 5} {
			b.Run(fmt.Sprintf("record=%d/frames=%d", size, frames), func(b *testing.B) {
				count := 1_000_000 / (size + 12)
				var run []Request
				bytes := int64(0)
				for i := range frames {
					records := idempotentBatch(count, size, i*count)
					req := kmsg.NewPtrProduceRequest()
					req.Version, req.Acks = 9, -1
					topic := kmsg.ProduceRequestTopic{Topic: "orders"}
					for p := range int32(partitions) {
						topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p, Records: records})
						bytes += int64(count * size)
					}
					req.Topics = append(req.Topics, topic)
					run = append(run, received(b, h, req))
				}
				var out []byte
				b.SetBytes(bytes)
				b.ReportAllocs()
				for b.Loop() {
					c := h.NewConn(nil, sni.Lane{}) // its producer begins anew
					h.Prove(c, scope)
					answers, ok, err := h.ServeProduce(context.Background(), c, run, out[:0])
					if err != nil || !ok {
						b.Fatal(ok, err)
					}
					out = answers
					c.Close()
				}
			})
		}
	}
}
