package noninterference

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// world is a system on which scripts run, one after the other: each run has a
// gateway of its own and tenants of its own, the cell stays.
type world struct {
	t     *testing.T
	rig   *rig.Rig
	table []api.Row
	acts  map[string]op
	now   moment // of gateway and cell
	open  int    // connections
	run   int

	patience time.Duration     // with one answer
	found    map[string]string // what is wrong with a script
}

// moment is a clock that stands still until it is moved. It is safe for
// concurrent use.
type moment struct{ at atomic.Pointer[time.Time] }

func (m *moment) read() time.Time { return *m.at.Load() }

func (m *moment) set(to time.Time) { m.at.Store(&to) }

// tick is how far B's every step moves the clock: what is kept for some seconds
// is kept for some steps, with A and without.
const tick = 300 * time.Millisecond

// ceiling is that of everything that is counted. A quarter is kept for tenants
// that hold no more, and B never does.
const ceiling = 8

func newWorld(t *testing.T) *world {
	w := &world{t: t, table: api.Table(), acts: map[string]op{}, patience: patience, found: map[string]string{}}
	w.now.set(time.Now())
	for _, o := range slices.Concat(ordinary(), hostile(), events()) {
		w.acts[o.name] = o
	}
	w.rig = rig.Start(t, func(o *rig.Options) {
		o.Plain = true
		o.Clock = w.now.read
		o.Config = configure
	})
	w.rig.StopGateway(t)
	return w
}

func configure(c *config.Config) {
	c.Group.JoinDelay = 0
	c.DefaultPartitions = firstWidth
	c.MaxConnections, c.MaxProducerStates, c.Txn.MaxOpen = ceiling, ceiling, ceiling
	c.Limits.Groups, c.Limits.FetchSessions, c.Limits.WaitingCommits = ceiling, ceiling, ceiling
	c.Limits.CatalogEntries, c.Limits.IdentityEntries, c.Limits.Lanes = ceiling, ceiling, ceiling
	c.Limits.RefusalHold, c.Limits.LimitHold = time.Millisecond, time.Millisecond // nobody reads what comes then
	c.Limits.RoomWait, c.DrainGrace = time.Second, time.Second
}

// play runs a script and returns what B was answered. Without A its steps are
// left out.
func (w *world) play(s script, counted *tally, withA bool) []string {
	w.run++
	if now := time.Now(); now.After(w.now.read()) {
		w.now.set(now) // deadlines of sockets are the wall's
	}
	w.rig.StartGateway(w.t)
	defer w.rig.StopGateway(w.t)
	began := w.now.read()
	clients := map[string]*client{b: w.client(b, began, counted)}
	if withA {
		clients[a] = w.client(a, began, counted)
	}
	defer func() {
		for _, c := range clients {
			for _, more := range append(c.hoard, c) {
				more.leave()
			}
		}
	}()
	for _, st := range s.steps {
		c, here := clients[st.who]
		if st.who == b {
			w.now.set(w.now.read().Add(tick))
		} else if !here {
			continue
		} else {
			c.neighbour = clients[b]
		}
		c.counted = counted.of(s.mode, st.who)
		c.out.add("%s", st)
		act, ok := w.acts[st.op]
		if !ok {
			w.t.Fatalf("nothing is called %q", st.op)
		}
		act.run(c, st.x, st.v)
	}
	return clients[b].out.lines
}

// client is a tenant of its own with a client that has done nothing.
func (w *world) client(who string, began time.Time, counted *tally) *client {
	slug := fmt.Sprintf("run-%d-%s", w.run, map[string]string{a: "a", b: "b"}[who])
	store := w.rig.Cell.Control()
	_, err := store.CreateCluster(control.NewCluster{Slug: slug})
	must(w.t, err)
	text, key, err := store.CreateKey(control.NewKey{Cluster: slug, Scopes: control.AllScopes()})
	must(w.t, err)
	return &client{world: w, slug: slug, key: text, keyID: key.ID, out: newTranscript(began)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
