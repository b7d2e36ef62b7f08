//go:build !race

// As in weight_test.go.

package api

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// crumbCell gives one record of next to nothing of each partition.
type crumbCell struct{ listingCell }

func (crumbCell) Fetch(_ context.Context, _ tenancy.Scope, entries []proxyclient.FetchEntry, _ time.Duration, _ int,
	sink func(int, *batch.Record) error, _ []proxyclient.FetchResult,
) ([]proxyclient.FetchResult, error) {
	out := make([]proxyclient.FetchResult, len(entries))
	r := batch.Record{Value: []byte("v")}
	for i := range entries {
		r.Offset = entries[i].Offset
		if err := sink(i, &r); err != nil {
			return out, err
		}
		out[i].HighWatermark = 1 << 40
	}
	return out, nil
}

// A Fetch that has a record of each of its partitions takes no more than what was
// set aside for it; and a connection keeps next to nothing of it.
func TestFetchOfCrumbsWeighsItsAnswer(t *testing.T) {
	for _, partitions := range []int{100, 1000, 5000, 50_000} {
		cell := crumbCell{listingCell{queues: []proxyclient.Queue{{Name: "orders", ID: "orders", Partitions: 50_000}}}}
		h := New(Config{
			Cell: cell, Catalog: catalog.New(cell, catalog.Config{DefaultPartitions: 1, MaxPartitions: 1 << 20, MaxTenants: 4}),
			Answers: tenancy.NewCeiling(1<<40, 0), FetchResponse: 32 << 20, RoomWait: time.Minute,
		})
		c := h.NewConn(nil, sni.Lane{})
		h.Prove(c, someScope(t, "key"))
		c.Poll = context.Background()
		serve := func(r Request) int64 {
			return taken(func() {
				if _, err := h.Serve(context.Background(), c, r, nil); err != nil {
					t.Fatal(err)
				}
			})
		}
		serve(fetchOf(t, h, 1)) // reads the listing
		c.Written()
		r := fetchOf(t, h, partitions)
		got := int64(len(r.Frame)) + serve(r)
		if len(c.Lent()) != partitions {
			t.Fatalf("%d parts of %d partitions", len(c.Lent()), partitions)
		}
		most := r.Row.Weigh(len(r.Frame)+wire.SizeBytes) + c.answer.taken
		if got > most {
			t.Errorf("%d partitions: %d bytes of memory, %d set aside", partitions, got, most)
		}
		c.Written()
		if kept := cap(c.lent)*int(unsafe.Sizeof(wire.Lent{})) + 8*cap(c.memory.all); kept > 4<<10 {
			t.Errorf("%d partitions: the connection keeps %d bytes", partitions, kept)
		}
	}
}
