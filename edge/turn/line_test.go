package turn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cell struct{}

func (cell) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) { return struct{}{}, nil }

func (cell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()}, nil
}

// scopes are tenants that a cell has named.
func scopes(t testing.TB, names ...string) []tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[struct{}](cell{}, tenancy.VerifierConfig{})
	var out []tenancy.Scope
	for _, name := range names {
		proof, err := v.Verify(t.Context(), tenancy.NewClaim(tenancy.NewSecret(name), ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, proof.Scope)
	}
	return out
}

// crowd is a line with a fixed number of turns, and who got one, in their order.
type crowd struct {
	*Line
	mu     sync.Mutex
	served []string
	seats  map[string]*Seat
	wg     sync.WaitGroup
}

func newCrowd(limit int) *crowd {
	c := &crowd{Line: New(2, .25), seats: map[string]*Seat{}}
	c.set(limit)
	return c
}

// come has n requests of a tenant stand in line, one behind the other, each on a
// connection of its own.
func (c *crowd) come(name string, s tenancy.Scope, from, n int) {
	for i := from; i < from+n; i++ {
		seat := c.Enter(s)
		who := fmt.Sprint(name, i)
		c.mu.Lock()
		c.seats[who] = seat
		c.mu.Unlock()
		c.wg.Go(func() {
			seat.Take(nil)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.served = append(c.served, who)
		})
		synctest.Wait()
	}
}

// end ends the turn of one that was served.
func (c *crowd) end(who string, bytes int) {
	c.seats[who].Give(bytes)
	synctest.Wait()
}

// serveAll ends turns, the oldest first, until nobody is left, and returns the
// order in which they were got.
func (c *crowd) serveAll(cost func(who string) int) []string {
	for i := 0; ; i++ {
		c.mu.Lock()
		if i == len(c.served) {
			c.mu.Unlock()
			break
		}
		who := c.served[i]
		c.mu.Unlock()
		c.end(who, cost(who))
	}
	c.wg.Wait()
	for _, seat := range c.seats {
		seat.Leave()
	}
	return c.served
}

func free(string) int { return 0 }

func (c *crowd) check(t *testing.T) {
	t.Helper()
	c.Line.mu.Lock()
	defer c.Line.mu.Unlock()
	if c.held.n != 0 || len(c.next) != 0 || len(c.tenants) != 0 || c.stats.Waiting != 0 {
		t.Errorf("left behind: %d turns, %d tenants in line, %d tenants, %d waiting", c.held.n, len(c.next), len(c.tenants), c.stats.Waiting)
	}
}

// 200 requests of one tenant wait, and then one of another comes: it is served at
// once, by the turn that one tenant leaves to others, and the next one after one
// more of the first at most.
func TestOneIsNotBehindMany(t *testing.T) {
	s := scopes(t, "noisy", "quiet")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(4)
		c.come("n", s[0], 0, 200)
		if len(c.served) != 3 {
			t.Fatalf("%v have one of 4 turns", c.served)
		}
		c.come("q", s[1], 0, 3)
		if got := c.served[3:]; !slices.Equal(got, []string{"q0"}) {
			t.Fatalf("%v were served when the other came", got)
		}
		order := c.serveAll(free)
		want := []string{"n0", "n1", "n2", "q0"}
		for i := range 2 { // n1 and q0 end, and so on: by turns
			want = append(want, fmt.Sprint("n", 3+i))
		}
		if at := slices.Index(order, "q2"); at > 8 {
			t.Errorf("the third of the quiet tenant was number %d: %v", at, order[:at+1])
		}
		for i, who := range order {
			if who == "q1" && i > 6 {
				t.Errorf("the second was number %d: %v", i, order[:i+1])
			}
		}
		if !slices.Equal(order[:4], want[:4]) {
			t.Errorf("order %v", order[:8])
		}
		c.check(t)
	})
}

// Tenants in line are taken by turns, whoever came first and however many wait;
// within a tenant the oldest is first.
func TestOrder(t *testing.T) {
	s := scopes(t, "a", "b", "c")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		c.come("a", s[0], 0, 1) // one of two turns: the other is for others
		c.come("b", s[1], 0, 1) // has it
		c.come("a", s[0], 1, 4)
		c.come("b", s[1], 1, 2)
		c.come("c", s[2], 0, 2)
		order := c.serveAll(free)
		want := []string{"a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "a3", "a4"}
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		c.check(t)
	})
}

