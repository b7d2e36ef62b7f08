package tenancy

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"
)

// ErrBraked is why a claim was not checked: where it came from, or for the name
// it is for, too many were refused of late.
var ErrBraked = errors.New("logins are slowed: many were refused")

// provenLife is how long a success opens the gate for a credential (B4).
const provenLife = 10 * time.Minute

// maxProven bounds the credentials that pass the gate. Tenants share it fairly,
// and strangers have no part in it.
const maxProven = 16384

// Gate is the way of an unproved credential to the cell.
type Gate interface {
	// Enter waits until a claim of somebody at an address may be checked, or errs
	// with ErrBraked. leave is called once, with what came of it.
	Enter(ctx context.Context, from netip.Prefix, host string) (leave func(Verdict), err error)
}

// Verdict is what came of a check.
type Verdict uint8

// Verdicts.
const (
	Unsure  Verdict = iota // the cell could not be asked
	Taken                  // the cell takes the credential
	Refused                // it does not
)

// approach is one credential on its way from one address. Those from other
// addresses do not wait with it: theirs may be free.
type approach struct {
	cred Credential
	from netip.Prefix
}

// VerifyFrom is Verify for a claim of somebody at an address: one of whom no
// success is known passes the gate first. Claims of one credential from one
// address pass it together; when all of them have gone their place is free.
func (v *Verifier[L]) VerifyFrom(ctx context.Context, c Claim, from netip.Prefix) (Proof[L], error) {
	cred := v.credential(c)
	if v.cfg.Gate == nil || v.hasProved(cred) {
		return v.verify(ctx, cred, c)
	}
	proof, ok, err := v.remembered(cred)
	if !ok {
		until, _ := ctx.Deadline()
		var led bool
		proof, led, err = v.approaches.DoWanted(ctx, approach{cred, from}, func(ctx context.Context) (Proof[L], error) {
			return v.throughGate(ctx, until, cred, c, from)
		})
		ok = !led
	}
	if ok {
		v.checks.add(true) // the others are counted where they are made
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Proof[L]{}, err
	}
	return proof, nil
}

func (v *Verifier[L]) throughGate(ctx context.Context, until time.Time, cred Credential, c Claim, from netip.Prefix) (proof Proof[L], err error) {
	leave, err := v.enter(ctx, until, c, from)
	if err != nil {
		return proof, err
	}
	verdict := Unsure
	defer func() { leave(verdict) }()                          // also when the check panics
	proof, err = v.verify(context.WithoutCancel(ctx), cred, c) // who leaves now is told from a refused one by the cell alone
	switch {
	case err == nil:
		verdict = Taken
	case v.cfg.Refused(err):
		verdict = Refused
	}
	return proof, err
}

// enter waits at the gate until a time; zero: the gate's own bound holds.
func (v *Verifier[L]) enter(ctx context.Context, until time.Time, c Claim, from netip.Prefix) (func(Verdict), error) {
	if until.IsZero() {
		return v.cfg.Gate.Enter(ctx, from, c.host)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return v.cfg.Gate.Enter(ctx, from, c.host)
}

// hasProved reports that a credential's last success is not long ago.
func (v *Verifier[L]) hasProved(cred Credential) bool {
	at, ok := v.proven.get(cred)
	return ok && v.cfg.Clock().Sub(at) < provenLife
}

// Checks is how often the cell was asked.
type Checks struct {
	Listings, Identities     int64 // for logins
	Relistings, Reidentities int64 // about credentials with connections open
}

// Checks is what the cell was asked so far.
func (v *Verifier[L]) Checks() Checks {
	return Checks{
		Listings: v.calls.listings.Load(), Identities: v.calls.identities.Load(),
		Relistings: v.calls.relistings.Load(), Reidentities: v.calls.reidentities.Load(),
	}
}

type calls struct{ listings, identities, relistings, reidentities atomic.Int64 }
