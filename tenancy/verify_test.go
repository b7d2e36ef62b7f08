package tenancy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

var errDown = errors.New("connection refused")

// However many log in at once, a credential costs one call of each kind.
func TestVerifySharesACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := newFakeCell()
		cell.gate = make(chan struct{})
		v := newVerifier(cell, newClock(), 5*time.Second)
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() { verify(t, v, "acme.1", "a.example") })
			wg.Go(func() { verify(t, v, "acme.1", "b.example") })
		}
		synctest.Wait()
		close(cell.gate)
		wg.Wait()
		for _, at := range []string{"acme.1@a.example", "acme.1@b.example"} {
			if cell.listed(at) != 1 || cell.identified(at) != 1 {
				t.Errorf("%s: %d listings, %d identities", at, cell.listed(at), cell.identified(at))
			}
		}
	})
}

// The same without a gate: those that come just as a call ends find its answer.
func TestVerifyStampede(t *testing.T) {
	for name, refuse := range map[string]error{"proved": nil, "refused": &refusal{"no"}} {
		t.Run(name, func(t *testing.T) {
			cell := newFakeCell()
			cell.list = func(string, string) error { return refuse }
			v := newVerifier(cell, newClock(), 5*time.Second)
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					for range 200 {
						if _, err := v.Verify(context.Background(), claim("acme.1", "")); (err == nil) != (refuse == nil) {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if n := cell.listed("acme.1@"); n != 1 {
				t.Errorf("%d listings", n)
			}
		})
	}
}

func TestVerifyReusesASuccessForItsLifeOnly(t *testing.T) {
	cell, c := newFakeCell(), newClock()
	v := newVerifier(cell, c, 5*time.Second)
	if p := verify(t, v, "acme.1", "h"); !p.Fresh || p.Listing != "listing of acme.1@h" || !p.Began.Equal(c.Now()) {
		t.Errorf("the first proof is %+v", p)
	}
	c.advance(5*time.Second - 1)
	if p := verify(t, v, "acme.1", "h"); p.Fresh || p.Listing != "" {
		t.Errorf("a reused proof is %+v", p)
	}
	c.advance(1)
	if p := verify(t, v, "acme.1", "h"); !p.Fresh {
		t.Error("a success outlives its life")
	}
	if n := cell.identified("acme.1@h"); n != 1 {
		t.Errorf("a settled identity was asked %d times", n)
	}

	never := newVerifier(cell, c, 0)
	verify(t, never, "acme.2", "h")
	verify(t, never, "acme.2", "h")
	if n := cell.listed("acme.2@h"); n != 2 {
		t.Errorf("with no life: %d listings", n)
	}
}

func TestVerifyRemembersARefusal(t *testing.T) {
	cell, c := newFakeCell(), newClock()
	cell.list = func(bearer, _ string) error {
		if strings.HasPrefix(bearer, "good") {
			return nil
		}
		return &refusal{"refused " + bearer}
	}
	v := newVerifier(cell, c, 5*time.Second)
	refused := func(bearer, host string) string {
		_, err := v.Verify(t.Context(), claim(bearer, host))
		if err == nil {
			t.Fatalf("%s was let in", bearer)
		}
		return err.Error()
	}
	for range 3 {
		if got := refused("bad.1", "h"); got != "refused bad.1" {
			t.Errorf("told %q", got)
		}
	}
	// Its siblings and its twin on another Host are asked for themselves.
	if got := refused("bad.2", "h"); got != "refused bad.2" {
		t.Errorf("told another credential's refusal: %q", got)
	}
	refused("bad.1", "other")
	verify(t, v, "good.1", "h")
	if cell.listed("bad.1@h") != 1 || cell.listed("bad.1@other") != 1 {
		t.Error("a refusal is not remembered, or is shared between Hosts")
	}
	c.advance(3*time.Second - 1)
	refused("bad.1", "h")
	if cell.listed("bad.1@h") != 1 {
		t.Error("a refusal is remembered for less than 3 s")
	}
	c.advance(1)
	refused("bad.1", "h")
	if cell.listed("bad.1@h") != 2 {
		t.Error("a refusal is remembered for more than 3 s")
	}
	// A key that has become good is let in when the refusal is over.
	cell.set(func(f *fakeCell) { f.list = nil })
	c.advance(3 * time.Second)
	verify(t, v, "bad.1", "h")
}

func TestVerifyCouldNotCheckIsRememberedShortly(t *testing.T) {
	cell, c := newFakeCell(), newClock()
	cell.list = func(string, string) error { return errDown }
	v := newVerifier(cell, c, 5*time.Second)
	ask := func() {
		if _, err := v.Verify(t.Context(), claim("acme.1", "")); !errors.Is(err, errDown) {
			t.Errorf("got %v", err)
		}
	}
	ask()
	c.advance(time.Second - 1)
	ask()
	if n := cell.listed("acme.1@"); n != 1 {
		t.Errorf("%d calls within a second", n)
	}
	c.advance(1)
	cell.set(func(f *fakeCell) { f.list = nil })
	verify(t, v, "acme.1", "")
}

func TestIdentityIsSettledOnce(t *testing.T) {
	for _, first := range []string{"acme", ""} {
		cell, c := newFakeCell(), newClock()
		says := first
		cell.who = func(string, string) (tenancy.Identity, error) { return tenancy.Identity{ClusterID: says}, nil }
		v := newVerifier(cell, c, 0)
		before := verify(t, v, "k", "").Scope
		says = "umbrella"
		c.advance(time.Hour)
		after := verify(t, v, "k", "").Scope
		if before.ID() != after.ID() || after.Resolved() != (first != "") || cell.identified("k@") != 1 {
			t.Errorf("settled %q: first %v, then %v, asked %d times", first, before, after, cell.identified("k@"))
		}
	}
}

// A cell that cannot say who a credential is never fails its login. It is asked
// again after 30 s, and a Scope that was handed out before stays what it was.
func TestUnsettledIdentity(t *testing.T) {
	for _, life := range []time.Duration{0, 60 * time.Second} {
		cell, c := newFakeCell(), newClock()
		cell.who = func(string, string) (tenancy.Identity, error) { return tenancy.Identity{}, errDown }
		v := newVerifier(cell, c, life)
		before := verify(t, v, "acme.1", "h").Scope
		id, text := before.ID(), before.String()
		if before.Resolved() || before.Rights().Known {
			t.Error("an unresolved credential is resolved")
		}
		cell.set(func(f *fakeCell) { f.who = nil })
		c.advance(30*time.Second - 1)
		if s := verify(t, v, "acme.1", "h").Scope; s.ID() != id || cell.identified("acme.1@h") != 1 {
			t.Errorf("asked again within 30 s, or filed elsewhere: %v", s)
		}
		c.advance(1)
		after := verify(t, v, "acme.1", "h").Scope
		if !after.Resolved() || after.ID().String() != "acme" || cell.identified("acme.1@h") != 2 {
			t.Errorf("after 30 s, with successes living %v: %v, asked %d times", life, after, cell.identified("acme.1@h"))
		}
		if before.Resolved() || before.ID() != id || before.String() != text {
			t.Error("a Scope changed after it was handed out")
		}
		if before.Credential() != after.Credential() {
			t.Error("one credential became two")
		}
	}
}

func TestTenantsOfCredentials(t *testing.T) {
	cell := newFakeCell()
	v := newVerifier(cell, newClock(), 0)
	one, two, other := verify(t, v, "acme.1", "h").Scope, verify(t, v, "acme.2", "h").Scope, verify(t, v, "umbrella.1", "h").Scope
	if one.ID() != two.ID() || one.ID() == other.ID() {
		t.Error("keys of one cluster are not one tenant, or those of two are")
	}
	if one.Credential() == two.Credential() {
		t.Error("two keys are one credential")
	}
	if s := verify(t, v, "acme.1", "g").Scope; s.Credential() == one.Credential() || s.ID() != one.ID() || s.Host() != "g" {
		t.Error("a token under another Host is the same credential, or another tenant")
	}
	if one.Bearer().Reveal() != "acme.1" || one.Host() != "h" {
		t.Error("a Scope carries another claim")
	}
	// Where host and bearer run together, they still are two credentials.
	if verify(t, v, "c.d", "ab").Scope.Credential() == verify(t, v, "bc.d", "a").Scope.Credential() {
		t.Error("host and bearer run together")
	}
	// Nothing about the credential can be computed outside this process.
	if verify(t, newVerifier(cell, newClock(), 0), "acme.1", "h").Scope.Credential() == one.Credential() {
		t.Error("two processes hash alike")
	}
}

// B4: revoked is what the cell has said twice. Nothing else changes anything, and
// what was remembered of a revoked credential is not.
func TestRevoked(t *testing.T) {
	down := errors.New("down")
	nobody := func(string, string) (tenancy.Identity, error) { return tenancy.Identity{}, nil }
	refused := func(string, string) error { return &refusal{"401"} }
	for _, c := range []struct {
		name    string
		who     func(string, string) (tenancy.Identity, error)
		list    func(string, string) error
		lists   int // the confirmation
		revoked bool
	}{
		{"known", nil, refused, 0, false},
		{"cannot be asked", func(string, string) (tenancy.Identity, error) { return tenancy.Identity{}, down }, refused, 0, false},
		{"no identity, and listed", nobody, nil, 1, false},
		{"no identity, and not to be asked", nobody, func(string, string) error { return down }, 1, false},
		{"refused twice", nobody, refused, 1, true},
	} {
		cell, now := newFakeCell(), newClock()
		v := newVerifier(cell, now, time.Minute)
		s := verify(t, v, "acme.1", "").Scope
		cell.set(func(f *fakeCell) { f.who, f.list = c.who, c.list })
		if got := v.Revoked(t.Context(), s); got != c.revoked || cell.listed("acme.1@") != 1+c.lists {
			t.Errorf("%s: %v after %d listings", c.name, got, cell.listed("acme.1@"))
		}
		if _, err := v.Verify(t.Context(), claim("acme.1", "")); (err != nil) != c.revoked {
			t.Errorf("%s: a login afterwards: %v", c.name, err)
		}
	}
}

// A proof says when the cell was asked, also where that was some time ago.
func TestProofSaysWhen(t *testing.T) {
	now := newClock()
	v, began := newVerifier(newFakeCell(), now, time.Minute), now.Now()
	for range 3 {
		if p := verify(t, v, "acme.1", ""); !p.Checked.Equal(began) {
			t.Errorf("checked at %v, want %v", p.Checked, began)
		}
		now.advance(20*time.Second - 1)
	}
	now.advance(3)
	if p := verify(t, v, "acme.1", ""); !p.Checked.Equal(now.Now()) {
		t.Errorf("checked at %v, want %v", p.Checked, now.Now())
	}
}

// An unresolved credential is a tenant of its own, under a name that no cell
// can give to a cluster: "#" is not among a cluster id's characters.
func TestUnresolvedIsNobodyElse(t *testing.T) {
	cell := newFakeCell()
	cell.who = func(string, string) (tenancy.Identity, error) { return tenancy.Identity{}, nil }
	v := newVerifier(cell, newClock(), 0)
	seen := map[tenancy.ID]bool{}
	for i := range 100 {
		s := verify(t, v, fmt.Sprintf("k%d", i), "").Scope
		if seen[s.ID()] || !strings.HasPrefix(s.ID().String(), "#") || s.Resolved() {
			t.Errorf("unresolved: %v", s)
		}
		seen[s.ID()] = true
	}
	if verify(t, v, "k1", "h").Scope.ID() == verify(t, v, "k1", "").Scope.ID() {
		t.Error("one token under two Hosts is one unresolved tenant")
	}
}

func TestRightsAndZeroValues(t *testing.T) {
	cell := newFakeCell()
	rights := tenancy.Rights{Known: true, Produce: true, Read: true}
	cell.who = func(string, string) (tenancy.Identity, error) {
		return tenancy.Identity{ClusterID: "acme", Rights: rights}, nil
	}
	if got := verify(t, newVerifier(cell, newClock(), 0), "k", "").Scope.Rights(); got != rights {
		t.Errorf("rights %+v", got)
	}
	bare := tenancy.NewVerifier[string](newFakeCell(), tenancy.VerifierConfig{})
	verify(t, bare, "acme.1", "")
	if _, err := bare.Verify(t.Context(), tenancy.Claim{}); err != nil {
		t.Errorf("an empty claim is the cell's to judge: %v", err)
	}
}

// A check goes on for others when its leader's time is over; but a login is not
// proved after its deadline.
func TestVerifyAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := newFakeCell()
		cell.gate = make(chan struct{})
		v := newVerifier(cell, newClock(), 5*time.Second)
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if p, err := v.Verify(ctx, claim("acme.1", "")); !errors.Is(err, context.Canceled) || p.Fresh {
				t.Errorf("the leader got %+v, %v", p, err)
			}
		})
		synctest.Wait()
		wg.Go(func() { verify(t, v, "acme.1", "") })
		synctest.Wait()
		if _, err := v.Verify(ctxDone(), claim("acme.1", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("a follower whose time is over got %v", err)
		}
		leave()
		close(cell.gate)
		wg.Wait()
		if cell.listed("acme.1@") != 1 {
			t.Errorf("%d calls", cell.listed("acme.1@"))
		}
		if _, err := v.Verify(ctx, claim("acme.1", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("a reused success after the deadline: %v", err)
		}
	})
}

