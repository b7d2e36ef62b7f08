// Package brake slows the logins of whoever is refused often, before they reach
// the cell (B4). Three brakes stand one behind the other: of the address, of the
// lane, and of the process. Each lets a number of refusals pass at once and then
// so many a second; what is under way counts as if it would be refused until it
// is not, so one number bounds both a flood and the checks at one time. Who is
// not refused pays nothing: many tenants behind one address do not slow each
// other.
package brake

import (
	"container/list"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// Limits are one brake's: Burst refusals at once, then PerSecond.
type Limits struct {
	Burst     int
	PerSecond float64
}

// brake is one of them. The mutex of Brakes guards it.
type brake struct {
	limits   Limits
	longest  int                   // line while much was refused
	refusals *rate.Limiter         // a token is a refusal that may yet come
	checks   int                   // under way
	refused  bool                  // since those who wait were put in their lines
	lines    [standings]*list.List // of *waiter: the better ones go first
	wake     *time.Timer           // when the next token comes; nil: nobody waits for one
}

// waiter is one login in a line.
type waiter struct {
	line    *list.List
	place   *list.Element // nil: it has been let in
	letIn   chan struct{}
	through *brake
	from    netip.Prefix
}

// lineMax bounds a line while little was refused: then it moves as fast as the
// cell answers.
const lineMax = 512

// patience is the part of the longest wait that a line may take while much was
// refused, so that who is let in still has time for its check.
const patience = 0.8

func newBrake(l Limits, wait time.Duration) *brake {
	b := &brake{
		limits: l, refusals: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst),
		longest: max(1, int(l.PerSecond*wait.Seconds()*patience)),
	}
	for i := range b.lines {
		b.lines[i] = list.New()
	}
	return b
}

// isCalm reports that little was refused of late: at least half of the burst is
// left.
func (b *brake) isCalm(now time.Time) bool {
	return b.refusals.TokensAt(now) >= float64(b.limits.Burst)/2
}

// isForgettable reports that the brake is as a new one would be.
func (b *brake) isForgettable(now time.Time) bool {
	return b.isIdle() && b.refusals.TokensAt(now) >= float64(b.limits.Burst)
}

func (b *brake) isIdle() bool { return b.checks == 0 && b.waiting() == 0 }

func (b *brake) waiting() (n int) {
	for _, line := range b.lines {
		n += line.Len()
	}
	return n
}

// enter lets a login pass, or gives it a place in its line. It gives neither
// where the line is full.
func (b *brake) enter(now time.Time, from netip.Prefix, r record) (w *waiter, passed bool) {
	if b.waiting() == 0 && b.pass(now) {
		return nil, true
	}
	longest := b.longest
	if b.isCalm(now) {
		longest = max(lineMax, longest)
	}
	line := b.lines[r.of(from, now)]
	if line.Len() >= longest && b.refused {
		b.file(now, r)
	}
	if line.Len() >= longest {
		return nil, false
	}
	w = &waiter{line: line, letIn: make(chan struct{}), through: b, from: from}
	w.place = w.line.PushBack(w)
	return w, false
}

// file moves those who wait in the line of unknown addresses, and whose address
// is a bad one by now: it was refused while more of its logins waited.
func (b *brake) file(now time.Time, r record) {
	b.refused = false
	from, to := b.lines[unknown], b.lines[bad]
	for e := from.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		if r.of(w.from, now) == bad {
			from.Remove(w.place)
			w.line, w.place = to, to.PushBack(w)
		}
	}
}

// pass begins a check if there is room for one.
func (b *brake) pass(now time.Time) bool {
	if b.refusals.TokensAt(now)-float64(b.checks) < 1-rounding {
		return false
	}
	b.checks++
	return true
}

// rounding is how much of a token is lost in arithmetic.
const rounding = 1e-6

// leave ends a check.
func (b *brake) leave(now time.Time, refused bool) {
	b.checks--
	if refused {
		b.refused = true
		b.refusals.ReserveN(now, 1)
	}
}

// admit lets in those for whom there is room, and tells how long it is until the
// next one could be; 0: nobody waits.
func (b *brake) admit(now time.Time, r record) time.Duration {
	for b.waiting() > 0 {
		if !b.pass(now) {
			missing := 1 + float64(b.checks) - b.refusals.TokensAt(now)
			return max(time.Duration(missing/b.limits.PerSecond*float64(time.Second)), time.Millisecond)
		}
		w := b.first(now, r)
		w.line.Remove(w.place)
		w.place = nil
		close(w.letIn)
	}
	return 0
}

// first is who goes next; there is somebody.
func (b *brake) first(now time.Time, r record) *waiter {
	for {
		i := 0
		for b.lines[i].Len() == 0 {
			i++
		}
		w := b.lines[i].Front().Value.(*waiter)
		to := b.lines[r.of(w.from, now)]
		if w.line == to || i == int(bad) {
			return w
		}
		w.line.Remove(w.place)
		w.line, w.place = to, to.PushBack(w)
	}
}
