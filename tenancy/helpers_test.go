package tenancy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusal is the cell's verdict on a credential; every other error of the fake
// is "could not be checked".
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func isRefusal(err error) bool {
	_, ok := err.(*refusal)
	return ok
}

// fakeCell answers by what the test says and counts what it was asked.
type fakeCell struct {
	mu    sync.Mutex
	list  func(bearer, host string) error
	who   func(bearer, host string) (tenancy.Identity, error)
	lists map[string]int // by bearer@host
	whos  map[string]int
	gate  chan struct{} // listings wait for it, if there is one
	begun chan struct{} // told of every listing, if there is one
}

func newFakeCell() *fakeCell {
	return &fakeCell{lists: map[string]int{}, whos: map[string]int{}}
}

func (f *fakeCell) ListQueuesAs(_ context.Context, c tenancy.Claim) (string, error) {
	at := c.Bearer().Reveal() + "@" + c.Host()
	f.mu.Lock()
	f.lists[at]++
	list, gate, begun := f.list, f.gate, f.begun
	f.mu.Unlock()
	if begun != nil {
		begun <- struct{}{}
	}
	if gate != nil {
		<-gate
	}
	if list != nil {
		if err := list(c.Bearer().Reveal(), c.Host()); err != nil {
			return "", err
		}
	}
	return "listing of " + at, nil
}

// Identify names the cluster after the bearer's part before a dot, unless told
// otherwise: "acme.1" and "acme.2" are two keys of the cluster acme.
func (f *fakeCell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	bearer := c.Bearer().Reveal()
	f.mu.Lock()
	f.whos[bearer+"@"+c.Host()]++
	who := f.who
	f.mu.Unlock()
	if who != nil {
		return who(bearer, c.Host())
	}
	cluster, _, _ := strings.Cut(bearer, ".")
	return tenancy.Identity{ClusterID: cluster}, nil
}

func (f *fakeCell) listed(at string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[at]
}

func (f *fakeCell) identified(at string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whos[at]
}

func (f *fakeCell) set(change func(*fakeCell)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newVerifier(cell *fakeCell, c *clock, life time.Duration) *tenancy.Verifier[string] {
	return tenancy.NewVerifier[string](cell, tenancy.VerifierConfig{Clock: c.Now, SuccessLife: life, Refused: isRefusal})
}

func claim(bearer, host string) tenancy.Claim {
	return tenancy.NewClaim(tenancy.NewSecret(bearer), host)
}

func verify(t testing.TB, v *tenancy.Verifier[string], bearer, host string) tenancy.Proof[string] {
	t.Helper()
	p, err := v.Verify(context.Background(), claim(bearer, host))
	if err != nil {
		t.Fatalf("%s@%s: %v", bearer, host, err)
	}
	return p
}

// scopes are proved Scopes of n clusters.
func scopes(t testing.TB, n int) []tenancy.Scope {
	t.Helper()
	v := newVerifier(newFakeCell(), newClock(), 0)
	out := make([]tenancy.Scope, n)
	for i := range out {
		out[i] = verify(t, v, fmt.Sprintf("cluster-%d.key", i), "").Scope
	}
	return out
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
