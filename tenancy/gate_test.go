package tenancy_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// fakeGate counts who comes, and lets them through when the test says so.
type fakeGate struct {
	mu       sync.Mutex
	entered  []string // lane @ address
	verdicts []tenancy.Verdict
	open     chan struct{} // nil: it is open
	shut     bool
}

func (g *fakeGate) Enter(ctx context.Context, from netip.Prefix, host string) (func(tenancy.Verdict), error) {
	g.mu.Lock()
	g.entered = append(g.entered, host+"@"+from.Addr().String())
	shut := g.shut
	g.mu.Unlock()
	if shut {
		return nil, tenancy.ErrBraked
	}
	if g.open != nil {
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, tenancy.ErrBraked
		}
	}
	return func(v tenancy.Verdict) {
		g.mu.Lock()
		g.verdicts = append(g.verdicts, v)
		g.mu.Unlock()
	}, nil
}

// took is who has come, and what came of it, since it was asked last.
func (g *fakeGate) took() (entered int, verdicts []tenancy.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entered, verdicts = len(g.entered), g.verdicts
	g.entered, g.verdicts = nil, nil
	return entered, verdicts
}

func gated(cell *fakeCell, c *clock, life time.Duration, gate *fakeGate) *tenancy.Verifier[string] {
	return tenancy.NewVerifier[string](cell, tenancy.VerifierConfig{Clock: c.Now, SuccessLife: life, Refused: isRefusal, Gate: gate})
}

func at(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// A credential of which no success is known passes the gate; one that succeeded
// within ten minutes does not come to it, whatever became of it since.
func TestGateIsForTheUnproved(t *testing.T) {
	cell, c, gate := newFakeCell(), newClock(), &fakeGate{}
	v := gated(cell, c, 0, gate)
	here := at("192.0.2.1/32")
	try := func(bearer string, wantEntered int, want ...tenancy.Verdict) {
		t.Helper()
		_, err := v.VerifyFrom(t.Context(), claim(bearer, ""), here)
		entered, verdicts := gate.took()
		if entered != wantEntered || len(verdicts) != len(want) || len(want) > 0 && verdicts[0] != want[0] {
			t.Errorf("%s: %d at the gate, verdicts %v, error %v; want %d, %v", bearer, entered, verdicts, err, wantEntered, want)
		}
	}
	try("acme.1", 1, tenancy.Taken)
	for range 10 {
		try("acme.1", 0)
	}
	try("acme.2", 1, tenancy.Taken)
	cell.set(func(f *fakeCell) { f.list = func(string, string) error { return &refusal{"no"} } })
	try("bad.1", 1, tenancy.Refused)
	try("bad.1", 0) // remembered
	try("acme.1", 0)
	c.advance(3 * time.Second)
	try("bad.1", 1, tenancy.Refused)
	cell.set(func(f *fakeCell) { f.list = func(string, string) error { return errDown } })
	try("bad.2", 1, tenancy.Unsure)
	cell.set(func(f *fakeCell) { f.list = nil })
	c.advance(10*time.Minute - 3*time.Second)
	try("acme.2", 1, tenancy.Taken)

	// A credential that was asked about again because it has connections open is
	// proved by that.
	scope := verify(t, v, "acme.3", "").Scope
	for range 5 {
		c.advance(9 * time.Minute)
		if v.Revoked(t.Context(), scope) {
			t.Fatal("revoked")
		}
	}
	try("acme.3", 0)
	c.advance(10 * time.Minute)
	try("acme.3", 1, tenancy.Taken)
}

// However many log in at once with one credential: those from one address pass
// the gate once, those from another one once more, and all share one check.
func TestGateIsPassedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell, gate := newFakeCell(), &fakeGate{open: make(chan struct{})}
		cell.gate = make(chan struct{})
		v := gated(cell, newClock(), 5*time.Second, gate)
		var wg sync.WaitGroup
		for i := range 200 {
			from := []netip.Prefix{at("192.0.2.1/32"), at("2001:db8::/64")}[i%2]
			wg.Go(func() {
				if _, err := v.VerifyFrom(context.Background(), claim("acme.1", "h"), from); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(gate.open)
		synctest.Wait()
		close(cell.gate)
		wg.Wait()
		if entered, verdicts := gate.took(); entered != 2 || len(verdicts) != 2 || cell.listed("acme.1@h") != 1 || cell.identified("acme.1@h") != 1 {
			t.Errorf("%d at the gate, %v, %d listings, %d identities", entered, verdicts, cell.listed("acme.1@h"), cell.identified("acme.1@h"))
		}
	})
}

// Who is turned away has asked nothing of the cell, and is not remembered as
// refused. A wait ends with the login's time.
func TestGateTurnsAway(t *testing.T) {
	cell, gate := newFakeCell(), &fakeGate{shut: true}
	v := gated(cell, newClock(), 5*time.Second, gate)
	here := at("192.0.2.1/32")
	if _, err := v.VerifyFrom(t.Context(), claim("acme.1", ""), here); !errors.Is(err, tenancy.ErrBraked) {
		t.Errorf("%v", err)
	}
	gate.shut = false
	if _, err := v.VerifyFrom(t.Context(), claim("acme.1", ""), here); err != nil {
		t.Errorf("after that: %v", err)
	}
	gate.open = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := v.VerifyFrom(ctx, claim("acme.2", ""), here); !errors.Is(err, tenancy.ErrBraked) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if n := cell.listed("acme.2@"); n != 0 {
		t.Errorf("%d listings", n)
	}
	if n := v.Checks(); n != (tenancy.Checks{Listings: 1, Identities: 1}) {
		t.Errorf("%+v", n)
	}
}

// A login of the gateway's own token meets no gate.
func TestGateIsNotForItself(t *testing.T) {
	gate := &fakeGate{shut: true}
	if _, err := gated(newFakeCell(), newClock(), 0, gate).Verify(t.Context(), claim("acme.1", "")); err != nil {
		t.Error(err)
	}
}

// Credentials of two tenants that come from one address at one moment, for one
// name, get each its own tenant, or its own refusal.
func TestGateKeepsTenantsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell, gate := newFakeCell(), &fakeGate{open: make(chan struct{})}
		cell.list = func(bearer, _ string) error {
			if bearer == "bad.1" {
				return &refusal{"no"}
			}
			return nil
		}
		v := gated(cell, newClock(), 5*time.Second, gate)
		var wg sync.WaitGroup
		for i := range 30 {
			cluster := []string{"acme", "globex", "bad"}[i%3]
			wg.Go(func() {
				p, err := v.VerifyFrom(context.Background(), claim(cluster+".1", "h"), at("192.0.2.1/32"))
				if cluster == "bad" {
					if !isRefusal(err) {
						t.Errorf("bad: %v", err)
					}
					return
				}
				if err != nil || p.Scope.ID().String() != cluster {
					t.Errorf("%s: %v, %v", cluster, p.Scope, err)
				}
			})
		}
		synctest.Wait()
		close(gate.open)
		wg.Wait()
	})
}