func ctxDone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A panic in one login ends that login; the others of its credential are told
// "could not be checked", and nobody hangs.
func TestVerifyLeaderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := newFakeCell()
		cell.gate = make(chan struct{})
		cell.list = func(string, string) error { panic("x") }
		v := newVerifier(cell, newClock(), 5*time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			if !panics(func() { _, _ = v.Verify(t.Context(), claim("acme.1", "")) }) {
				t.Error("the panic was swallowed")
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := v.Verify(t.Context(), claim("acme.1", "")); err == nil || isRefusal(err) {
				t.Errorf("a follower got %v", err)
			}
		})
		synctest.Wait()
		close(cell.gate)
		wg.Wait()
		cell.set(func(f *fakeCell) { f.list = nil })
		verify(t, v, "acme.1", "")
	})
}

// Whether a refused key is known decides its sentence. A fleet with a refused
// key asks that once for as long as its refusal lasts.
func TestProven(t *testing.T) {
	cell, c := newFakeCell(), newClock()
	v := newVerifier(cell, c, 0)
	proven := func(bearer string) bool { return v.Proven(t.Context(), claim(bearer, "")) }
	cell.who = func(bearer, _ string) (tenancy.Identity, error) {
		switch bearer {
		case "known":
			return tenancy.Identity{ClusterID: "acme"}, nil
		case "down":
			return tenancy.Identity{}, errDown
		}
		return tenancy.Identity{}, nil
	}
	for range 5 {
		if !proven("known") || proven("stranger") || proven("down") {
			t.Error("who is known is told wrong")
		}
	}
	for _, at := range []string{"known@", "stranger@", "down@"} {
		if n := cell.identified(at); n != 1 {
			t.Errorf("%s asked %d times", at, n)
		}
	}
	c.advance(time.Second)
	proven("known")
	proven("down")
	c.advance(2 * time.Second)
	proven("stranger")
	for at, want := range map[string]int{"known@": 1, "down@": 2, "stranger@": 2} {
		if n := cell.identified(at); n != want {
			t.Errorf("%s asked %d times, want %d", at, n, want)
		}
	}
	// What was said of a refused key settles nothing about it.
	cell.set(func(f *fakeCell) { f.who = nil })
	if s := verify(t, v, "stranger", "").Scope; !s.Resolved() {
		t.Error("the identity of a refused key was kept")
	}
}

