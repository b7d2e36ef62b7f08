//go:build !race

// The race detector takes memory of its own with every allocation, so what is
// measured here would be the detector's.

package api

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

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
	h := overDeadCell()
	c := h.NewConn(nil, sni.Lane{})
	h.Prove(c, someScope(t, "key"))
	c.Poll = context.Background()
	eachVersion(func(row *Row, version int16) {
		if row.Phase != AfterLogin || !weighed(row, version) {
			return
		}
		worst(row, version, func(m bodyOf, body []byte) {
			var err error
			got := int64(len(body)) + taken(func() {
				var req kmsg.Request
				var resp kmsg.Response
				call := Call{Conn: c, Version: version}
				if req, call.entries, err = row.read(version, body); err == nil {
					err = h.answerRoom(context.Background(), row, call)
				}
				if err == nil {
					resp, err = row.serve(context.Background(), h, c, call, req)
				}
				if err == nil {
					_, err = c.appendResponse(nil, 1, resp)
				}
			})
			if err != nil && !errors.As(err, new(*wire.Close)) {
				t.Fatalf("%s v%d: %v", row.Name, version, err)
			}
			if most := row.Weigh(header+len(body)) + c.answer.taken; got > most {
				t.Errorf("%s v%d, %d bytes, %d tags, names of %d: %d bytes of memory, %d set aside",
					row.Name, version, len(body), m.tags, len(m.text), got, most)
			}
			c.Written()
		})
	})
}

// Metadata's answer has the size of the tenant, not of its request: what is
// taken of the ceiling for it is what it takes.
func TestMetadataWeighsItsAnswer(t *testing.T) {
	for _, test := range []struct{ topics, width, name int }{{1, 50_000, 1}, {5000, 1, 1}, {1000, 20, 200}, {1, 1, 1}} {
		var cell listingCell
		for i := range test.topics {
			name := strings.Repeat("n", test.name) + strconv.Itoa(i)
			cell.queues = append(cell.queues, proxyclient.Queue{Name: name, ID: name, Partitions: test.width})
		}
		h := New(Config{
			Catalog: catalog.New(cell, catalog.Config{
				DefaultPartitions: 1, MaxPartitions: 1 << 20, MaxTenants: 4, MaxCreates: 1,
				Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }, // the listing is read once
			}),
			MetadataNames: 10_000, MetadataPartitions: 200_000, Answers: tenancy.NewCeiling(1<<40, 0), RoomWait: time.Minute,
		})
		c := h.NewConn(nil, sni.Lane{})
		h.Prove(c, someScope(t, "key"))
		all, named := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataRequest()
		for i := range cell.queues {
			topic := kmsg.NewMetadataRequestTopic()
			topic.Topic = &cell.queues[i].Name
			named.Topics = append(named.Topics, topic)
		}
		for what, req := range map[string]*kmsg.MetadataRequest{"all": all, "named": named} {
			for _, version := range []int16{0, 5, 9, 13} {
				req.Version = version
				answer := func() {
					resp, err := h.metadata(context.Background(), Call{Scope: c.Scope(), Conn: c, Version: version}, req)
					if err == nil {
						_, err = c.appendResponse(nil, 1, resp)
					}
					if err != nil || len(resp.Topics) != test.topics || len(resp.Topics[0].Partitions) != test.width {
						t.Fatalf("%v, %d topics", err, len(resp.Topics))
					}
				}
				answer() // the listing is read
				c.Written()
				// Looking names up is bounded by their number (MetadataNames).
				lookups := int64(0)
				if what == "named" {
					lookups = taken(func() {
						names, _, _ := h.asked(req)
						h.cfg.Catalog.Resolve(context.Background(), c.Scope(), names, false)
					})
				}
				got := taken(answer) - lookups
				if most := c.answer.taken + 4<<10; got > most {
					t.Errorf("%s of %+v at v%d: %d bytes of memory, %d taken of the ceiling", what, test, version, got, most)
				}
				c.Written()
			}
		}
	}
}

// header is the shortest header of a request.
const header = wire.PrefixBytes + 2

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
