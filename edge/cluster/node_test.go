package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cells is a registry whose rows run out by the test's clock.
type cells struct {
	mu      sync.Mutex
	rows    map[int32]Row
	expires map[int32]time.Time
	version int64
	hold    chan struct{} // calls wait until it is closed; nil: they do not
	down    bool
}

type cellOf struct {
	*cells
	self Member
}

func (c cellOf) Exchange(ctx context.Context, call Call) (a Answer, err error) {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return a, errors.New("refused")
	}
	c.sweep()
	own := c.rows[c.self.ID]
	if call.Put && own.Version == call.Expect {
		c.version++
		a.Applied, a.Version = true, c.version
		c.rows[c.self.ID] = Row{Key: c.self.ID, Member: c.self, Version: c.version}
		c.expires[c.self.ID] = time.Now().Add(3 * time.Second)
	} else {
		a.Version, a.Winner = own.Version, own.Member
	}
	for _, r := range c.rows {
		a.Rows = append(a.Rows, r)
	}
	return a, nil
}

func (c cellOf) Remove(_ context.Context, version int64) (a Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep()
	own := c.rows[c.self.ID]
	if own.Version == version {
		delete(c.rows, c.self.ID)
		return Answer{Applied: true}, nil
	}
	return Answer{Version: own.Version, Winner: own.Member}, nil
}

func (c cellOf) sweep() {
	for id, at := range c.expires {
		if !time.Now().Before(at) {
			delete(c.rows, id)
		}
	}
}

func (c *cells) set(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

func newCells() *cells { return &cells{rows: map[int32]Row{}, expires: map[int32]time.Time{}} }

// run runs a node until the test ends it, or it ends.
func (c *cells) run(t *testing.T, id int32, incarnation int64) (n *Node, stop func() error) {
	t.Helper()
	self := member(id, incarnation)
	n = New(Config{Cluster: "c", Self: self, Heartbeat: time.Second, TTL: 3 * time.Second, Store: cellOf{c, self}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, func() error { cancel(); return <-done }
}

// Of three nodes at most one coordinates a group at any time, through a start, a
// stop and a death; and all agree in the end.
func TestOneOwnerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells()
		groups := []string{"a", "b", "c", "d", "e", "orders-consumer"}
		var nodes []*Node
		var stops []func() error
		watch := func(d time.Duration) (served int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				synctest.Wait()
				served = 0
				for _, g := range groups {
					owners := 0
					for _, n := range nodes {
						if n.Owns(g) {
							owners++
						}
					}
					if owners > 1 {
						t.Fatalf("%d nodes coordinate %s", owners, g)
					}
					served += owners
				}
			}
			return served
		}
		for id := range int32(3) {
			n, stop := c.run(t, id+1, int64(id+100))
			nodes, stops = append(nodes, n), append(stops, stop)
			if served := watch(2500 * time.Millisecond); served != len(groups) {
				t.Errorf("with %d nodes %d of %d groups have a coordinator", id+1, served, len(groups))
			}
		}
		if err := stops[1](); err != nil {
			t.Fatal(err)
		}
		if nodes[1].Coordinates() && nodes[1].Owns("orders-consumer") {
			t.Error("a node that has left owns a group")
		}
		if served := watch(1100 * time.Millisecond); served != len(groups) {
			t.Errorf("a heartbeat after a stop %d of %d groups have a coordinator", served, len(groups))
		}
		// The third dies: nothing is heard of it any more, its row stays.
		died := nodes[2]
		c.set(func() { c.rows[9] = c.rows[3] })
		if err := stops[2](); err != nil {
			t.Fatal(err)
		}
		c.set(func() { c.rows[3] = c.rows[9]; delete(c.rows, 9) })
		if served := watch(4100 * time.Millisecond); served != len(groups) {
			t.Errorf("after a death %d of %d groups have a coordinator", served, len(groups))
		}
		if len(nodes[0].View().Members) != 1 || died.Owns("a") {
			t.Errorf("the first sees %v", nodes[0].View().Members)
		}
		if err := stops[0](); err != nil || len(c.rows) != 0 {
			t.Errorf("%v; rows %v are left", err, c.rows)
		}
	})
}

// A call that hangs is given up in time for another, and a registry that does not
// answer at all takes the right to coordinate away, not the node.
func TestHangingRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells()
		n, stop := c.run(t, 1, 100)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if !n.Owns("g") {
			t.Fatal("a node alone does not coordinate")
		}
		c.set(func() { c.hold = make(chan struct{}) })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n.Coordinates() || len(n.View().Members) != 1 {
			t.Error("it coordinates although its row has run out")
		}
		c.set(func() { close(c.hold); c.hold = nil })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !n.Owns("g") {
			t.Error("it does not coordinate again")
		}
		// It ends within its budget whatever the registry does.
		c.set(func() { c.down = true })
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) > leaveBudget {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// Confirm looks: what has happened since the last heartbeat counts. Who asks
// meanwhile shares the call, and nobody hangs when the node has ended.
func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells()
		n, stop := c.run(t, 1, 100)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if !n.Owns("orders-consumer") {
			t.Fatal("a node alone does not coordinate")
		}
		c.set(func() {
			c.version++
			c.rows[2] = Row{Key: 2, Member: member(2, 7), Version: c.version}
			c.expires[2] = time.Now().Add(time.Minute)
		})
		before := c.version
		c.set(func() { c.hold = make(chan struct{}) })
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if yes, err := n.Confirm(t.Context(), "orders-consumer"); yes || err != nil {
					t.Errorf("it owns node 2's group: %v, %v", yes, err)
				}
			})
		}
		synctest.Wait()
		c.set(func() { close(c.hold); c.hold = nil })
		wg.Wait()
		if calls := c.version - before; calls < 1 || calls > 2 {
			t.Errorf("%d calls for five that asked at once", calls)
		}
		c.set(func() { c.hold = make(chan struct{}) })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := n.Confirm(ctx, "g"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an answer: %v", err)
		}
		c.set(func() { close(c.hold); c.hold = nil })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if yes, err := n.Confirm(t.Context(), "g"); yes || err != nil {
			t.Errorf("a node that has ended: %v, %v", yes, err)
		}
	})
}

// A twin ends with evidence; the first goes on. One that follows a stop begins
// at once.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCells()
		first, stop := c.run(t, 1, 100)
		time.Sleep(100 * time.Millisecond)
		_, ended := c.run(t, 1, 200)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		err := ended()
		var twin *TwinError
		if !errors.As(err, &twin) || twin.Other.Incarnation != 100 || twin.Versions[1] <= twin.Versions[0] {
			t.Fatalf("the twin ends with %v", err)
		}
		if !first.Owns("g") {
			t.Error("the first has lost its id to a twin")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		next, stopNext := c.run(t, 1, 300)
		synctest.Wait()
		if !next.Owns("g") {
			t.Error("the id is not free after a stop")
		}
		if err := stopNext(); err != nil {
			t.Fatal(err)
		}
	})
}
