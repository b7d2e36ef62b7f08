package api

import (
	"context"
	"fmt"
	"io"
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

// givingCell gives as many records of one size as are asked for.
type givingCell struct {
	listingCell
	record *batch.Record
}

func (g givingCell) Fetch(_ context.Context, _ tenancy.Scope, entries []proxyclient.FetchEntry, _ time.Duration, _ int,
	sink func(int, *batch.Record) error, dst []proxyclient.FetchResult,
) ([]proxyclient.FetchResult, error) {
	r := *g.record
	for i := range entries {
		for n := 0; n < entries[i].MaxBytes*3/4; n += len(r.Value) + 12 {
			r.Offset++
			if err := sink(i, &r); err != nil {
				return dst, err
			}
		}
		dst = append(dst, proxyclient.FetchResult{HighWatermark: 1 << 40})
	}
	return dst, nil
}

// fetchOf asks for so many partitions, 1 MiB of each.
func fetchOf(tb testing.TB, h *Handlers, partitions int) Request {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.SessionEpoch = 11, 50<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "orders"
	for p := range partitions {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes = int32(p), 1<<20
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return received(tb, h, req)
}

// fetchHandlers are over a cell that gives records of so many bytes.
func fetchHandlers(size int) *Handlers {
	cell := givingCell{
		listingCell{queues: []proxyclient.Queue{{Name: "orders", ID: "orders", Partitions: 1000}}},
		&batch.Record{Timestamp: 1790000000000, Value: make([]byte, size)},
	}
	return New(Config{
		Cell:          cell,
		Catalog:       catalog.New(cell, catalog.Config{DefaultPartitions: 1, MaxPartitions: 1 << 10, MaxTenants: 4}),
		Answers:       tenancy.NewCeiling(1<<30, 0.25),
		FetchResponse: 32 << 20,
		RoomWait:      10 * time.Second,
	})
}

// BenchmarkFetchRequest is a Fetch from its frame to the answer's bytes; the cell
// costs next to nothing.
func BenchmarkFetchRequest(b *testing.B) {
	for _, size := range []int{100, 1000} {
		for _, partitions := range []int{1, 4, 40, 100} {
			b.Run(fmt.Sprintf("record=%d/partitions=%d", size, partitions), func(b *testing.B) {
				h := fetchHandlers(size)
				c := h.NewConn(nil, sni.Lane{})
				h.Prove(c, someScope(b, "acme"))
				c.Poll = context.Background()
				r := fetchOf(b, h, partitions)
				var writers wire.Writers
				var own []byte
				b.ReportAllocs()
				for b.Loop() {
					out, err := h.Serve(context.Background(), c, r, own[:0])
					if err == nil {
						err = writers.Write(io.Discard, out, c.Lent())
					}
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(out) + wire.LentBytes(c.Lent())))
					c.Written()
					own = out
				}
			})
		}
	}
}
