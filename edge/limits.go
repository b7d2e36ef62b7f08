package edge

import (
	"sync/atomic"
	"time"

	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Bounds of what a tenant's own limits do to its connections (B6).
const (
	// longestMute is the longest that one answer may ask a client to wait. Clients
	// give a request up after 10 s and more, whoever its timeout was left to.
	longestMute = 5 * time.Second
	// shortestTimeout is the least that a request's own timeout is taken for: one
	// of a millisecond would be a way around the limit.
	shortestTimeout = 200 * time.Millisecond
	// mutesOfSession is how many mutes a session holds at least where members share
	// their connection with what is throttled.
	mutesOfSession = 6
	// smallFrame is what is read of a muted connection, so that what must not wait
	// is seen behind it.
	smallFrame = 64 << 10
	// connectBurst is how many seconds of the connect rate may come at once: a
	// deployment starts its clients together.
	connectBurst = 10
)

// limits are those of every tenant on its own. What they count is the tenants',
// not the connections'.
type limits struct {
	connects *tenancy.Rates // nil: none
	requests *tenancy.Rates // nil: none
	keeping  time.Duration  // the longest mute of a connection that keeps members alive

	throttled atomic.Int64 // answers that asked their client to wait
	asked     atomic.Int64 // for how long in all, in ms
}

func newLimits(cfg *config.Config) *limits {
	l := &limits{keeping: min(cfg.Group.MinSessionTimeout/mutesOfSession, longestMute)}
	if n := cfg.Tenant.ConnectRate; n > 0 {
		l.connects = tenancy.NewRates(n, connectBurst*n, 0)
	}
	if n := cfg.Tenant.MaxRequestRate; n > 0 {
		l.requests = tenancy.NewRates(n, n, longestMute)
	}
	return l
}

// admit takes a tenant's place for a connection, or says which limit is in the
// way.
func (s *Server) admit(scope tenancy.Scope) error {
	switch {
	case s.conns.Full(scope, 1):
		return wire.Closing(wire.TenantConnections, nil)
	case !s.conns.Take(scope, 1):
		return wire.Closing(wire.CapacityTenant, nil)
	case !s.limits.connects.Allow(scope, s.clock()):
		s.conns.Give(scope, 1)
		return wire.Closing(wire.TenantConnectRate, nil)
	}
	return nil
}

// heldBack reports ends of a login that the client is made to wait for, so that
// it does not come back at once.
func heldBack(r wire.Reason) bool {
	return r == wire.CapacityTenant || r == wire.TenantConnections || r == wire.TenantConnectRate || r == wire.LoginBraked
}

// pace keeps a connection within its tenant's request rate as Apache Kafka does
// since KIP-219, for requests of every version: the answer goes out at once and
// says for how long the connection is muted from then on. Clients of a time
// before that do not wait by themselves; their next request waits in the socket.
//
// Requests that keep a member or a transaction alive are counted and never held:
// theirs are read and answered during a mute. Answers keep the order of their
// requests, so what came before such a one is answered with it, once per keeping
// time and no more often, or they would be a way around the limit.
type pace struct {
	rates *limits
	keeps atomic.Bool  // the connection carries such requests; the reader's to set
	until atomic.Int64 // muted until then, in ns since 1970; the worker's to set

	// The worker's.
	within  time.Time     // when what is being answered is within the rate; zero: it is
	told    time.Duration // what the answers under construction say
	named   time.Duration // the shortest timeout that a request has named; 0: none has
	passing bool          // requests pass because one that must not be held is behind them
	pass    time.Time     // when that may happen again
}

// newPace is nil where there is no rate to keep.
func newPace(l *limits) *pace {
	if l.requests == nil {
		return nil
	}
	return &pace{rates: l}
}

// left is for how long the connection is still muted.
func (p *pace) left() time.Duration { return time.Until(time.Unix(0, p.until.Load())) }

// most is the longest mute there may be now.
func (p *pace) most() time.Duration {
	most := longestMute
	if p.keeps.Load() {
		most = p.rates.keeping
	}
	if p.named > 0 {
		most = min(most, max(p.named, shortestTimeout)/2) // the other half is for the next request
	}
	return most
}

// charge counts a run of requests, which are all of one API.
func (c *conn) charge(run []frame) {
	p := c.pace
	if p == nil || run[0].end != nil {
		return
	}
	now := c.srv.clock()
	owed := p.rates.requests.Take(c.scope, len(run), now)
	p.within, p.told = time.Time{}, 0
	switch {
	case run[0].unheld():
		if p.passing {
			p.passing, p.pass = false, time.Now().Add(p.rates.keeping)
		}
	case owed > 0:
		p.within = now.Add(owed)
	}
}

// throttle is what an answer under construction asks its client to wait; named is
// the timeout that its request names, 0 where it has none. A request that has
// waited for the cell meanwhile has waited.
func (c *conn) throttle(named time.Duration) time.Duration {
	p := c.pace
	if named > 0 && (p.named == 0 || named < p.named) {
		p.named = named
	}
	if p.within.IsZero() {
		return 0
	}
	wait := min(p.within.Sub(c.srv.clock()), p.most())
	if wait <= 0 {
		return 0
	}
	wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	p.told = max(p.told, wait)
	p.rates.throttled.Add(1)
	p.rates.asked.Add(wait.Milliseconds())
	return wait
}

// mute begins before the answers are written: a client that has read one may have
// its next request here before write returns.
func (c *conn) mute() {
	if p := c.pace; p != nil && p.told > 0 {
		p.until.Store(time.Now().Add(p.told).UnixNano())
		p.told = 0
	}
}

// sitOutMute holds the worker while the connection is muted, for as long as
// nothing waits that must not, and anybody waits for the answers.
func (c *conn) sitOutMute() {
	p := c.pace
	if p == nil {
		return
	}
	for {
		left := p.left()
		first, any := c.queue.unheld()
		if left <= 0 || first {
			return
		}
		if any {
			again := time.Until(p.pass)
			if p.passing = again <= 0; p.passing {
				return
			}
			left = min(left, again)
		}
		if !c.rest(left, c.queue.bell) {
			return
		}
	}
}

// rest waits for d, or until the bell rings; false says that nobody waits for
// answers any more.
func (c *conn) rest(d time.Duration, bell <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-bell:
	case <-c.poll.Done():
		return false
	}
	return true
}

// awaitUnmuted is the mute as the client's socket sees it: a frame that may be
// held is not read while it lasts.
func (c *conn) awaitUnmuted(f *frame, size int) {
	p := c.pace
	if p == nil {
		return
	}
	if f.unheld() {
		if f.req.Row.Keeps() {
			p.keeps.Store(true)
		}
		return
	}
	for size > smallFrame || !p.keeps.Load() {
		left := p.left()
		if left <= 0 || !c.rest(left, nil) {
			return
		}
	}
}
