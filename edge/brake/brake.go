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
	kind     Brake
	limits   Limits
	longest  int                   // line while much was refused
	refusals *rate.Limiter         // a token is a refusal that may yet come
	checks   int                   // under way
	beyond   int                   // of an address: who waits at another brake
	refused  bool                  // since those who wait were put in their lines
	lines    [standings]*list.List // of *waiter: the better ones go first
	wake     *time.Timer           // when the next token comes; nil: nobody waits for one

	// The book's: nobody is at the brake, and from then on it is as a new one.
	shelf int // place among those; −1: somebody is
	full  time.Time
}

// lineMax bounds a line while little was refused: then it moves as fast as the
// cell answers.
const lineMax = 512

// patience is the part of the longest wait that a line may take while much was
// refused, so that who is let in still has time for its check.
const patience = 0.8

func newBrake(kind Brake, l Limits, wait time.Duration) *brake {
	b := &brake{
		kind: kind, limits: l, refusals: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst),
		longest: max(1, int(l.PerSecond*wait.Seconds()*patience)), shelf: -1,
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

func (b *brake) isIdle() bool { return b.checks == 0 && b.beyond == 0 && b.waiting() == 0 }

// fullAt is when a brake will be as a new one, if nobody comes.
func (b *brake) fullAt(now time.Time) time.Time {
	missing := float64(b.limits.Burst) - b.refusals.TokensAt(now)
	return now.Add(time.Duration(missing / b.limits.PerSecond * float64(time.Second)))
}

func (b *brake) waiting() (n int) {
	for _, line := range b.lines {
		n += line.Len()
	}
	return n
}

// lineMost is how long a line may be.
func (b *brake) lineMost(now time.Time) int {
	if b.isCalm(now) {
		return max(lineMax, b.longest)
	}
	return b.longest
}

// hasPlace reports whether there is one in the line of a login.
func (b *brake) hasPlace(now time.Time, w *waiter, r record) bool {
	line := b.lines[r.of(w.from, now)]
	if line.Len() >= b.lineMost(now) && b.refused {
		b.file(now, r)
	}
	return line.Len() < b.lineMost(now)
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

// hasRoom reports whether another check may be made.
func (b *brake) hasRoom(now time.Time) bool {
	return b.refusals.TokensAt(now)-float64(b.checks) >= 1-rounding
}

// rounding is how much of a token is lost in arithmetic.
const rounding = 1e-6

// untilRoom is how long it takes until another check may be made, if none ends.
func (b *brake) untilRoom(now time.Time) time.Duration {
	missing := 1 + float64(b.checks) - b.refusals.TokensAt(now)
	return max(time.Duration(missing/b.limits.PerSecond*float64(time.Second)), time.Millisecond)
}

// leave ends a check.
func (b *brake) leave(now time.Time, refused bool) {
	b.checks--
	if refused {
		b.refused = true
		b.refusals.ReserveN(now, 1)
	}
}

// join puts a login at the end of its line.
func (b *brake) join(w *waiter, now time.Time, r record) {
	w.at, w.line = b, b.lines[r.of(w.from, now)]
	w.place = w.line.PushBack(w)
	if b.kind != Address {
		w.brakes[Address].beyond++
	}
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
