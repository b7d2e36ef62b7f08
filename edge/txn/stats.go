package txn

// ending is how a transaction ended.
type ending uint8

// Endings of a transaction, as Stats counts them.
const (
	notEnded  ending = iota
	committed        // its records and offsets are in the log
	aborted          // by its producer, or by a newer one of its id
	timedOut         // its time ran out; what its producer does about it is not counted again
	takenOver        // another process wrote the row of its id
	endings          // how many there are
)

// Ended are the endings that are counted, by their labels.
func (s Stats) Ended() map[string]int64 {
	return map[string]int64{
		"committed": s.ended[committed], "aborted": s.ended[aborted],
		"expired": s.ended[timedOut], "taken_over": s.ended[takenOver],
	}
}

// Stats are the transactions of the process, counted.
type Stats struct {
	Open   int   // transactions with partitions or offsets, committing ones included
	Held   int   // transactional ids in memory, idle ones included
	Staged int64 // bytes of all stages
	ended  [endings]int64
}

// Stats counts.
func (c *Coordinator) Stats() Stats {
	out := Stats{Staged: c.cfg.Staged.Total()}
	for _, e := range c.all() {
		out.Held++
		e.mu.Lock()
		if e.stage.running() {
			out.Open++
		}
		e.mu.Unlock()
	}
	for i := range out.ended {
		out.ended[i] = c.counted[i].Load()
	}
	return out
}

// running reports a transaction that can still be written.
func (s *Stage) running() bool {
	return s.Phase == Open || s.Phase == Committing || s.Phase == Poisoned
}

// ends notes how the stage's transaction ends, if it has one. What has run out of
// time has ended already, unless its commit turns out to have landed.
func (s *Stage) ends(how ending) {
	if s.running() || s.Phase == Expired && how == committed {
		s.ended = how
	}
}

func endingOf(how RowState) ending {
	if how == RowCommitted {
		return committed
	}
	return aborted
}

// count counts what the last step ended. The stage's lock is held.
func (c *Coordinator) count(s *Stage) {
	c.counted[s.ended].Add(1)
	s.ended = notEnded
}
