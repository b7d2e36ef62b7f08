//go:build !race

// The race detector takes memory of its own with every allocation, so what is
// measured here would be the detector's.

package api

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// deadCell answers nothing.
type deadCell struct{}

var errDeadCell = errors.New("no cell")

func (deadCell) ListQueues(context.Context, tenancy.Scope) ([]proxyclient.Queue, error) {
	return nil, errDeadCell
}

func (deadCell) Configure(context.Context, tenancy.Scope, string, map[string]any) (string, error) {
	return "", errDeadCell
}

func (deadCell) KV(context.Context, tenancy.Scope, []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	return nil, errDeadCell
}

func (deadCell) Push(_ context.Context, _ tenancy.Scope, _ *proxyclient.PushBody, _, _ proxyclient.Mark, dst []proxyclient.PushResult) ([]proxyclient.PushResult, error) {
	return dst, errDeadCell
}

func (deadCell) Fetch(_ context.Context, _ tenancy.Scope, _ []proxyclient.FetchEntry, _ time.Duration, _ int,
	_ func(int, *batch.Record) error, dst []proxyclient.FetchResult,
) ([]proxyclient.FetchResult, error) {
	return dst, errDeadCell
}

func (deadCell) OffsetsForTimes(context.Context, tenancy.Scope, []proxyclient.TimeQuery) ([]proxyclient.TimeAnswer, error) {
	return nil, errDeadCell
}

// taken is the memory that fn took, garbage included.
func taken(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// heaviest is the heaviest body that is let through with the given list long. A
// few thousand entries use up what is free.
func heaviest(row *Row, m bodyOf) []byte {
	lo, hi := 1, 6000
	for lo < hi {
		m.entries = (lo + hi + 1) / 2
		if row.walk(m.version, m.bytes(row.shape)) != nil {
			hi = m.entries - 1
			continue
		}
		lo = m.entries
	}
	m.entries = lo
	return m.bytes(row.shape)
}

// worst calls fn with the worst bodies of a version: any list as long as it may
// be, of the shortest entries, with and without unknown tags.
func worst(row *Row, version int16, fn func(m bodyOf, body []byte)) {
	lists(row.shape.fields, version, nil, func(f *field, holds []*field) {
		for _, tags := range []int{0, 1, 9, maxTags} { // a map of Go's grows at 9
			for _, text := range []string{"", "tu"} {
				m := bodyOf{
					version: version, flexible: version >= row.shape.flexible, long: f, holds: holds,
					tags: tags, text: []byte(text),
				}
				if tags == 0 || m.flexible && f.kind == listField {
					fn(m, heaviest(row, m))
				}
			}
		}
	})
}

// weighed are the versions worth weighing: both ends of the window, and the
// first flexible one.
func weighed(row *Row, version int16) bool {
	return version == row.Min || version == row.Max || version == row.shape.flexible
}

// What is set aside for a request is what decoding it takes, garbage included,
// for the worst body that is let through.
func TestWeightIsTheTruth(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		if !weighed(row, version) {
			return
		}
		worst(row, version, func(m bodyOf, body []byte) {
			var err error
			got := int64(len(body)) + taken(func() { _, err = row.decode(version, body) })
			if err != nil {
				t.Fatalf("%s v%d: %v", row.Name, version, err)
			}
			if most := row.Weigh(len(body)); got > most {
				t.Errorf("%s v%d, %d bytes, %d tags, names of %d: %d bytes of memory, %d set aside",
					row.Name, version, len(body), m.tags, len(m.text), got, most)
			}
		})
	})
}

// The same with what a handler makes for each entry of the request, its answer
// included. What it makes for names has limits of its own (MetadataNames).
func TestWeightHoldsTheAnswer(t *testing.T) {
	h := New(Config{
		Cell: deadCell{}, Catalog: catalog.New(deadCell{}, catalog.Config{DefaultPartitions: 1, MaxPartitions: 10, MaxTenants: 4, MaxCreates: 1}),
		Offsets:           offsets.New(offsets.Config{Cell: deadCell{}}),
		DecompressedBytes: 1 << 20, ProduceRecords: 1000, FetchResponse: 1 << 20, MetadataNames: 10, MetadataPartitions: 100,
	})
	c := h.NewConn(nil, sni.Lane{})
	h.Prove(c, someScope(t))
	c.Poll = context.Background()
	eachVersion(func(row *Row, version int16) {
		if row.Phase != AfterLogin || !weighed(row, version) {
			return
		}
		worst(row, version, func(m bodyOf, body []byte) {
			var err error
			got := int64(len(body)) + taken(func() {
				var req kmsg.Request
				if req, err = row.decode(version, body); err == nil {
					_, err = row.serve(context.Background(), h, c, Call{Conn: c, Version: version}, req)
				}
				c.giveBack(&h.scratch)
			})
			if err != nil && !errors.As(err, new(*wire.Close)) {
				t.Fatalf("%s v%d: %v", row.Name, version, err)
			}
			if most := row.Weigh(header + len(body)); got > most {
				t.Errorf("%s v%d, %d bytes, %d tags, names of %d: %d bytes of memory, %d set aside",
					row.Name, version, len(body), m.tags, len(m.text), got, most)
			}
		})
	})
}

// header is the shortest header of a request.
const header = wire.PrefixBytes + 2

// verified answers every claim.
type verified struct{}

func (verified) ListQueuesAs(context.Context, tenancy.Claim) (int, error) { return 0, nil }

func (verified) Identify(context.Context, tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{}, nil
}

func someScope(t *testing.T) tenancy.Scope {
	t.Helper()
	p, err := tenancy.NewVerifier[int](verified{}, tenancy.VerifierConfig{}).Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret("key"), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}

// A body of 20,000 entries of nothing is refused wherever they would take more
// than their bytes allow, and longer entries of the same number are not.
func TestWeightLimit(t *testing.T) {
	const n = 20_000
	eachVersion(func(row *Row, version int16) {
		lists(row.shape.fields, version, nil, func(f *field, holds []*field) {
			m := bodyOf{version: version, flexible: version >= row.shape.flexible, long: f, holds: holds, entries: n}
			body := m.bytes(row.shape)
			swollen := int64(n*f.size) > row.Weigh(len(body))
			if err := row.walk(version, body); errors.Is(err, errSwollen) != swollen && swollen {
				t.Errorf("%s v%d: %d entries in %d bytes: %v", row.Name, version, n, len(body), err)
			}
		})
	})
}
