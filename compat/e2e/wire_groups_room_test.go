package e2e

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// A request that waits for its group holds nothing of the memory that is set
// aside for requests: others of its tenant are read meanwhile.
func TestWireGroupParkedHoldsNoRoom(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.Group.JoinDelay, c.Limits.InFlightBytes = time.Hour, 1<<20
		}
	})
	m := newMember(t, r.Login(t, rig.Acme), "g", true)
	req := joinReq("g", "", "i", "t") // a static member is not told its id first
	req.Protocols[0].Metadata = make([]byte, 1<<20)
	m.Send(req)
	rig.Eventually(t, "the wait", func() bool { return r.Gateway.Groups().Members == 1 })
	other := newMember(t, r.Login(t, rig.Acme), "g", true)
	if code := other.heartbeat(); code != 25 {
		t.Errorf("a stranger's heartbeat meanwhile: code %d, want 25", code)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// A list of groups for which there is no memory is 15, which admin clients ask
// again after; one that fits is given.
func TestWireListGroupsRoom(t *testing.T) {
	r := rig.Start(t, noJoinDelay, func(o *rig.Options) {
		before := o.Config
		o.Config = func(c *config.Config) {
			before(c)
			c.Limits.AnswerBytes = 2000 // 1,500 for a tenant: five groups, not six
		}
	})
	w := r.Login(t, rig.Acme)
	req := kmsg.NewPtrListGroupsRequest()
	for n := range 7 {
		resp := w.Ask(req).(*kmsg.ListGroupsResponse)
		if fits := n <= 5; fits && (resp.ErrorCode != 0 || len(resp.Groups) != n) || !fits && (resp.ErrorCode != 15 || len(resp.Groups) != 0) {
			t.Errorf("%d groups: code %d, %d are listed", n, resp.ErrorCode, len(resp.Groups))
		}
		join := joinReq(string(rune('a'+n)), "", "instance", "t")
		if joined := w.Ask(join).(*kmsg.JoinGroupResponse); joined.ErrorCode != 0 {
			t.Fatalf("join: code %d", joined.ErrorCode)
		}
	}
}

// What members ask for and do not get is told once, not for each request: a
// rebalance timeout that is too long, and offsets that nobody may delete for
// what a member said that cannot be read.
func TestWireGroupWarnings(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	r := rig.Start(t, noJoinDelay, func(o *rig.Options) { o.Log = zap.New(core) })
	w := r.Login(t, rig.Acme)
	m := newMember(t, w, "g", true)
	req := joinReq("g", "", "i", "t")
	req.RebalanceTimeoutMillis, req.Protocols[0].Metadata = math.MaxInt32, []byte{1}
	for range 3 {
		joined := w.Ask(req).(*kmsg.JoinGroupResponse)
		if joined.ErrorCode != 0 {
			t.Fatalf("join: code %d", joined.ErrorCode)
		}
		req.MemberID = joined.MemberID
		code, codes := offsetDelete(t, m.Wire, "g", at{topic: "orders"})
		if code != 0 || !slices.Equal(codes, []int16{86}) {
			t.Errorf("offsets that a member may read: code %d, codes %v, want 86", code, codes)
		}
	}
	for _, line := range []string{
		"a member asks for a rebalance timeout that is too long: it counts as the longest there is",
		"offsets are kept: what a member of their group is subscribed to cannot be read",
	} {
		if n := logs.FilterMessage(line).Len(); n != 1 {
			t.Errorf("%q is logged %d times, want once", line, n)
		}
	}
}
