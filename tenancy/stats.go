package tenancy

import "sync/atomic"

// CacheStats are a cache's look-ups since the start, and what it holds.
type CacheStats struct {
	Hits, Misses int64
	Entries      int
}

// hits counts look-ups.
type hits struct{ yes, no atomic.Int64 }

func (h *hits) add(hit bool) {
	if hit {
		h.yes.Add(1)
		return
	}
	h.no.Add(1)
}

// Stats counts the verifier's caches: checks are logins that needed no call of
// their own, identities are settled answers of /auth/me.
func (v *Verifier[L]) Stats() (checks, identities CacheStats) {
	return CacheStats{v.checks.yes.Load(), v.checks.no.Load(), v.successes.len()},
		CacheStats{v.asked.yes.Load(), v.asked.no.Load(), v.identities.len()}
}
