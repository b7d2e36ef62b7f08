package catalog

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Freshness of what is kept (kafka-surface §6.6).
const (
	listingLife  = 3 * time.Second  // from the end of the last call, whatever its outcome
	newcomerLife = 2 * time.Second  // the same, while there are new queues without a record
	widthsLife   = 30 * time.Second // between two scans of the topic records
	failureLife  = 3 * time.Second  // a failure is replayed to its own credential
	maxFailures  = 64               // credentials of one tenant whose failures are kept
)

// Cell is what the catalog asks of a cell.
type Cell interface {
	ListQueues(ctx context.Context, s tenancy.Scope) ([]proxyclient.Queue, error)
	Configure(ctx context.Context, s tenancy.Scope, queue string, options map[string]any) (string, error)
	DeleteQueue(ctx context.Context, s tenancy.Scope, queue string) (bool, error)
	KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error)
}

// Config are the catalog's settings.
type Config struct {
	DefaultPartitions int32
	MaxPartitions     int32
	MaxTenants        int // listings kept
	MaxCreates        int // topics created by one request
	DedupWindow       int // seconds, of the topics made; 0 is none
	Clock             func() time.Time
	Log               *zap.Logger
}

// Catalog keeps the listings of all tenants. It is safe for concurrent use.
type Catalog struct {
	cell    Cell
	cfg     Config
	entries *tenancy.LRU[struct{}, *entry]
	turn    atomic.Uint64 // orders the beginnings of listings and the ends of creations
	creates tenancy.Flight[tenancy.Key[string], made]
	made    *tenancy.LRU[string, made] // topics just created
}

// maxMade bounds the topics just created. One matters only to requests that
// read their listing before it was.
const maxMade = 4096

// New makes a catalog.
func New(cell Cell, cfg Config) *Catalog {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Catalog{
		cell: cell, cfg: cfg,
		entries: tenancy.NewLRU[struct{}, *entry](cfg.MaxTenants),
		made:    tenancy.NewLRU[string, made](maxMade),
	}
}

func (c *Catalog) entry(s tenancy.Scope) *entry {
	k := tenancy.KeyOf(s, struct{}{})
	if e, ok := c.entries.Get(k); ok {
		return e
	}
	return c.entries.GetOrSet(k, &entry{})
}

// Get is the cached read: a fresh listing, or an old one while somebody else
// refreshes or when the refresh fails. It errs only with nothing in hand.
func (c *Catalog) Get(ctx context.Context, s tenancy.Scope) (*Listing, error) {
	e, by, now, since := c.entry(s), s.Credential(), c.cfg.Clock(), c.turn.Load()
	e.mu.Lock()
	list, age := e.inHand(by), now.Sub(e.read)
	if list != nil && (e.busy != nil || e.fresh(by, now)) {
		e.mu.Unlock()
		return list, nil
	}
	if list == nil {
		e.mu.Unlock()
		return c.refresh(ctx, s, e, since, true)
	}
	r := c.begin(e, by)
	e.mu.Unlock()
	if c.lead(ctx, s, e, r, true); r.err == nil {
		return r.list, nil
	}
	c.cfg.Log.Warn("serving an old topic listing", zap.Stringer("tenant", s.ID()), zap.Duration("age", age), zap.Error(r.err))
	return list, nil
}

// Recent is a listing read within the last 3 seconds, or an error: it never
// falls back to an old one.
func (c *Catalog) Recent(ctx context.Context, s tenancy.Scope) (*Listing, error) {
	e, by, since := c.entry(s), s.Credential(), c.turn.Load()
	e.mu.Lock()
	list, age := e.inHand(by), c.cfg.Clock().Sub(e.read)
	e.mu.Unlock()
	if list != nil && age < listingLife {
		return list, nil
	}
	return c.refresh(ctx, s, e, since, true)
}

