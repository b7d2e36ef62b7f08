package proxy

import (
	"net/http"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// keyLimits is what an account keeps of its cluster's key space: the rates of
// calls that read and that write, and whether the grant is used up (cell-http
// §4.7). The contract has a broker hold them, so a refusal is the broker's: in
// the KV envelope, and metered.
type keyLimits struct {
	reads, writes bucket
	full          bool
}

// keyCall is what a call does with keys.
type keyCall struct {
	reads bool
	puts  bool // adds or changes: a full grant stops it
	frees bool // deletes
}

func keyCallOf(ops []broker.KVOp) (k keyCall) {
	for i := range ops {
		switch ops[i].Kind {
		case broker.KVPut, broker.KVPutIfAbsent, broker.KVIncr:
			k.puts = true
		case broker.KVDelete:
			k.frees = true
		default:
			k.reads = true
		}
	}
	return k
}

// admitKeys holds a call with keys against rates and grant. A call takes one
// token of each bucket it needs, however many operations it has: a gateway
// commits as many offsets as it can with each.
func (p *Proxy) admitKeys(c *call, ops []broker.KVOp) *kvRefusal {
	l := &c.cluster.Limits
	if len(ops) == 0 || !l.KVReadsPerSec.Bounded() && !l.KVWritesPerSec.Bounded() && !l.KVMaxRows.Bounded() && !l.KVMaxBytes.Bounded() {
		return nil
	}
	do := keyCallOf(ops)
	var used broker.KVUsage
	if do.puts {
		used = p.broker.KVStats(c.tenant())
	}
	a := p.account(c.cluster)
	a.mu.Lock()
	defer a.mu.Unlock()
	if do.puts && a.keys.isFull(used, l) {
		return &kvRefusal{status: http.StatusForbidden, err: string(broker.KVQuotaExceeded), detail: "the rows or bytes of the key space are used up"}
	}
	now := p.clock()
	if do.puts || do.frees {
		if after, ok := a.keys.writes.take(1, l.KVWritesPerSec, l.KVWritesBurst, now); !ok {
			return keysTooFast("write", after)
		}
	}
	if do.reads {
		if after, ok := a.keys.reads.take(1, l.KVReadsPerSec, l.KVReadsBurst, now); !ok {
			return keysTooFast("read", after)
		}
	}
	return nil
}

func keysTooFast(what string, after int) *kvRefusal {
	return &kvRefusal{status: http.StatusTooManyRequests, err: string(broker.KVRateLimited), detail: what + " rate limit exceeded", retryAfter: after}
}

// isFull blocks above a cap, and releases at 90 % of it.
func (k *keyLimits) isFull(used broker.KVUsage, l *control.Limits) bool {
	switch {
	case l.KVMaxRows.Exceeded(used.Rows) || l.KVMaxBytes.Exceeded(used.Bytes):
		k.full = true
	case k.full && released(used.Rows, l.KVMaxRows) && released(used.Bytes, l.KVMaxBytes):
		k.full = false
	}
	return k.full
}

func released(used int64, limit control.Limit) bool {
	most, bounded := limit.Value()
	return !bounded || float64(used) <= most*releaseShare
}
