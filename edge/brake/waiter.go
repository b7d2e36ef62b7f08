package brake

import (
	"container/list"
	"net/netip"
	"time"
)

// waiter is one login on its way past the brakes.
type waiter struct {
	from   netip.Prefix
	brakes [brakeCount]*brake // that it passes, in their order
	letIn  chan struct{}      // closed when it may go

	at    *brake // in whose line it is; nil: in none
	line  *list.List
	place *list.Element
}

// stoppedBy is the first brake that has no room, or where others wait for it; nil:
// none.
func (w *waiter) stoppedBy(now time.Time) *brake { return w.stoppedElsewhere(nil, now) }

// stoppedElsewhere is stoppedBy for one who has come to the front at a brake.
func (w *waiter) stoppedElsewhere(front *brake, now time.Time) *brake {
	for _, br := range w.brakes {
		if br != front && (br.waiting() > 0 || !br.hasRoom(now)) {
			return br
		}
	}
	return nil
}

// pass begins the check, at every brake.
func (w *waiter) pass() {
	for _, br := range w.brakes {
		br.checks++
	}
	close(w.letIn)
}

// quit leaves the line.
func (w *waiter) quit() {
	w.line.Remove(w.place)
	if w.at.kind != Address {
		w.brakes[Address].beyond--
	}
	w.at, w.line, w.place = nil, nil, nil
}
