package e2e

import (
	"io"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

func reverifySoon(o *rig.Options) {
	o.Config = func(c *config.Config) { c.Reverify, c.Group.JoinDelay = 200*time.Millisecond, time.Minute }
}

// B4: the connections of a revoked key close: an idle one, those in a long poll
// of Fetch and of JoinGroup, one that produces. Those of the tenant's other keys
// stay, and so does everybody while the cell is away.
func TestRevokedKey(t *testing.T) {
	r := rig.Start(t, reverifySoon)
	other, stranger := r.Login(t, rig.Acme2), r.Login(t, rig.Globex)
	s := startSide(t, r, "")
	other.Ask(wireMetadata("t"))
	idle, polling, joining, producing := r.Login(t, rig.Acme), r.Login(t, rig.Acme), r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	poll := wireFetch("t", 0, 0)
	poll.MinBytes, poll.MaxWaitMillis = 1, 50_000
	polling.Send(poll)
	join := joinReq("g", "", "instance", "t")
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 60_000, 60_000
	joining.Send(join)
	wireMustStore(t, producing, "t", 1, wireBatch{values: []string{"v"}})

	r.StopCell(t)
	away := rechecks(t, s)
	rig.Eventually(t, "three questions about each key in vain", func() bool { return rechecks(t, s) >= away+9 })
	if n := r.Gateway.Connections(); n != 6 || r.Gateway.Closed(wire.Revoked) != 0 {
		t.Fatalf("%d connections are left of 6 while the cell was away", n)
	}
	r.StartCell(t)

	r.Revoke(t, rig.Acme)
	for what, w := range map[string]*rig.Wire{"idle": idle, "in a long poll": polling, "waiting for its group": joining} {
		if _, err := io.ReadAll(w); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = w.Close()
	}
	produce := rig.Frame(wireProduce(-1, "t", 1, wireBatch{values: []string{"v"}}.bytes()), 1, "rig")
	for err := error(nil); err == nil; { // the cell's refusals come before the end
		if _, err = producing.Write(produce); err == nil {
			_, err = producing.ReadFrame()
		}
	}
	wireCounted(t, r, wire.Revoked, 4)
	wireAlive(t, stranger)
	wireMustStore(t, other, "t", 1, wireBatch{values: []string{"v"}})
	if n := r.Gateway.Connections(); n != 2 {
		t.Errorf("%d connections are left, want 2", n)
	}
}

// rechecks is how often the cell was asked about tokens that have connections.
func rechecks(t *testing.T, s side) int {
	t.Helper()
	_, body := s.get(t, "/metrics")
	m := regexp.MustCompile(`(?m)^queen_edge_login_checks_total\{call="identity",why="recheck"\} (\d+)$`).FindStringSubmatch(body)
	if m == nil {
		t.Fatal("re-checks are not counted")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A cell whose /auth/me refuses everybody while its listing works cuts nobody
// off, and asking costs one call of each for a credential, however many its
// connections.
func TestAuthMeRefusesEverybody(t *testing.T) {
	var asked, listed atomic.Int64
	cell := &faultyCell{}
	r := rig.Start(t, reverifySoon, func(o *rig.Options) { o.CellAt = cell.at(t) })
	var ws []*rig.Wire
	for range 20 {
		ws = append(ws, r.Login(t, rig.Acme))
	}
	cell.set(func(path, _ string) (status int, answer string) {
		switch path {
		case "GET /auth/me":
			asked.Add(1)
			return 401, ""
		case "GET /api/v1/resources/queues":
			listed.Add(1)
		}
		return 0, ""
	})
	rig.Eventually(t, "five rounds", func() bool { return listed.Load() >= 5 })
	if n := asked.Load(); n > 6 {
		t.Errorf("%d identity calls in five rounds", n)
	}
	for _, w := range ws {
		wireAlive(t, w)
	}
	if n := r.Gateway.Closed(wire.Revoked); n != 0 {
		t.Errorf("%d connections are called revoked", n)
	}
	if code := ws[0].Ask(wireMetadata()).(*kmsg.MetadataResponse); len(code.Brokers) != 1 {
		t.Errorf("%d brokers", len(code.Brokers))
	}
}