// Memory is bounded: identities by those that logged in, refusals by strangers,
// and strangers do not push the others out.
func TestVerifierIsBounded(t *testing.T) {
	cell, c := newFakeCell(), newClock()
	cell.list = func(bearer, _ string) error {
		if strings.HasPrefix(bearer, "bad") {
			return &refusal{"no"}
		}
		return nil
	}
	v := newVerifier(cell, c, time.Minute)
	verify(t, v, "acme.1", "")
	for i := range 5000 {
		if _, err := v.Verify(t.Context(), claim(fmt.Sprintf("bad%d", i), "")); err == nil {
			t.Fatal("let in")
		}
	}
	if p := verify(t, v, "acme.1", ""); p.Fresh || cell.identified("acme.1@") != 1 {
		t.Error("strangers pushed a tenant out")
	}
	_, _ = v.Verify(t.Context(), claim("bad0", ""))
	if n := cell.listed("bad0@"); n != 2 {
		t.Errorf("the oldest of 5000 refusals is still kept (%d calls)", n)
	}
	// Nor does a tenant with more tokens than are kept, or one token under more
	// names: those make room among themselves.
	for i := range 1024 {
		verify(t, v, fmt.Sprintf("umbrella.%d", i), "")
	}
	cell.who = func(string, string) (tenancy.Identity, error) { return tenancy.Identity{}, nil }
	for i := range 1100 {
		verify(t, v, "nobody", fmt.Sprintf("host-%d", i))
	}
	if p := verify(t, v, "acme.1", ""); p.Fresh || cell.identified("acme.1@") != 1 {
		t.Error("another tenant's tokens or names pushed a tenant out")
	}
	if p := verify(t, v, "umbrella.0", ""); !p.Fresh || cell.identified("umbrella.0@") != 2 {
		t.Error("more than 1024 credentials are kept")
	}
}
