package txn

import "time"

// initProducer gives a producer (KIP-98, KIP-360). The row decides: it is made
// where there is none, and otherwise raised by one epoch at the version that was
// seen, so that of two only one wins.
func (m machine) initProducer(s *Stage, ev initProducer) []effect {
	if !s.Known {
		return s.putProducer(ev, Producer{ID: ev.Fresh}, Nobody(), 0)
	}
	previous := Nobody()
	if ev.Producer.Named() {
		switch ev.Producer {
		case s.Producer:
			previous = ev.Producer
		case s.Previous: // it asks again: the answer was lost
			return m.bound(s, ev)
		default:
			return m.notNamed(s, ev)
		}
	}
	next := Producer{ID: s.Producer.ID, Epoch: s.Producer.Epoch + 1}
	if s.Producer.Epoch >= MaxEpoch {
		next = Producer{ID: ev.Fresh}
	}
	return s.putProducer(ev, next, previous, s.Version)
}

// putProducer writes a producer into the row where its version is still expect.
func (s *Stage) putProducer(ev initProducer, next, previous Producer, expect int64) []effect {
	row := s.row(next, previous, RowAborted, s.Seq, ev.Token)
	row.Timeout = ev.Timeout.Milliseconds()
	return s.put(forInit, row, expect)
}

// notNamed refuses a producer that neither has the id nor had it last: a fenced
// producer cannot bump its way back (B11). The row may have gone on without this
// process, so it is read once.
func (m machine) notNamed(s *Stage, ev initProducer) []effect {
	if s.doing.rounds == 0 {
		s.Known = false
		return s.call(readRow{})
	}
	return s.refuse(Fenced, ev.Took)
}

// bound makes the stage the producer's own, with nothing in it.
func (m machine) bound(s *Stage, ev initProducer) []effect {
	s.ends(aborted)
	s.drop()
	s.Partitions, s.Unsure = nil, nil
	s.Phase, s.Last = Empty, RowAborted
	s.Started, s.Deadline, s.Orphaned = time.Time{}, time.Time{}, time.Time{}
	s.Timeout = ev.Timeout
	return append(s.settleMemory(), s.answer(Reply{Producer: s.Producer}, 0)...)
}
