package txn

import "time"

// read goes on with a request once the row was read.
func (m machine) read(s *Stage, now time.Time, ev rowRead) []effect {
	switch {
	case ev.Err != nil:
		failed := Reply{Outcome: Unavailable, Err: ev.Err}
		if s.Phase == Committing {
			s.Phase = Open
		}
		return append(s.answer(failed, requestOf(s.doing.event).Took), s.forgetUnknown()...)
	case ev.Version == 0:
		return m.noRow(s)
	}
	return m.adopt(s, now, ev.Value, ev.Version)
}

// noRow: there is no such transactional id, or its row was deleted. A producer
// that is asked for is a new one, whoever it names, as in Apache Kafka; there is
// nothing to abort.
func (m machine) noRow(s *Stage) []effect {
	switch again := s.doing.event.(type) {
	case initProducer:
		return s.putProducer(again, Producer{ID: again.Fresh}, Nobody(), 0)
	case endTxn:
		if !again.Commit {
			return append(m.gone(s), s.refuse(OK, 0)...)
		}
		if s.doing.why == forCommit {
			return append(m.gone(s), s.refuse(Fenced, 0)...)
		}
	}
	return append(m.gone(s), s.refuse(Unknown, requestOf(s.doing.event).Took)...)
}

// gone lets go of a stage whose row is not its own any more.
func (m machine) gone(s *Stage) []effect {
	s.ends(takenOver)
	s.drop()
	s.Partitions, s.Known, s.Phase = nil, false, Empty
	return append(s.settleMemory(), forget{})
}

// forgetUnknown ends a stage of which nothing is known.
func (s *Stage) forgetUnknown() []effect {
	if s.Known || s.Phase != Empty || s.Version != 0 {
		return nil
	}
	return []effect{forget{}}
}

// adopt takes over what the row says: this process knew nothing, or what it knew
// has lost.
func (m machine) adopt(s *Stage, now time.Time, value []byte, version int64) []effect {
	row, err := ParseRow(value)
	why, tried := s.doing.why, s.doing.row.Write
	switch {
	case err != nil:
		return m.unreadable(s, version)
	case why != noWrite && row.Write == tried: // it had landed, its answer was lost
		return m.applied(s, now, version)
	case s.Commit != "" && row.Write == s.Commit:
		s.settled(version)
		return m.committed(s, now)
	case s.own(row.Write) && row.producer() == s.Producer:
		s.settled(version)
		return m.request(s, now, s.doing.event)
	case why == forCommit: // zero records and offsets were written
		return append(m.gone(s), s.refuse(Fenced, 0)...)
	}
	return m.takeOver(s, now, row, version)
}

// settled: the row is this stage's, at a version that is known.
func (s *Stage) settled(version int64) {
	s.Known, s.Version, s.Unsure = true, version, nil
	if s.Phase == Committing {
		s.Phase = Open
	}
}

// unreadable: a row that names no producer is replaced by the next one that is
// asked for.
func (m machine) unreadable(s *Stage, version int64) []effect {
	if again, ok := s.doing.event.(initProducer); ok {
		return s.putProducer(again, Producer{ID: again.Fresh}, Nobody(), version)
	}
	return append(m.gone(s), s.refuse(Unknown, requestOf(s.doing.event).Took)...)
}

// takeOver goes on from another owner's row. A transaction that is open there is
// lost: that owner held it, and is gone.
func (m machine) takeOver(s *Stage, now time.Time, row Row, version int64) []effect {
	again := s.doing.event
	if s.Version == version && row.producer() == s.Producer { // it is as it was known
		s.settled(version)
		return m.request(s, now, again)
	}
	s.ends(takenOver)
	s.drop()
	s.Partitions = nil
	out := s.settleMemory()
	s.settled(version)
	s.Producer, s.Previous, s.Seq = row.producer(), row.previous(), row.Seq
	s.Phase, s.Last = Empty, row.State
	s.Started, s.Deadline = time.Time{}, time.Time{}
	s.Timeout = row.timeout()
	if row.Lost || row.State == RowOpen {
		s.Phase = Lost
	}
	if row.State != RowOpen || !needsMark(again) {
		return append(out, m.request(s, now, again)...)
	}
	mark := s.row(s.Producer, s.Previous, RowAborted, s.Seq, requestOf(again).Token)
	mark.Lost = true
	return append(out, s.put(forLost, mark, version)...)
}

// needsMark: requests that end the lost transaction write the row themselves.
func needsMark(ev event) bool {
	switch ev := ev.(type) {
	case initProducer:
		return false
	case endTxn:
		return ev.Commit
	}
	return true
}

// written goes on with a request once its write was answered.
func (m machine) written(s *Stage, now time.Time, ev rowWritten) []effect {
	switch {
	case ev.Err != nil:
		return m.unanswered(s, ev.Err)
	case ev.Applied:
		return m.applied(s, now, ev.Version)
	}
	s.Known = false // the row is not what this stage took it for
	if ev.Version == 0 || len(ev.Value) == 0 {
		return s.call(readRow{}) // the verdict lacks the winner
	}
	return m.adopt(s, now, ev.Value, ev.Version)
}

// unanswered: the write may have happened.
func (m machine) unanswered(s *Stage, err error) []effect {
	s.unsure(s.doing.row.Write)
	switch s.doing.why {
	case forCommit:
		s.Phase = Open // it stays whole: a retry must not commit less
	case forAbort:
		if s.Commit == "" { // a row that stays open for nothing, its next owner closes
			return m.aborted(s)
		}
	case forLost:
		s.Known = false
	}
	failed := Reply{Outcome: Unavailable, Err: err}
	return append(s.answer(failed, requestOf(s.doing.event).Took), s.forgetUnknown()...)
}

func (m machine) applied(s *Stage, now time.Time, version int64) []effect {
	why, row := s.doing.why, s.doing.row
	s.doing.why = noWrite
	s.settled(version)
	switch why {
	case forInit:
		s.Producer, s.Previous, s.Seq = row.producer(), row.previous(), row.Seq
		return m.bound(s, s.doing.event.(initProducer))
	case forOpen:
		s.Phase, s.Seq = Open, row.Seq
		s.Started, s.Deadline = now, now.Add(s.Timeout)
	case forCommit:
		return m.committed(s, now)
	case forAbort:
		return m.aborted(s)
	}
	return m.request(s, now, s.doing.event) // a lost transaction's phase answers
}
