package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// kvTime is how KV rows show their times (cell-http §4.4).
const kvTime = `"2006-01-02T15:04:05.999999+00:00"`

// classifyBatch reads a KV batch and settles its class: what holds nothing but
// a gateway's own keys is a consumer's business and no feature; anything else
// is the key space a plan may have (cell-http §5.2).
func (p *Proxy) classifyBatch(c *call) *refusal {
	if c.target.route != RouteKV {
		return nil
	}
	body, f := p.readBody(c)
	if f != nil {
		return f
	}
	c.held = body
	b, ok := p.batches.Get().(*kvBody)
	if !ok {
		b = new(kvBody)
	}
	c.kv = b
	b.decode(body.b)
	if b.private {
		c.target.class, c.target.feature = classConsume, noFeature
	}
	return nil
}

// keys runs a KV batch (cell-http §4).
func (p *Proxy) keys(c *call) *refusal {
	if c.kv.wrong != nil {
		p.refuseKV(c, c.kv.wrong)
		return nil
	}
	if f := p.admitKeys(c, c.kv.ops); f != nil {
		p.refuseKV(c, f)
		return nil
	}
	results, err := p.broker.KV(p.ctx(c), c.tenant(), c.kv.ops)
	if err != nil {
		return p.keysFailed(c, err)
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"results":[`)
	for i := range results {
		if i > 0 {
			a.Comma()
		}
		a.RawStr(`{"index":`)
		a.int(int64(i))
		a.kvResult(&results[i])
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]}`)
	a.finish()
	return nil
}

// keysFailed answers a batch of which nothing was done. A lost required
// condition is 200 (cell-http §4.6).
func (p *Proxy) keysFailed(c *call, err error) *refusal {
	if lost, ok := errors.AsType[*broker.KVPrecondition](err); ok {
		p.keysLost(c, lost)
		return nil
	}
	if f := kvRefused(err); f != nil {
		p.refuseKV(c, f)
		return nil
	}
	f := p.failed(c, "kv", err)
	switch {
	case errors.Is(err, broker.ErrClosed):
		p.refuseKV(c, &kvRefusal{status: http.StatusServiceUnavailable, err: string(broker.KVUnavailable), detail: f.text, retryAfter: 1})
	case f.status == http.StatusInternalServerError:
		p.refuseKV(c, &kvRefusal{status: f.status, err: string(broker.KVFailed), detail: f.text})
	default:
		return f
	}
	return nil
}

// keysLost renders the row that won over a required condition.
func (p *Proxy) keysLost(c *call, lost *broker.KVPrecondition) {
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"ok":false,"reason":"kv_precondition"`)
	a.winner(lost.FailedIndex, lost.Reason, lost.Version, lost.Value)
	a.RawStr(`}`)
	a.finish()
}

// maxWinner is the largest value of a row that won that is shown; beyond it the
// verdict has no details (cell-http §4.6).
const maxWinner = 4 << 10

// winner renders which condition was lost, and to what.
func (a *answer) winner(index int, reason broker.KVReason, version int64, value []byte) {
	if len(value) > maxWinner {
		return
	}
	a.RawStr(`,"failedIndex":`)
	a.int(int64(index))
	a.RawStr(`,"kvReason":`)
	a.Str(string(reason))
	a.RawStr(`,"version":`)
	a.int(version)
	a.RawStr(`,"value":`)
	a.json(value)
}

// kvRefused is the envelope of the broker's refusal of a whole batch; nil for
// another error.
func kvRefused(err error) *kvRefusal {
	refused, ok := errors.AsType[*broker.KVError](err)
	if !ok {
		return nil
	}
	f := &kvRefusal{err: string(refused.Kind), reason: refused.Reason, detail: refused.Detail}
	switch refused.Kind {
	case broker.KVBadRequest:
		f.status = http.StatusBadRequest
	case broker.KVPayloadTooLarge:
		f.status = http.StatusRequestEntityTooLarge
	case broker.KVQuotaExceeded, broker.KVFeatureGated:
		f.status = http.StatusForbidden
	case broker.KVNotFound:
		f.status = http.StatusNotFound
	case broker.KVRateLimited:
		f.status, f.retryAfter = http.StatusTooManyRequests, 1
	case broker.KVUnavailable:
		f.status, f.retryAfter = http.StatusServiceUnavailable, 1
	default:
		f.status = http.StatusInternalServerError
	}
	return f
}

// refuseKV writes the KV envelope. It is the broker's: the request is metered.
func (p *Proxy) refuseKV(c *call, f *kvRefusal) {
	if f.retryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.status >= http.StatusInternalServerError {
		p.log.Warn("a batch of keys failed", zap.String("cluster", c.cluster.Slug), zap.String("error", f.err), zap.String("detail", f.detail))
	}
	a := p.newAnswer(c, f.status)
	defer p.release(a)
	a.RawStr(`{"error":`)
	a.Str(f.err)
	if f.reason != "" {
		a.RawStr(`,"reason":`)
		a.Str(f.reason)
	}
	if f.detail != "" {
		a.RawStr(`,"detail":`)
		a.Str(f.detail)
	}
	a.RawStr(`}`)
	a.finish()
}

// json writes raw JSON, null where there is none.
func (a *answer) json(raw []byte) {
	if raw == nil {
		a.Null()
		return
	}
	a.payload(raw)
}

// kvResult renders one result behind its index (cell-http §4.4).
func (a *answer) kvResult(r *broker.KVResult) {
	a.RawStr(`,"op":`)
	a.Str(string(r.Kind))
	switch r.Kind {
	case broker.KVGetMany:
		a.kvRows(r.Rows)
		a.RawStr(`,"missing":[`)
		for i, key := range r.Missing {
			if i > 0 {
				a.Comma()
			}
			a.Str(key)
		}
		a.RawStr(`],"truncated":`)
		a.Bool(r.Truncated)
	case broker.KVGetPrefix:
		a.kvRows(r.Rows)
		a.RawStr(`,"truncated":`)
		a.Bool(r.Truncated)
		a.RawStr(`,"nextAfter":`)
		if r.NextAfter == "" {
			a.Null()
		} else {
			a.Str(r.NextAfter)
		}
	case broker.KVGet:
		a.RawStr(`,"found":`)
		a.Bool(r.Found)
		a.kvRow(r.Key, r.Value, r.Version)
		if r.Found {
			a.kvTimes(r.ExpiresAt, r.UpdatedAt)
		}
	default:
		a.RawStr(`,"applied":`)
		a.Bool(r.Applied)
		a.kvRow(r.Key, r.Value, r.Version)
		if r.Reason != "" {
			a.RawStr(`,"reason":`)
			a.Str(string(r.Reason))
		}
	}
}

// kvRow renders what every view of a row has.
func (a *answer) kvRow(key string, value []byte, version int64) {
	a.RawStr(`,"key":`)
	a.Str(key)
	a.RawStr(`,"value":`)
	a.json(value)
	a.RawStr(`,"version":`)
	a.int(version)
}

// kvRows renders the rows of a page. Rows without values have no such member,
// for null is a value.
func (a *answer) kvRows(rows []broker.KVRow) {
	a.RawStr(`,"rows":[`)
	for i := range rows {
		if i > 0 {
			a.Comma()
		}
		r := &rows[i]
		a.RawStr(`{"key":`)
		a.Str(r.Key)
		if r.Value != nil {
			a.RawStr(`,"value":`)
			a.payload(r.Value)
		}
		a.RawStr(`,"version":`)
		a.int(r.Version)
		a.kvTimes(r.ExpiresAt, r.UpdatedAt)
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.RawStr(`]`)
}

// kvTimes renders when a row ends, null for never, and when it was written.
func (a *answer) kvTimes(expires, updated time.Time) {
	a.RawStr(`,"expiresAt":`)
	if expires.IsZero() {
		a.Null()
	} else {
		a.time(expires, kvTime)
	}
	a.RawStr(`,"updatedAt":`)
	a.time(updated, kvTime)
}
