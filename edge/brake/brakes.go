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
	Lane    Limits // of one name that clients dial
	Process Limits
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
	return &Brakes{
		cfg:       cfg,
		addresses: newBook[netip.Prefix](cfg.Address, cfg.Wait, cfg.Known),
		lanes:     newBook[string](cfg.Lane, cfg.Wait, cfg.Known),
		process:   newBrake(cfg.Process, cfg.Wait),
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
// from an address, under a lane's name. leave must be called, once, with what
// came of it: a refusal is what the brakes count, and a cell that could not be
// asked is none. The error is tenancy.ErrBraked.
func (b *Brakes) Enter(ctx context.Context, from netip.Prefix, lane string) (leave func(tenancy.Verdict), err error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Wait)
	defer cancel()
	var passed []*brake
	for at := range brakeCount {
		br, err := b.enter(ctx, at, from, lane)
		if err != nil {
			b.leave(passed, from, tenancy.Unsure)
			return nil, err
		}
		passed = append(passed, br)
	}
	return func(v tenancy.Verdict) { b.leave(passed, from, v) }, nil
}

// enter passes one brake, waiting in its line where it must.
func (b *Brakes) enter(ctx context.Context, at Brake, from netip.Prefix, lane string) (*brake, error) {
	b.mu.Lock()
	now := b.cfg.Clock()
	br := b.find(now, at, from, lane)
	var w *waiter
	passed := false
	if br != nil {
		w, passed = br.enter(now, from, b.record)
	}
	b.count(at, passed, w != nil)
	if w != nil {
		b.admit(br, now)
	}
	b.mu.Unlock()
	if passed {
		return br, nil
	}
	if w == nil {
		if b.cfg.TurnedAway != nil {
			b.cfg.TurnedAway(at, from)
		}
		return nil, tenancy.ErrBraked
	}
	select {
	case <-w.letIn:
		return br, nil
	case <-ctx.Done():
	}
	if !b.giveUp(w) { // it was let in in the same instant
		return br, nil
	}
	return nil, tenancy.ErrBraked
}

func (b *Brakes) count(at Brake, passed, waits bool) {
	switch {
	case passed:
	case waits:
		b.counts[at].Delayed++
	default:
		b.counts[at].TurnedAway++
	}
}

// find is the brake of an address or a lane; nil where there are too many to
// know another one.
func (b *Brakes) find(now time.Time, at Brake, from netip.Prefix, lane string) *brake {
	switch at {
	case Address:
		return b.addresses.find(now, from)
	case Lane:
		return b.lanes.find(now, lane)
	}
	return b.process
}

// leave ends a check at every brake that it passed.
func (b *Brakes) leave(passed []*brake, from netip.Prefix, v tenancy.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Clock()
	switch v {
	case tenancy.Taken:
		b.record.taken.Add(from, now)
	case tenancy.Refused:
		b.record.refused.Add(from, struct{}{})
	}
	for _, br := range passed {
		br.leave(now, v == tenancy.Refused)
		b.admit(br, now)
	}
}

// giveUp takes a waiter out of its line; false: it has been let in.
func (b *Brakes) giveUp(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.place == nil {
		return false
	}
	w.line.Remove(w.place)
	w.place = nil
	b.admit(w.through, b.cfg.Clock())
	return true
}

// admit lets in whom it can, and comes back when the next one may go; b.mu is
// held.
func (b *Brakes) admit(br *brake, now time.Time) {
	next := br.admit(now, b.record)
	if br.wake != nil {
		br.wake.Stop()
		br.wake = nil
	}
	if next > 0 {
		br.wake = time.AfterFunc(next, func() { b.wakeUp(br) })
	}
}

func (b *Brakes) wakeUp(br *brake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admit(br, b.cfg.Clock())
}
