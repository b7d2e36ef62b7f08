package catalog

import (
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// entry is one tenant's state.
type entry struct {
	since time.Time // what was read before is not to be kept; never changed

	mu        sync.Mutex         // guards the fields below; never held over a call
	list      *Listing           // last good one
	began     time.Time          // when the call that read it began
	read      time.Time          // when it was read
	blind     tenancy.Credential // its reader, who could not read the topic records; zero where they were read
	checked   time.Time          // end of the last call that counts for every credential
	busy      *refresh           // under way
	widths    widths             // last good scan; nil before the first
	scanAt    time.Time
	rescans   int                 // that are wanted soon, for queues that are new
	seed      []proxyclient.Queue // read by a login while there were no widths
	seedBegan time.Time
	failures  map[tenancy.Credential]failure
	deaf      map[tenancy.Credential]failure // who may not read topic records, for now
}

type failure struct {
	err   error
	until time.Time
}

// refresh is one call under way. by, turn and done are set when it begins, the
// rest is read after done.
type refresh struct {
	by     tenancy.Credential
	turn   uint64
	done   chan struct{}
	began  time.Time
	seeded bool // a login's listing was taken
	blind  bool // no widths are known
	list   *Listing
	err    error
}

// inHand is the listing that a credential may be given. One that was read
// without the topic records is its reader's only: another may read them. e.mu is
// held.
func (e *entry) inHand(by tenancy.Credential) *Listing {
	var nobody tenancy.Credential
	if e.blind != nobody && e.blind != by {
		return nil
	}
	return e.list
}

// fresh reports whether what is in hand needs no call; e.mu is held.
func (e *entry) fresh(by tenancy.Credential, now time.Time) bool {
	return now.Sub(e.checked) < listingLife || e.refused(by, now) != nil
}

// refused is the credential's own failure, while it is replayed; e.mu is held.
func (e *entry) refused(by tenancy.Credential, now time.Time) error {
	if f, ok := e.failures[by]; ok && now.Before(f.until) {
		return f.err
	}
	return nil
}

// keep keeps a listing, unless the one that is there was begun later; e.mu is
// held.
func (e *entry) keep(l *Listing, began, now time.Time) bool {
	if began.Before(e.began) {
		return false
	}
	var nobody tenancy.Credential
	e.list, e.began, e.read, e.blind, e.seed = l, began, now, nobody, nil
	return true
}

// takeSeed returns what a login has read, once, while it is fresh.
func (e *entry) takeSeed(now time.Time) ([]proxyclient.Queue, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	queues, began := e.seed, e.seedBegan
	e.seed = nil
	if now.Sub(began) >= listingLife {
		queues = nil
	}
	return queues, began
}

// declared returns the widths in hand and whether a scan is due.
func (e *entry) declared(by tenancy.Credential, now time.Time) (widths, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d, ok := e.deaf[by]; ok && now.Before(d.until) {
		return e.widths, false
	}
	life := widthsLife
	if e.rescans > 0 {
		life = newcomerLife
	}
	return e.widths, e.widths == nil || now.Sub(e.scanAt) >= life
}

// newcomers looks for queues that are new and have no record among those known:
// somebody else made them, and the record may have come after the last scan, or
// be on its way. The records are wanted again then, and once more after a moment
// (cell-http §3.1). It reports whether a scan is to be made at once.
func (e *entry) newcomers(by tenancy.Credential, queues []proxyclient.Queue, known widths, scanned bool, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d, ok := e.deaf[by]; ok && now.Before(d.until) || !e.hasNewcomer(queues, known, now) {
		return false
	}
	if scanned {
		e.rescans = 1
		return false
	}
	e.rescans = 2
	return now.Sub(e.scanAt) >= newcomerLife
}

// hasNewcomer compares with the listing in hand; e.mu is held.
func (e *entry) hasNewcomer(queues []proxyclient.Queue, known widths, now time.Time) bool {
	if e.list == nil {
		return false
	}
	for _, q := range queues {
		if t, ok := e.list.Find(q.Name); ok && t.QueueID == q.ID || !Legal(q.Name) || Reserved(q.Name) {
			continue
		}
		if _, ok := known.of(q.Name, q.ID, now); !ok {
			return true
		}
	}
	return false
}

func (e *entry) keepWidths(found widths, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.widths, e.scanAt = found, now
	e.rescans = max(e.rescans-1, 0)
}

// deafen spares a credential that may not read topic records the next scans:
// each would cost its tenant a request.
func (e *entry) deafen(by tenancy.Credential, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deaf = put(e.deaf, by, failure{until: now.Add(widthsLife)}, now)
}

// put adds to a map of failures, which stays bounded.
func put(m map[tenancy.Credential]failure, by tenancy.Credential, f failure, now time.Time) map[tenancy.Credential]failure {
	if m == nil {
		m = make(map[tenancy.Credential]failure)
	}
	if len(m) >= maxFailures {
		for k, old := range m {
			if !now.Before(old.until) {
				delete(m, k)
			}
		}
	}
	if len(m) >= maxFailures {
		clear(m)
	}
	m[by] = f
	return m
}