// Fresh is the read that bypasses the cache: a call begun after Fresh was, or
// the replay of this credential's own failure.
func (c *Catalog) Fresh(ctx context.Context, s tenancy.Scope) (*Listing, error) {
	e, since := c.entry(s), c.turn.Load()
	e.mu.Lock()
	older := e.busy
	e.mu.Unlock()
	if older != nil {
		select {
		case <-older.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.refresh(ctx, s, e, since, false)
}

// Warm keeps the listing that a login has read, unless what is kept is newer.
// began is when its call began.
func (c *Catalog) Warm(s tenancy.Scope, queues []proxyclient.Queue, began time.Time) {
	e := c.entry(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !began.After(e.since) || began.Before(e.began) {
		return
	}
	if e.widths == nil { // a listing without widths would narrow topics
		e.seed, e.seedBegan = queues, began
		return
	}
	now := c.cfg.Clock()
	if e.hasNewcomer(queues, e.widths, now) { // the next read looks for its record
		e.seed, e.seedBegan, e.checked = queues, began, time.Time{}
		return
	}
	e.keep(c.listing(s, queues, e.widths, 0), began, now)
	e.checked = now
}

// Invalidate drops what is kept of a tenant. What is being read now reaches only
// those who asked before.
func (c *Catalog) Invalidate(s tenancy.Scope) {
	c.entries.Set(tenancy.KeyOf(s, struct{}{}), &entry{since: c.cfg.Clock()})
}

// refresh takes what was begun after turn since, joins the call under way or
// makes one. What another credential was refused is not this one's answer: then
// it makes its own. seeded says that a login's listing will do.
func (c *Catalog) refresh(ctx context.Context, s tenancy.Scope, e *entry, since uint64, seeded bool) (*Listing, error) {
	by := s.Credential()
	for {
		e.mu.Lock()
		if list := e.inHand(by); list != nil && list.turn > since {
			e.mu.Unlock()
			return list, nil
		}
		if err := e.refused(by, c.cfg.Clock()); err != nil {
			e.mu.Unlock()
			return nil, err
		}
		r := e.busy
		if r == nil {
			r = c.begin(e, by)
			e.mu.Unlock()
			c.lead(ctx, s, e, r, seeded)
			return r.list, r.err
		}
		e.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.seeded && !seeded {
			continue // begun in time, but read before
		}
		if r.by == by || r.err == nil && !r.blind {
			return r.list, r.err
		}
	}
}

// begin puts a call under way; e.mu is held.
func (c *Catalog) begin(e *entry, by tenancy.Credential) *refresh {
	e.busy = &refresh{
		by: by, done: make(chan struct{}), err: context.Canceled, // what a panic leaves
		turn: c.turn.Add(1), began: c.cfg.Clock(),
	}
	return e.busy
}

// lead makes the call for everybody who waits; its client's leaving must not
// fail them. The cell client bounds the time.
func (c *Catalog) lead(ctx context.Context, s tenancy.Scope, e *entry, r *refresh, seeded bool) {
	defer close(r.done)
	defer c.settle(e, r)
	ctx = context.WithoutCancel(ctx)

	known, due := e.declared(r.by, c.cfg.Clock())
	scans := make(chan scanned, 1)
	if due {
		go c.scanWidths(ctx, s, scans)
	} else {
		scans <- scanned{found: known}
	}
	queues, err := c.list(ctx, s, e, r, seeded)
	scan := <-scans
	if err != nil {
		r.err = err
		return
	}
	widths, err := c.declared(e, r, known, scan, due)
	if err != nil {
		r.err = err
		return
	}
	if e.newcomers(r.by, queues, widths, due, c.cfg.Clock()) {
		go c.scanWidths(ctx, s, scans)
		if widths, err = c.declared(e, r, widths, <-scans, true); err != nil {
			r.err = err
			return
		}
	}
	r.blind = widths == nil
	r.list, r.err = c.listing(s, queues, widths, r.turn), nil
	if r.seeded {
		r.list.turn = 0 // its call began some time before
	}
}

// declared is what a scan says about widths that were known before it. nil is
// that nobody may say; an error, that nobody could.
func (c *Catalog) declared(e *entry, r *refresh, known widths, scan scanned, due bool) (widths, error) {
	now := c.cfg.Clock()
	switch {
	case !due:
		return known, nil
	case scan.err == nil:
		e.keepWidths(scan.found, now)
		return scan.found, nil
	case errors.Is(scan.err, errTruncated):
		found := scan.found.over(known) // what was not seen stays
		e.keepWidths(found, now)
		return found, nil
	case final(scan.err):
		e.deafen(r.by, now)
		return known, nil
	case known != nil:
		return known, nil
	}
	// The defaults could be narrower than what was declared, and keys would go
	// elsewhere. The client asks again.
	return nil, scan.err
}

// list reads the queues, or takes what a login has read just now.
func (c *Catalog) list(ctx context.Context, s tenancy.Scope, e *entry, r *refresh, seeded bool) ([]proxyclient.Queue, error) {
	if queues, began := e.takeSeed(c.cfg.Clock()); seeded && queues != nil {
		r.began, r.seeded = began, true
		return queues, nil
	}
	return c.cell.ListQueues(ctx, s)
}

// scanned is the outcome of a scan of the topic records.
type scanned struct {
	found widths
	err   error
}

// scanWidths is owned by lead, which waits for its answer.
func (c *Catalog) scanWidths(ctx context.Context, s tenancy.Scope, out chan<- scanned) {
	found, err := c.scan(ctx, s)
	if err != nil {
		c.cfg.Log.Debug("topic records could not be read", zap.Stringer("tenant", s.ID()), zap.Error(err))
	}
	out <- scanned{found, err}
}

func (c *Catalog) settle(e *entry, r *refresh) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := c.cfg.Clock()
	e.busy = nil
	if r.err != nil {
		e.failures = put(e.failures, r.by, failure{err: r.err, until: now.Add(failureLife)}, now)
		if !verdict(r.err) { // what one credential may not keeps no other from asking
			e.checked = now
		}
		return
	}
	e.checked = now
	delete(e.failures, r.by)
	if e.keep(r.list, r.began, now) && r.blind {
		e.blind = r.by
	}
}

// verdict reports a refusal that concerns a credential, as opposed to a cell
// that could not be asked.
func verdict(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Kind == proxyclient.KindStatus && (e.Status == 401 || e.Status == 403)
}

// final reports a refusal that asking again does not change: 4xx, but for a
// timeout and a limit.
func final(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Kind == proxyclient.KindStatus && e.Status >= 400 && e.Status < 500 && e.Status != 408 && e.Status != 429
}
