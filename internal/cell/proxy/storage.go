package proxy

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// releaseShare is the part of its cap a cluster must come down to before it may
// push again, so that it does not flap around the cap (cell-http §5.5).
const releaseShare = 0.9

// warnShare is the part of the monthly quota from where on the log says so.
const warnShare = 0.8

// storage is what a cluster keeps at the broker.
type storage struct {
	measured int64 // bytes, at the last reconcile
	accepted int64 // payload bytes taken since measured last changed
	blocked  bool
}

// accept counts payload that the broker took. Reaching the cap blocks at once:
// the next measure may be a minute away.
func (s *storage) accept(bytes int64, limit control.Limit) {
	s.accepted += bytes
	if most, bounded := limit.Value(); bounded && float64(s.measured+s.accepted) >= most {
		s.blocked = true
	}
}

// measure takes a fresh measure in.
func (s *storage) measure(bytes int64, limit control.Limit) {
	if bytes != s.measured {
		s.measured, s.accepted = bytes, 0
	}
	most, bounded := limit.Value()
	switch {
	case !bounded:
		s.blocked = false
	case float64(s.measured) > most:
		s.blocked = true
	case float64(s.measured) <= releaseShare*most && float64(s.measured+s.accepted) < most:
		s.blocked = false
	}
}

// acceptPayload counts what a push or a transaction left at the broker.
func (p *Proxy) acceptPayload(c *call, items []broker.PushItem) {
	var bytes int64
	for i := range items {
		bytes += int64(len(items[i].Payload))
	}
	a := p.account(c.cluster)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.storage.accept(bytes, c.cluster.Limits.MaxRetainedBytes)
}

// Reconcile measures what every cluster stores and has pushed this month, and
// blocks or releases its pushes. The cell calls it from time to time; a change
// of limits is felt at the next call at the latest.
func (p *Proxy) Reconcile() {
	now := p.clock()
	for _, cluster := range p.control.Clusters() {
		v, ok := p.control.BySlug(cluster.Slug)
		if !ok {
			continue
		}
		bytes := p.stored(broker.Tenant(v.BrokerTenant))
		month := p.usage.monthTotal(v.ID, now)
		a := p.account(v)
		a.mu.Lock()
		before := a.storage.blocked
		a.storage.measure(bytes, v.Limits.MaxRetainedBytes)
		a.overdrawn = overdrawn(month, v.Limits.MonthlyMsgsQuota)
		after, over := a.storage.blocked, a.overdrawn
		a.mu.Unlock()
		if before != after {
			p.log.Warn("the storage cap changed what a cluster may do", zap.String("cluster", v.Slug),
				zap.Bool("pushes_blocked", after), zap.Int64("bytes", bytes), zap.Stringer("cap", v.Limits.MaxRetainedBytes))
		}
		if quota, bounded := v.Limits.MonthlyMsgsQuota.Value(); bounded && float64(month) >= warnShare*quota {
			p.log.Warn("the monthly quota is nearly used up, or is", zap.String("cluster", v.Slug),
				zap.Bool("pushes_blocked", over), zap.Int64("messages", month), zap.Float64("quota", quota))
		}
	}
}

// overdrawn reports a month's messages that reach the quota.
func overdrawn(messages int64, quota control.Limit) bool {
	most, bounded := quota.Value()
	return bounded && float64(messages) >= most
}

// stored is what a cluster keeps: records and keys.
func (p *Proxy) stored(t broker.Tenant) int64 {
	total := p.broker.KVStats(t).Bytes
	queues := p.broker.Queues(t)
	for i := range queues {
		total += queues[i].RetainedBytes
	}
	return total
}

// pushBlock says why a cluster may not add anything now; nil if it may. Storage
// precedes the month, the month the status (cell-http §5.3).
func (p *Proxy) pushBlock(v *control.View) *refusal {
	a := p.account(v)
	a.mu.Lock()
	full, over := a.storage.blocked, a.overdrawn
	a.mu.Unlock()
	// A cap that was taken away does not wait for the next measure.
	if full && v.Limits.MaxRetainedBytes.Bounded() {
		return refuse(http.StatusForbidden, "storage_quota_exceeded", "storage quota exceeded; pushes blocked")
	}
	if over && v.Limits.MonthlyMsgsQuota.Bounded() {
		return refuse(http.StatusForbidden, "quota_exceeded",
			"monthly message quota (monthly_msgs_quota) exhausted; pushes blocked until the next calendar month")
	}
	if v.Status == control.PushBlocked {
		return refuse(http.StatusForbidden, "push_blocked", "pushes blocked (billing hold)")
	}
	return nil
}
