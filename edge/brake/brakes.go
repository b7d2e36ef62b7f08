package brake

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Config is what the brakes are set to.
type Config struct {
	Address Limits // of one address: an IPv4 address, or the first 64 bits of an IPv6 one
	Lane    Limits // of one lane
	Process Limits
	// LaneOf is the lane that a dialled name comes to: what an operator has listed,
	// never what a stranger has made up, or each new name would be a new lane. Nil:
	// there is one lane.
	LaneOf func(name string) string
	// Wait is how long a login may wait at all brakes together.
	Wait time.Duration
	// Known bounds the addresses, and the lanes, that there is something to know
	// of: who is checked, waits, or was refused within seconds.
	Known int
	Clock func() time.Time // nil: time.Now
	// TurnedAway is told of every login that may not even wait; nil: nobody is.
	TurnedAway func(at Brake, from netip.Prefix)
}

// Brake names one of the three.
type Brake uint8

// The brakes, in the order in which a login meets them.
const (
	Address Brake = iota
	Lane
	Process
	brakeCount
)

func (b Brake) String() string { return [brakeCount]string{"address", "lane", "process"}[b] }

// Brakes are the gate that unproved credentials pass on their way to the cell.
// They are safe for concurrent use.
//
// A login passes all three at once or none: who waits at one holds no place at
// the others, so a name that is flooded does not keep an address from logging in
// under another one, nor an address a lane. Whoever waits does so in one line, of
// a brake that has no room.
type Brakes struct {
	cfg Config

	mu        sync.Mutex // guards all below; never held over a wait
	addresses book[netip.Prefix]
	lanes     book[string]
	process   *brake
	record    record
	counts    [brakeCount]Count
}

// Count is what one brake has done.
type Count struct{ Delayed, TurnedAway int64 }

// New makes brakes that nobody has met.
func New(cfg Config) *Brakes {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.LaneOf == nil {
		cfg.LaneOf = func(string) string { return "" }
	}
	return &Brakes{
		cfg:       cfg,
		addresses: newBook[netip.Prefix](Address, cfg.Address, cfg.Wait, cfg.Known),
		lanes:     newBook[string](Lane, cfg.Lane, cfg.Wait, cfg.Known),
		process:   newBrake(Process, cfg.Process, cfg.Wait),
		record:    newRecord(cfg.Known),
	}
}

// Counts is what the brakes have done, each by its name.
func (b *Brakes) Counts() [brakeCount]Count {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// Enter implements tenancy.Gate: it waits until a check may be made for somebody
// from an address, under a dialled name. leave must be called, once, with what
// came of it: a refusal is what the brakes count, and a cell that could not be
// asked is none. The error is tenancy.ErrBraked.
func (b *Brakes) Enter(ctx context.Context, from netip.Prefix, name string) (leave func(tenancy.Verdict), err error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Wait)
	defer cancel()
	w, turnedAway, at := b.approach(from, b.cfg.LaneOf(name))
	if turnedAway {
		if b.cfg.TurnedAway != nil {
			b.cfg.TurnedAway(at, from)
		}
		return nil, tenancy.ErrBraked
	}
	select {
	case <-w.letIn:
	case <-ctx.Done():
		if b.giveUp(w) { // else it was let in in the same instant
			return nil, tenancy.ErrBraked
		}
	}
	return func(v tenancy.Verdict) { b.leave(w, v) }, nil
}

// approach lets a login pass, or gives it a place in the line of the first brake
// that has no room for it, or turns it away there.
func (b *Brakes) approach(from netip.Prefix, lane string) (w *waiter, turnedAway bool, at Brake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Clock()
	w = &waiter{from: from, letIn: make(chan struct{})}
	w.brakes = [brakeCount]*brake{b.addresses.find(now, from), b.lanes.find(now, lane), b.process}
	defer func() { b.settle(w, now) }()
	for at, br := range w.brakes {
		if br == nil { // too many are known to know another one
			b.counts[at].TurnedAway++
			return w, true, Brake(at)
		}
	}
	stop := w.stoppedBy(now)
	if stop == nil {
		w.pass()
		return w, false, 0
	}
	if !stop.hasPlace(now, w, b.record) || stop.kind != Address && w.brakes[Address].beyond >= w.brakes[Address].lineMost(now) {
		b.counts[stop.kind].TurnedAway++
		return w, true, stop.kind
	}
	b.line(stop, w, now)
	return w, false, 0
}

// line has a login wait at a brake.
func (b *Brakes) line(br *brake, w *waiter, now time.Time) {
	b.counts[br.kind].Delayed++
	br.join(w, now, b.record)
	b.arm(br, now)
}

// leave ends a check at every brake.
func (b *Brakes) leave(w *waiter, v tenancy.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Clock()
	switch v {
	case tenancy.Taken:
		b.record.taken.Add(w.from, now)
	case tenancy.Refused:
		b.record.refused.Add(w.from, struct{}{})
	}
	for _, br := range w.brakes {
		br.leave(now, v == tenancy.Refused)
	}
	for _, br := range w.brakes {
		b.admit(br, now)
	}
	b.settle(w, now)
}

// giveUp takes a waiter out of its line; false: it has been let in.
func (b *Brakes) giveUp(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.at == nil {
		return false
	}
	now, at := b.cfg.Clock(), w.at
	w.quit()
	b.admit(at, now)
	b.settle(w, now)
	return true
}

// admit lets in those who wait at a brake and for whom there is room. Whom
// another brake stops by now goes into its line; b.mu is held.
func (b *Brakes) admit(br *brake, now time.Time) {
	for br.waiting() > 0 && br.hasRoom(now) {
		w := br.first(now, b.record)
		w.quit()
		if stop := w.stoppedElsewhere(br, now); stop != nil {
			b.line(stop, w, now)
			continue
		}
		w.pass()
	}
	b.arm(br, now)
}

// arm has a brake come back when the next one who waits could go; b.mu is held.
func (b *Brakes) arm(br *brake, now time.Time) {
	if br.wake != nil {
		br.wake.Stop()
		br.wake = nil
	}
	if br.waiting() > 0 {
		br.wake = time.AfterFunc(br.untilRoom(now), func() { b.wakeUp(br) })
	}
}

func (b *Brakes) wakeUp(br *brake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admit(br, b.cfg.Clock())
}

// settle tells the books whether somebody is still at the brakes of a login; b.mu
// is held.
func (b *Brakes) settle(w *waiter, now time.Time) {
	b.addresses.settle(w.brakes[Address], now)
	b.lanes.settle(w.brakes[Lane], now)
}
