package tenancy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Defaults of VerifierConfig.
const (
	// maxIdentities bounds the settled identities kept (cell-http §2.6), and the
	// successful checks. Tenants share these fairly.
	maxIdentities = 1024
	// maxRefusals bounds the refused credentials remembered: strangers fill
	// this one, so it is apart from the identities.
	maxRefusals = 4096
	// refusalLife is how long a refused credential is refused without a call.
	refusalLife = 3 * time.Second
	// unsureLife is how long "could not be checked" is repeated without a call:
	// long enough to spare a cell that is coming up, short enough not to be felt.
	unsureLife = time.Second
	// unsettledLife is how long an identity that could not be asked is not
	// asked again (cell-http §2.6).
	unsettledLife = 30 * time.Second
)

// VerifierConfig is what NewVerifier needs beside the cell.
type VerifierConfig struct {
	Clock func() time.Time // nil: time.Now
	// SuccessLife is how long a successful check is reused (B4,
	// QUEEN_KAFKA_AUTH_CACHE_MS); 0 reuses nothing but calls under way.
	SuccessLife time.Duration
	// Identities bounds the credentials whose check or identity is kept; 0: 1024.
	Identities int
	// Refused says whether an error of ListQueuesAs is the cell's verdict on
	// the credential, as opposed to "could not be checked".
	Refused func(error) bool
	Gate    Gate // nil: none
}

// Verifier proves claims at the cell. It is safe for concurrent use and is the
// only maker of Scopes.
type Verifier[L any] struct {
	cell  Cell[L]
	cfg   VerifierConfig
	key   [32]byte // of the keyed hash; new in every process
	check Flight[Credential, Proof[L]]
	who   Flight[Credential, identity]
	calls calls

	approaches Flight[approach, Proof[L]]
	proven     *shared[Credential, time.Time] // when a credential was last proved
	successes  *shared[Credential, success]
	identities *shared[Credential, identity]
	failures   *lru.Cache[Credential, failure] // of strangers: they belong to nobody
	known      *lru.Cache[Credential, known]
	mu         sync.Mutex // makes "the first settled answer is final" one step
	checks     hits       // of successes and failures
	asked      hits       // of identities
}

// Proof is a proved claim. Fresh says that Listing was read for this very
// proof, by a call that began at Began; a reused success carries none.
type Proof[L any] struct {
	Scope   Scope
	Listing L
	Fresh   bool
	Began   time.Time
	Checked time.Time // when the cell took the claim: now, or at an earlier check that is reused
}

type success struct {
	scope   Scope
	checked time.Time
	until   time.Time
}

type failure struct {
	err   error
	until time.Time
}

// known is whether the cell knows a credential that it refused.
type known struct {
	yes   bool
	until time.Time
}

type identity struct {
	Identity
	settled bool
	until   time.Time // unsettled: not asked again before
}

// NewVerifier makes a Verifier with a hash key of its own.
func NewVerifier[L any](cell Cell[L], cfg VerifierConfig) *Verifier[L] {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Refused == nil {
		cfg.Refused = func(error) bool { return false }
	}
	if cfg.Identities < 1 {
		cfg.Identities = maxIdentities
	}
	v := &Verifier[L]{cell: cell, cfg: cfg}
	_, _ = rand.Read(v.key[:]) // never errs (crypto/rand)
	v.successes = newShared[Credential, success](cfg.Identities)
	v.identities = newShared[Credential, identity](cfg.Identities)
	v.proven = newShared[Credential, time.Time](max(maxProven, cfg.Identities))
	v.failures = newCache[failure](maxRefusals)
	v.known = newCache[known](maxRefusals)
	return v
}

func newCache[V any](size int) *lru.Cache[Credential, V] {
	c, err := lru.New[Credential, V](size)
	if err != nil { // only a size below 1 errs
		panic(err)
	}
	return c
}

// Verify proves a claim: the queue listing proves the bearer, /auth/me names
// its cluster (cell-http §2.6, §2.7; B4). Concurrent checks of one credential
// share a call. A failure is the error of ListQueuesAs, kept for that
// credential alone, so that no refusal's text ever reaches another one.
// An identity that cannot be asked never fails the check. Nothing is proved
// after ctx has ended, although the call goes on for others.
func (v *Verifier[L]) Verify(ctx context.Context, c Claim) (Proof[L], error) {
	return v.verify(ctx, v.credential(c), c)
}

func (v *Verifier[L]) verify(ctx context.Context, cred Credential, c Claim) (Proof[L], error) {
	proof, ok, err := v.remembered(cred)
	if !ok {
		var led bool
		proof, led, err = v.check.Do(ctx, cred, func(ctx context.Context) (Proof[L], error) {
			// A call that ended just before this one began has left its answer.
			if proof, ok, err := v.remembered(cred); ok {
				return proof, err
			}
			return v.ask(ctx, cred, c)
		})
		ok = !led // another's call answers this one
	}
	v.checks.add(ok)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Proof[L]{}, err
	}
	return proof, nil
}

// remembered is the answer of an earlier check that is still to be repeated.
func (v *Verifier[L]) remembered(cred Credential) (Proof[L], bool, error) {
	now := v.cfg.Clock()
	if s, ok := v.successes.get(cred); ok && now.Before(s.until) {
		return Proof[L]{Scope: s.scope, Checked: s.checked}, true, nil
	}
	if f, ok := v.failures.Get(cred); ok && now.Before(f.until) {
		return Proof[L]{}, true, f.err
	}
	return Proof[L]{}, false, nil
}

