package proxy

import (
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// account is what the proxy knows of one cluster between its requests.
type account struct {
	mu        sync.Mutex // guards the fields below
	requests  bucket
	messages  bucket
	registry  registry
	storage   storage
	overdrawn bool  // the monthly quota is used up
	parked    int64 // waiting pops
	keys      keyLimits
}

// account finds a cluster's, or opens one. Clusters are never removed, and
// whoever gets here has been proved to be one.
func (p *Proxy) account(v *control.View) *account {
	p.accountsMu.RLock()
	a := p.accounts[v.ID]
	p.accountsMu.RUnlock()
	if a != nil {
		return a
	}
	p.accountsMu.Lock()
	defer p.accountsMu.Unlock()
	if a = p.accounts[v.ID]; a == nil {
		a = new(account)
		p.accounts[v.ID] = a
	}
	return a
}

// takeRequest takes the token of one request.
func (a *account) takeRequest(l *control.Limits, now time.Time) (retryAfter int, ok bool) {
	if !l.MaxReqPerSec.Bounded() {
		return 0, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests.take(1, l.MaxReqPerSec, l.ReqBurst, now)
}

// takeMessages takes the tokens of n push items.
func (a *account) takeMessages(n int64, l *control.Limits, now time.Time) (retryAfter int, ok bool) {
	if !l.MaxMsgsPerSec.Bounded() {
		return 0, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.messages.take(float64(n), l.MaxMsgsPerSec, l.MsgsBurst, now)
}

// requestRate takes one token for a request that may do what it asks.
func (p *Proxy) requestRate(c *call) *refusal {
	after, ok := p.account(c.cluster).takeRequest(&c.cluster.Limits, p.clock())
	if ok {
		return nil
	}
	return p.unlessShadow(c, rateLimited("request rate limit exceeded", after))
}

// messageRate takes a token for each item of a push.
func (p *Proxy) messageRate(c *call, items int64) *refusal {
	after, ok := p.account(c.cluster).takeMessages(items, &c.cluster.Limits, p.clock())
	if ok {
		return nil
	}
	return p.unlessShadow(c, rateLimited("message rate limit exceeded", after))
}
