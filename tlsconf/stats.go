package tlsconf

import "time"

// FileKind is a kind of watched file.
type FileKind uint8

// Kinds of watched files.
const (
	PairFiles FileKind = iota
	TicketFile
	fileKinds
)

// String is the metric's label.
func (k FileKind) String() string { return [...]string{"certificate", "ticket_keys"}[k] }

// Outcome is what became of files that changed.
type Outcome uint8

// Outcomes.
const (
	Loaded  Outcome = iota // in use since
	Failed                 // bad: what was in use stays
	Removed                // gone, and not in use any more
	outcomes
)

// String is the metric's label.
func (o Outcome) String() string { return [...]string{"loaded", "failed", "removed"}[o] }

// Loads tells how many changes of files came to what, the boot aside.
func (s *Store) Loads(tell func(k FileKind, o Outcome, n int64)) {
	for k := range fileKinds {
		for o := range outcomes {
			if k != TicketFile || o != Removed {
				tell(k, o, s.loads[k][o].Load())
			}
		}
	}
}

// Expiries tells the name of every pair in use, and how long its certificate
// still lives; a negative time has passed.
func (s *Store) Expiries(tell func(name string, left time.Duration)) {
	now, l := s.clock(), s.ladder.Load()
	if l.other != nil {
		tell(defaultName, l.other.NotAfter().Sub(now))
	}
	for name, p := range l.named {
		tell(name, p.NotAfter().Sub(now))
	}
}