func (v *Verifier[L]) ask(ctx context.Context, cred Credential, c Claim) (Proof[L], error) {
	began := v.cfg.Clock()
	v.calls.listings.Add(1)
	listing, err := v.cell.ListQueuesAs(ctx, c)
	now := v.cfg.Clock()
	if err != nil {
		life := unsureLife
		if v.cfg.Refused(err) {
			life = refusalLife
		}
		v.failures.Add(cred, failure{err: err, until: now.Add(life)})
		return Proof[L]{}, err
	}
	who := v.identify(ctx, cred, c)
	scope := v.scopeOf(cred, c, who)
	v.proven.set(v.owner(c, who), cred, began)
	until := now.Add(v.cfg.SuccessLife)
	if !who.settled && who.until.Before(until) {
		until = who.until // then the identity is asked again
	}
	if now.Before(until) {
		v.successes.set(v.owner(c, who), cred, success{scope: scope, checked: began, until: until})
	}
	return Proof[L]{Scope: scope, Listing: listing, Fresh: true, Began: began, Checked: began}, nil
}

// Revoked asks the cell again about a credential that has connections open. It
// is true only where the cell has said so twice: it names no identity for the
// credential, and refuses it the listing. A cell that cannot be asked changes
// nothing. What was remembered of a revoked credential is forgotten (B4).
func (v *Verifier[L]) Revoked(ctx context.Context, s Scope) bool {
	claim, cred, began := s.must().claim, s.credential, v.cfg.Clock()
	v.calls.reidentities.Add(1)
	who, err := v.cell.Identify(ctx, claim)
	if err != nil {
		return false
	}
	if who.ClusterID == "" {
		v.calls.relistings.Add(1)
		if _, err = v.cell.ListQueuesAs(ctx, claim); err != nil && !v.cfg.Refused(err) {
			return false
		}
	}
	if err == nil {
		owner := s.id
		if !s.resolved {
			owner = v.owner(claim, identity{})
		}
		v.proven.set(owner, cred, began)
		return false
	}
	v.successes.delete(cred)
	v.failures.Add(cred, failure{err: err, until: v.cfg.Clock().Add(refusalLife)})
	return true
}

// Proven asks whether the cell knows the claim's bearer at all, for choosing
// the sentence of a refusal: facts about a cluster are told to its own keys
// only. The answer is repeated for as long as the refusal is.
func (v *Verifier[L]) Proven(ctx context.Context, c Claim) bool {
	cred := v.credential(c)
	if k, ok := v.known.Get(cred); ok && v.cfg.Clock().Before(k.until) {
		return k.yes
	}
	who, _, err := v.who.Do(ctx, cred, func(ctx context.Context) (identity, error) {
		who := v.askIdentity(ctx, c)
		life := refusalLife
		if !who.settled {
			life = unsureLife
		}
		v.known.Add(cred, known{yes: who.known(), until: v.cfg.Clock().Add(life)})
		return who, nil
	})
	return err == nil && who.known()
}

func (who identity) known() bool { return who.settled && who.ClusterID != "" }

// identify returns the settled identity, or asks for it.
func (v *Verifier[L]) identify(ctx context.Context, cred Credential, c Claim) identity {
	if who, ok := v.identities.get(cred); ok && (who.settled || v.cfg.Clock().Before(who.until)) {
		v.asked.add(true)
		return who
	}
	v.asked.add(false)
	who, _, err := v.who.Do(ctx, cred, func(ctx context.Context) (identity, error) {
		return v.askIdentity(ctx, c), nil
	})
	if err != nil {
		return identity{}
	}
	return v.settle(cred, c, who)
}

func (v *Verifier[L]) askIdentity(ctx context.Context, c Claim) identity {
	v.calls.identities.Add(1)
	who, err := v.cell.Identify(ctx, c)
	if err != nil {
		return identity{until: v.cfg.Clock().Add(unsettledLife)}
	}
	return identity{Identity: who, settled: true}
}

// settle keeps an answer, unless one is already settled: a settled identity
// never changes while its entry lives.
func (v *Verifier[L]) settle(cred Credential, c Claim, who identity) identity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kept, ok := v.identities.get(cred); ok && kept.settled {
		return kept
	}
	v.identities.set(v.owner(c, who), cred, who)
	return who
}

// owner is whose part of the caches a proved claim takes: its cluster's, or that
// of its bearer, under however many names it comes.
func (v *Verifier[L]) owner(c Claim, who identity) ID {
	if who.ClusterID != "" {
		return ID{text: who.ClusterID}
	}
	sum := v.credential(Claim{bearer: c.bearer}).sum
	return ID{text: string(ownName) + hex.EncodeToString(sum[:])}
}

func (v *Verifier[L]) scopeOf(cred Credential, c Claim, who identity) Scope {
	s := Scope{credential: cred, claim: c, rights: who.Rights, expires: who.ExpiresAt, can: who.Capabilities}
	if who.ClusterID == "" {
		// The credential stands for itself. The prefix keeps its hash from ever
		// equalling a cluster id the cell could name.
		s.id = ID{text: string(ownName) + hex.EncodeToString(cred.sum[:])}
		return s
	}
	s.id, s.resolved = ID{text: who.ClusterID}, true
	return s
}

// credential hashes bearer and Host under the process's key. Lengths go in so
// that no two pairs run together.
func (v *Verifier[L]) credential(c Claim) Credential {
	m := hmac.New(sha256.New, v.key[:])
	var n [8]byte
	for i, l := 0, len(c.host); i < 8; i, l = i+1, l>>8 {
		n[i] = byte(l)
	}
	m.Write(n[:])
	m.Write([]byte(c.host))
	m.Write([]byte(c.bearer.Reveal()))
	var cred Credential
	copy(cred.sum[:], m.Sum(nil))
	return cred
}
