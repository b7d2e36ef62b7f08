package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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

// moodyCell gives records that name their tenant and partition, of any size and
// number, and now and then fails in the middle of them or refuses a partition.
type moodyCell struct{ listingCell }

var errMood = errors.New("mood")

func (moodyCell) Fetch(_ context.Context, s tenancy.Scope, entries []proxyclient.FetchEntry, _ time.Duration, _ int,
	sink func(int, *batch.Record) error, _ []proxyclient.FetchResult,
) ([]proxyclient.FetchResult, error) {
	out := make([]proxyclient.FetchResult, len(entries))
	shared := []byte("whoever looks at this later sees others' bytes")
	for i := range entries {
		size := []int{0, 10, 300, 5000, 40_000}[rand.IntN(5)]
		for n := range rand.IntN(30) {
			shared = append(shared[:0], ownText(s, entries[i].Partition)...)
			shared = append(shared, bytes.Repeat([]byte("x"), size)...)
			if err := sink(i, &batch.Record{Offset: int64(n), Value: shared}); err != nil {
				return nil, err
			}
			switch rand.IntN(500) {
			case 0:
				return nil, errMood
			case 1:
				panic("mood")
			}
		}
		out[i].HighWatermark = 100
		if rand.IntN(20) == 0 {
			out[i].Error = proxyclient.EntryOffsetOutOfRange
		}
	}
	return out, nil
}

func ownText(s tenancy.Scope, partition int32) string {
	return fmt.Sprintf("%s's %d ", s.ID(), partition)
}

// stingyClient takes so many bytes of an answer.
type stingyClient struct {
	bytes.Buffer
	most int
}

func (c *stingyClient) Write(b []byte) (int, error) {
	if c.Len()+len(b) > c.most {
		return 0, errMood
	}
	return c.Buffer.Write(b)
}

// Tenants whose answers lie in the same lent memory read what is theirs, whatever
// ends the answers before: a cell's failure, a panic, a client that is gone, no
// room. And the ceiling has everything back in the end.
func TestFetchMemoryIsNobodyElses(t *testing.T) {
	cell := moodyCell{listingCell{queues: []proxyclient.Queue{{Name: "orders", ID: "orders", Partitions: 1000}}}}
	ceiling := tenancy.NewCeiling(8<<20, 0.25)
	h := New(Config{
		Cell: cell, Catalog: catalog.New(cell, catalog.Config{DefaultPartitions: 1, MaxPartitions: 1 << 10, MaxTenants: 8}),
		Answers: ceiling, FetchResponse: 2 << 20, RoomWait: time.Minute,
	})
	var writers wire.Writers
	var all sync.WaitGroup
	for _, name := range []string{"acme", "globex", "initech", "umbrella"} {
		scope := someScope(t, name)
		all.Go(func() {
			c := h.NewConn(nil, sni.Lane{})
			h.Prove(c, scope)
			c.Poll = context.Background()
			for range 12 {
				client := &stingyClient{most: 64 << 20}
				if rand.IntN(4) == 0 {
					client.most = rand.IntN(1 << 20)
				}
				version := int16(4 + rand.IntN(9))
				if answerOnce(h, c, fetchAt(t, h, version, 1+rand.IntN(20)), &writers, client) == nil {
					onlyOwn(t, scope, version, client.Bytes())
				}
				if held := ceiling.Held(scope); held != 0 || c.memory.held != 0 || len(c.Lent()) != 0 {
					t.Errorf("%d bytes of the ceiling and %d of memory are held", held, c.memory.held)
				}
			}
		})
	}
	all.Wait()
}

// answerOnce is what a worker does with a request.
func answerOnce(h *Handlers, c *Conn, r Request, writers *wire.Writers, client *stingyClient) (err error) {
	defer func() {
		if recover() != nil {
			err = errMood
		}
	}()
	defer c.Written()
	out, err := h.Serve(context.Background(), c, r, nil)
	if err != nil {
		return err
	}
	return writers.Write(client, out, c.Lent())
}

func fetchAt(t *testing.T, h *Handlers, version int16, partitions int) Request {
	r := fetchOf(t, h, partitions)
	req := kmsg.NewPtrFetchRequest()
	req.Version = 11
	_, body, err := wire.ParseHeader(r.Frame, false)
	if err == nil {
		err = req.ReadFrom(body)
	}
	if err != nil {
		t.Error(err)
	}
	req.Version = version
	r.Frame = kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[wire.SizeBytes:]
	r.Prefix, _ = wire.ParsePrefix(r.Frame)
	return r
}

// onlyOwn reads an answer as clients do, and every record of it.
func onlyOwn(t *testing.T, scope tenancy.Scope, version int16, frame []byte) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	head := len(wire.BeginResponse(nil, 7, resp.IsFlexible()))
	if err := resp.ReadFrom(frame[head:]); err != nil {
		t.Error(err)
		return
	}
	for _, p := range resp.Topics[0].Partitions {
		if len(p.RecordBatches) == 0 {
			continue
		}
		b, rest, err := batch.Next(p.RecordBatches)
		if err == nil {
			err = batch.NewDecoder().Each(&b, &batch.Budget{Bytes: 64 << 20, Records: 1000}, func(r *batch.Record) error {
				if !bytes.HasPrefix(r.Value, []byte(ownText(scope, p.Partition))) {
					return fmt.Errorf("%s reads %.40q", scope.ID(), r.Value)
				}
				return nil
			})
		}
		if err != nil || len(rest) > 0 || p.ErrorCode != 0 {
			t.Errorf("partition %d, code %d, %d bytes behind its batch: %v", p.Partition, p.ErrorCode, len(rest), err)
			return
		}
	}
}
