package catalog

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Freshness of what is kept (kafka-surface §6.6).
const (
	listingLife = 3 * time.Second  // from the end of the last call, whatever its outcome
	widthsLife  = 30 * time.Second // between two scans of the topic records
	failureLife = 3 * time.Second  // a failure is replayed to its own credential
	maxFailures = 64               // credentials of one tenant whose failures are kept
)

// Cell is what the catalog asks of a cell.
type Cell interface {
	ListQueues(ctx context.Context, s tenancy.Scope) ([]proxyclient.Queue, error)
	Configure(ctx context.Context, s tenancy.Scope, queue string, options map[string]any) (string, error)
	KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error)
}

// Config are the catalog's settings.
type Config struct {
	DefaultPartitions int32
	MaxPartitions     int32
	MaxTenants        int // listings kept
	MaxCreates        int // topics created by one request
	Clock             func() time.Time
	Log               *zap.Logger
}

// Catalog keeps the listings of all tenants. It is safe for concurrent use.
type Catalog struct {
	cell    Cell
	cfg     Config
	entries *tenancy.LRU[struct{}, *entry]
	creates tenancy.Flight[tenancy.Key[string], Topic]
}

// entry is one tenant's state.
type entry struct {
	mu       sync.Mutex // guards the fields below; never held over a call
	list     *Listing   // last good one
	at       time.Time  // end of the last refresh
	busy     *refresh   // under way
	widths   widths     // last good scan; nil before the first
	scanAt   time.Time
	failures map[tenancy.Credential]failure
}

type failure struct {
	err   error
	until time.Time
}

// refresh is one call under way.
type refresh struct {
	by   tenancy.Credential
	done chan struct{}
	list *Listing
	err  error
}

// New makes a catalog.
func New(cell Cell, cfg Config) *Catalog {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Catalog{cell: cell, cfg: cfg, entries: tenancy.NewLRU[struct{}, *entry](cfg.MaxTenants)}
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
	e := c.entry(s)
	e.mu.Lock()
	list, age, busy := e.list, c.cfg.Clock().Sub(e.at), e.busy != nil
	e.mu.Unlock()
	if list != nil && (age < listingLife || busy) {
		return list, nil
	}
	fresh, err := c.refresh(ctx, s, e)
	if err == nil {
		return fresh, nil
	}
	if list == nil {
		return nil, err
	}
	c.cfg.Log.Warn("serving an old topic listing", zap.Stringer("tenant", s.ID()), zap.Duration("age", age), zap.Error(err))
	return list, nil
}

// Fresh is the read that bypasses the cache: a call begun after Fresh was, or
// the replay of this credential's own failure.
func (c *Catalog) Fresh(ctx context.Context, s tenancy.Scope) (*Listing, error) {
	e := c.entry(s)
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
	return c.refresh(ctx, s, e)
}

// Warm keeps the listing that a login has just read.
func (c *Catalog) Warm(s tenancy.Scope, queues []proxyclient.Queue) {
	e := c.entry(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.widths == nil {
		return // widths come first: a listing without them would narrow topics
	}
	e.list, e.at = c.listingOf(queues, e.widths), c.cfg.Clock()
}

// Invalidate drops what is kept of a tenant.
func (c *Catalog) Invalidate(s tenancy.Scope) { c.entries.Delete(tenancy.KeyOf(s, struct{}{})) }

// refresh joins the call under way or makes one. What another credential was
// refused is not this one's answer: then it makes its own.
func (c *Catalog) refresh(ctx context.Context, s tenancy.Scope, e *entry) (*Listing, error) {
	for {
		e.mu.Lock()
		if f, ok := e.failures[s.Credential()]; ok && c.cfg.Clock().Before(f.until) {
			e.mu.Unlock()
			return nil, f.err
		}
		r := e.busy
		if r == nil {
			r = &refresh{by: s.Credential(), done: make(chan struct{}), err: context.Canceled}
			e.busy = r
			e.mu.Unlock()
			c.lead(ctx, s, e, r)
			return r.list, r.err
		}
		e.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.err == nil || r.by == s.Credential() {
			return r.list, r.err
		}
	}
}

// lead makes the call for everybody who waits; its client's leaving must not
// fail them. The cell client bounds the time.
func (c *Catalog) lead(ctx context.Context, s tenancy.Scope, e *entry, r *refresh) {
	defer close(r.done)
	defer c.settle(s, e, r)
	ctx = context.WithoutCancel(ctx)

	declared, due := e.declared(c.cfg.Clock())
	scanned := make(chan widths, 1)
	if due {
		go c.scanWidths(ctx, s, scanned)
	} else {
		scanned <- declared
	}
	queues, err := c.cell.ListQueues(ctx, s)
	found := <-scanned
	if err != nil {
		r.err = err
		return
	}
	if found == nil {
		found = declared // a failed scan keeps what is known
	} else if due {
		e.keepWidths(found, c.cfg.Clock())
	}
	r.list, r.err = c.listingOf(queues, found), nil
}

// scanWidths is owned by lead, which waits for its answer. nil is a failure.
func (c *Catalog) scanWidths(ctx context.Context, s tenancy.Scope, out chan<- widths) {
	found, err := c.scan(ctx, s)
	if err != nil {
		c.cfg.Log.Debug("topic records could not be read", zap.Stringer("tenant", s.ID()), zap.Error(err))
		found = nil
	}
	out <- found
}

func (c *Catalog) settle(s tenancy.Scope, e *entry, r *refresh) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := c.cfg.Clock()
	e.busy, e.at = nil, now
	if r.err == nil {
		e.list = r.list
		delete(e.failures, s.Credential())
		return
	}
	if e.failures == nil || len(e.failures) >= maxFailures {
		e.failures = make(map[tenancy.Credential]failure)
	}
	e.failures[s.Credential()] = failure{err: r.err, until: now.Add(failureLife)}
}

// declared returns the widths in hand and whether a scan is due.
func (e *entry) declared(now time.Time) (widths, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.widths, e.widths == nil || now.Sub(e.scanAt) >= widthsLife
}

func (e *entry) keepWidths(found widths, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.widths, e.scanAt = found, now
}
