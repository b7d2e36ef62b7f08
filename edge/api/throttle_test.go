package api

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// overDeadCell are handlers whose cell answers nothing.
func overDeadCell() *Handlers {
	return New(Config{
		Cell: deadCell{}, Catalog: catalog.New(deadCell{}, catalog.Config{DefaultPartitions: 1, MaxPartitions: 10, MaxTenants: 4, MaxCreates: 1}),
		Offsets: offsets.New(offsets.Config{Cell: deadCell{}}),
		Groups:  group.New(group.Config{}),
		Txns: txn.New(txn.Config{
			Store: NewTxnStore(deadCell{}), Limits: txn.Limits{Bytes: 1 << 20, Records: 1000, Body: 1 << 20, Partitions: 10_000},
			Open: tenancy.NewCeiling(10, 0), Staged: tenancy.NewCeiling(1<<20, 0),
		}),
		TxnMaxTimeout:     time.Minute,
		DecompressedBytes: 1 << 20, ProduceRecords: 1000, FetchResponse: 1 << 20, MetadataNames: 10, MetadataPartitions: 100,
		Answers: tenancy.NewCeiling(1<<40, 0), RoomWait: time.Minute,
	})
}

// B6: over the rate, every response that has the field says so, at every version,
// but for what keeps a member or a transaction alive and for logins.
func TestThrottleInEveryResponse(t *testing.T) {
	never := map[kmsg.Key]bool{
		kmsg.JoinGroup: true, kmsg.SyncGroup: true, kmsg.Heartbeat: true, kmsg.LeaveGroup: true,
		kmsg.OffsetCommit: true, kmsg.TxnOffsetCommit: true, kmsg.EndTxn: true,
		kmsg.ApiVersions: true, kmsg.SASLHandshake: true, kmsg.SASLAuthenticate: true,
	}
	h := overDeadCell()
	c := h.NewConn(sasl.New(nil), sni.Lane{})
	h.Prove(c, someScope(t, "key"))
	c.Poll = context.Background()
	asked := 0
	c.Throttle = func(time.Duration) time.Duration { asked++; return 1234 * time.Millisecond }
	told := 0
	eachVersion(func(row *Row, version int16) {
		req := row.newRequest()
		req.SetVersion(version)
		if d, ok := req.(interface{ Default() }); ok {
			d.Default()
		}
		req.SetVersion(version)
		if p, ok := req.(*kmsg.ProduceRequest); ok {
			p.Acks = -1
		}
		want := int32(1234)
		if never[kmsg.Key(row.Key)] {
			want = 0
		}
		before := asked
		resp := req.ResponseKind()
		out, err := h.Serve(context.Background(), c, throttledRequest(row, req), nil)
		if err != nil {
			t.Errorf("%s v%d: %v", row.Name, version, err)
			return
		}
		if row.Throttled() != (want > 0) || (asked > before) != (want > 0) {
			t.Errorf("%s v%d: throttled is %v", row.Name, version, row.Throttled())
		}
		if !hasThrottle(resp) {
			return
		}
		body := out[8:]
		if resp.IsFlexible() && row.Key != apiVersionsKey {
			body = out[9:]
		}
		if err := resp.ReadFrom(body); err != nil {
			t.Fatalf("%s v%d: %v", row.Name, version, err)
		}
		if got, _ := resp.(kmsg.ThrottleResponse).Throttle(); got != want {
			t.Errorf("%s v%d: throttle_time_ms %d, want %d", row.Name, version, got, want)
		} else if want > 0 {
			told++
		}
	})
	if told < 100 {
		t.Errorf("only %d responses have the field", told)
	}
}

// throttledRequest is a request as the reader hands it on.
func throttledRequest(row *Row, req kmsg.Request) Request {
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
	p, _ := wire.ParsePrefix(frame)
	return Request{Prefix: p, Row: row, Frame: frame}
}

// hasThrottle reports whether a response has the field at its version.
func hasThrottle(resp kmsg.Response) bool {
	r, ok := resp.(kmsg.SetThrottleResponse)
	if !ok {
		return false
	}
	r.SetThrottle(0)
	without := resp.AppendTo(nil)
	r.SetThrottle(0x01020304)
	with := resp.AppendTo(nil)
	r.SetThrottle(0)
	return !bytes.Equal(with, without) && bytes.Contains(with, kbin.AppendInt32(nil, 0x01020304))
}

// Where the cell asks for longer than the rate does, that stands; and the shorter
// of a run is not lost to it.
func TestThrottleTakesTheLonger(t *testing.T) {
	c := &Conn{Throttle: func(time.Duration) time.Duration { return 2 * time.Second }}
	row := &Table()[0]
	for _, test := range []struct{ cell, want int32 }{{0, 2000}, {1000, 2000}, {30_000, 30_000}} {
		resp := kmsg.NewPtrProduceResponse()
		resp.ThrottleMillis = test.cell
		c.throttle(row, kmsg.NewPtrProduceRequest(), resp)
		if resp.ThrottleMillis != test.want {
			t.Errorf("the cell asks for %d: told %d, want %d", test.cell, resp.ThrottleMillis, test.want)
		}
	}
}

// The timeout that a request names reaches whoever decides; acks=0, which has no
// answer, counts as well.
func TestThrottleKnowsTheTimeout(t *testing.T) {
	var named []time.Duration
	c := &Conn{Throttle: func(d time.Duration) time.Duration { named = append(named, d); return 0 }}
	row := &Table()[0]
	req := kmsg.NewPtrProduceRequest()
	req.TimeoutMillis = 1500
	c.throttle(row, req, kmsg.NewPtrProduceResponse())
	c.throttle(row, req, noReply{})
	c.throttle(row, kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataResponse())
	want := []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 0}
	for i := range want {
		if len(named) != len(want) || named[i] != want[i] {
			t.Fatalf("told of %v, want %v", named, want)
		}
	}
}