// What counts is the bytes: a tenant of large requests has fewer of them served.
func TestBytesCount(t *testing.T) {
	s := scopes(t, "large", "small")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		c.come("L", s[0], 0, 20)
		c.come("s", s[1], 0, 200)
		order := c.serveAll(func(who string) int {
			if who[0] == 'L' {
				return 9 * fixedCost
			}
			return 0
		})
		large := 0
		for _, who := range order[:110] {
			if who[0] == 'L' {
				large++
			}
		}
		if large < 9 || large > 11 {
			t.Errorf("%d of the first 110 were of the tenant whose requests cost ten times as much", large)
		}
		c.check(t)
	})
}

// However many tenants there are, between two of one tenant's waiting requests
// every other waiting tenant gets no more turns than there are at once, and one.
func TestNobodyStarves(t *testing.T) {
	names := []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6"}
	s := scopes(t, names...)
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		c := newCrowd(4)
		for i, scope := range s {
			c.come(string(rune('a'+i)), scope, 0, 2+r.IntN(60))
		}
		order := c.serveAll(free)
		last := map[byte]int{}
		for at, who := range order {
			if before, ok := last[who[0]]; ok && at-before > len(s)+4 {
				t.Errorf("%s had to wait for %d others", who, at-before-1)
			}
			last[who[0]] = at
		}
		c.check(t)
	})
}

// A connection that ends while it waits leaves the line, and the next is served in
// its place. So does everybody when the line closes.
func TestLeaving(t *testing.T) {
	s := scopes(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		c.come("a", s[0], 0, 1)
		gone, cancel := context.WithCancel(t.Context())
		seat := c.Enter(s[0])
		left := make(chan struct{})
		go func() {
			defer close(left)
			seat.Take(gone.Done())
		}()
		synctest.Wait()
		c.come("a", s[0], 1, 3)
		if n := c.Stats().Waiting; n != 4 {
			t.Fatalf("%d wait", n)
		}
		cancel()
		<-left
		seat.Give(0)
		seat.Leave()
		c.end("a0", 0)
		if !slices.Equal(c.served, []string{"a0", "a1"}) {
			t.Fatalf("served %v", c.served)
		}
		c.close()
		synctest.Wait()
		if len(c.served) != 4 {
			t.Errorf("served %v after the line has closed", c.served)
		}
		c.serveAll(free)
		c.check(t)
	})
}

// A turn ends by itself, so that nothing a handler waits for holds up the line; and
// who has waited for long enough goes on without one.
func TestNothingLasts(t *testing.T) {
	s := scopes(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		other := c.Enter(s[1])
		c.come("a", s[0], 0, 2)
		for range longestTurn {
			c.Step(late)
		}
		if len(c.served) != 1 {
			t.Fatalf("served %v", c.served)
		}
		c.Step(late)
		synctest.Wait()
		if len(c.served) != 2 {
			t.Fatalf("a turn has not ended by itself: %v", c.served)
		}
		c.end("a0", 0) // whose turn is over
		if n := c.held.n; n != 1 {
			t.Errorf("%d turns are held", n)
		}
		c.seats["a1"].since = 1 << 30 // a turn that does not end
		c.come("a", s[0], 2, 1)
		for range longestWait + 1 {
			c.Step(late)
		}
		synctest.Wait()
		if len(c.served) != 3 || c.held.n != 1 {
			t.Errorf("served %v with %d turns", c.served, c.held.n)
		}
		other.Leave()
		c.serveAll(free)
		c.check(t)
	})
}

// What the waits took is told.
func TestStats(t *testing.T) {
	s := scopes(t, "a")
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		c.come("a", s[0], 0, 2)
		time.Sleep(3 * time.Second)
		if got := c.Stats(); got != (Stats{Waiting: 1, Limit: 2}) {
			t.Errorf("%+v", got)
		}
		c.serveAll(free)
		if got := c.Stats(); got != (Stats{Limit: 2, Waits: 1, Waited: 3 * time.Second}) {
			t.Errorf("%+v", got)
		}
	})
}

// All at once, with everything that can happen: under -race, and nothing is left.
func TestManyAtOnce(t *testing.T) {
	s := scopes(t, "a", "b", "c")
	l := New(2, .25)
	ctx, end := context.WithCancel(t.Context())
	stepped := make(chan struct{})
	go func() {
		defer close(stepped)
		defer l.close()
		for i := 0; ctx.Err() == nil; i++ {
			l.Step(time.Duration(i%3) * late)
		}
	}()
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			seat := l.Enter(s[i%3])
			defer seat.Leave()
			for j := range 300 {
				done := make(chan struct{})
				if (i+j)%4 == 0 {
					close(done)
				}
				seat.Take(done)
				if j%7 > 0 {
					seat.Give(j)
				} else {
					seat.Give(0)
					seat.Give(j)
				}
			}
		})
	}
	wg.Wait()
	end()
	<-stepped
	c := &crowd{Line: l}
	c.check(t)
}
