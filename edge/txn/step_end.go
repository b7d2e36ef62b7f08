package txn

import "time"

// endTxn commits or aborts. A commit is one call, with the row as its fence; it
// keeps its id until it is known how it ended.
func (m machine) endTxn(s *Stage, ev endTxn) []effect {
	if ev.Commit {
		return m.commit(s, ev)
	}
	return m.abort(s, ev)
}

func (m machine) commit(s *Stage, ev endTxn) []effect {
	switch s.Phase {
	case Open:
		if s.Commit == "" {
			s.Commit = ev.Token
		}
		s.Phase = Committing
		return s.put(forCommit, s.row(s.Producer, s.Previous, RowCommitted, s.Seq, s.Commit), s.Version)
	case Empty:
		if s.Last == RowCommitted { // the answer was lost
			return s.refuse(OK, 0)
		}
		return s.refuse(Invalid, 0)
	case Expired:
		if s.Commit != "" { // it may have landed: only a write of our own can tell
			return m.abort(s, ev)
		}
	}
	return s.refuse(s.Phase.refused(), 0)
}

func (m machine) abort(s *Stage, ev endTxn) []effect {
	if s.Phase == Empty {
		if s.Last == RowCommitted {
			return s.refuse(Invalid, 0) // it was committed, and the producer must know
		}
		return s.refuse(OK, 0)
	}
	return s.put(forAbort, s.row(s.Producer, s.Previous, RowAborted, s.Seq, ev.Token), s.Version)
}

// committed: the records and offsets are in the log. Whatever was asked is
// answered from there: a commit succeeds, an abort came too late.
func (m machine) committed(s *Stage, now time.Time) []effect {
	s.end(RowCommitted)
	return append(s.settleMemory(), m.request(s, now, s.doing.event)...)
}

// aborted: nothing was written, and nothing can be any more.
func (m machine) aborted(s *Stage) []effect {
	asked, _ := s.doing.event.(endTxn)
	s.end(RowAborted)
	out := s.settleMemory()
	if asked.Commit { // of a transaction that had run out of time
		s.Phase = Expired
		return append(out, s.refuse(TimedOut, 0)...)
	}
	return append(out, s.refuse(OK, 0)...)
}
