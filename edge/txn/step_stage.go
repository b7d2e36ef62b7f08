package txn

import (
	"slices"
	"time"
)

// opened makes sure that a transaction is open, marked so in the row before
// anything is answered: an owner that holds none of it can then tell. It returns
// the effects of what has to come first, and whether there is any.
func (m machine) opened(s *Stage, req request) ([]effect, bool) {
	switch {
	case s.Phase == Open && s.Commit == "":
		return nil, true
	case s.Phase == Open: // a commit of it may have landed
		return s.refuse(Busy, req.Took), false
	case s.Phase != Empty:
		return s.refuse(s.Phase.refused(), req.Took), false
	}
	return s.put(forOpen, s.row(s.Producer, s.Previous, RowOpen, s.Seq+1, req.Token), s.Version), false
}

func (m machine) addPartitions(s *Stage, _ time.Time, ev addPartitions) []effect {
	if ev.NoRoom {
		return s.refuse(NoRoom, 0)
	}
	if out, ok := m.opened(s, ev.request); !ok {
		return out
	}
	back, count := ev.Took, s.count()
	for i, tp := range ev.Partitions {
		at, found := s.place(tp.Topic, tp.Index)
		if found && s.Partitions[at].Added == s.Seq {
			continue
		}
		if count >= m.limits.Partitions {
			return s.answer(Reply{Outcome: Invalid, Fit: i}, s.hold(ev.Took-back, back))
		}
		count++
		if found {
			s.Partitions[at].Added = s.Seq
			continue
		}
		s.Partitions = slices.Insert(s.Partitions, at, Partition{Topic: tp.Topic, Index: tp.Index, Added: s.Seq})
		back -= int64(len(tp.Topic)) + weight
	}
	return s.answer(Reply{Fit: len(ev.Partitions)}, s.hold(ev.Took-back, back))
}

// hold keeps so much memory and gives the rest back.
func (s *Stage) hold(kept, back int64) int64 {
	s.Held += kept
	return back
}

// count is how many partitions the open transaction has.
func (s *Stage) count() int {
	n := 0
	for i := range s.Partitions {
		if s.Partitions[i].Added == s.Seq {
			n++
		}
	}
	return n
}

func (m machine) addGroup(s *Stage, _ time.Time, ev addGroup) []effect {
	if ev.NoRoom {
		return s.refuse(NoRoom, 0)
	}
	if s.Phase == Open && s.group(ev.Group.ID) == nil && s.ops()+2 > ev.Ops {
		return s.refuse(TooMany, ev.Took) // one for the group and one for an offset at least
	}
	if out, ok := m.opened(s, ev.request); !ok {
		return out
	}
	return s.answer(Reply{}, s.keepGroup(ev.Group, ev.Took))
}

// keepGroup registers a group; it returns the memory that is left.
func (s *Stage) keepGroup(g Group, took int64) int64 {
	if s.group(g.ID) != nil {
		return took
	}
	s.Groups = append(s.Groups, g)
	s.Body += g.body()
	s.Held += g.size()
	return took - g.size()
}

// ops is how many key-value operations the commit has: the fence, the groups,
// the offsets.
func (s *Stage) ops() int { return 1 + len(s.Groups) + len(s.Offsets) }

// takes says whether the open transaction takes more.
func (s *Stage) takes() Outcome {
	switch {
	case s.Phase != Open:
		return s.Phase.refused()
	case s.Commit != "": // a commit of it may have landed
		return Busy
	}
	return OK
}

// stageRecords takes one partition's batches whole, or not at all.
func (m machine) stageRecords(s *Stage, ev stageRecords) []effect {
	if v := s.takes(); v != OK {
		return s.refuse(v, ev.Took)
	}
	p := s.added(ev.Topic, ev.Index)
	if p == nil {
		return s.refuse(Invalid, ev.Took)
	}
	if ev.Sequenced {
		switch p.Seqs.judge(ev.First, ev.Last, p.Seqs.Txn == s.Seq) {
		case seqAgain:
			return s.refuse(OK, ev.Took)
		case seqOld:
			return s.refuse(AlreadyThere, ev.Took)
		case seqAhead:
			return s.refuse(OutOfOrder, ev.Took)
		}
	}
	if m.exceeds(s, &ev) {
		s.drop()
		s.Phase = Poisoned
		return append(s.settleMemory(), s.refuse(TooLarge, ev.Took)...)
	}
	if ev.NoRoom {
		return s.refuse(NoRoom, 0)
	}
	if ev.Sequenced {
		p.Seqs.staged(ev.First, ev.Last)
		p.Seqs.Txn = s.Seq
	}
	s.Chunks = append(s.Chunks, ev.Chunk)
	s.Records += ev.Chunk.Count
	s.Bytes += ev.Bytes
	s.Body += int64(len(ev.Chunk.Items))
	size := ev.Chunk.size()
	return s.answer(Reply{}, s.hold(size, ev.Took-size))
}

// exceeds reports records beyond what a transaction may hold.
func (m machine) exceeds(s *Stage, ev *stageRecords) bool {
	return ev.Never || s.Bytes+ev.Bytes > m.limits.Bytes ||
		s.Records+ev.Chunk.Count > m.limits.Records ||
		bodyFrame+s.Body+int64(len(ev.Chunk.Items)) > m.limits.Body
}

// stageOffsets takes offsets of one group. Those of a partition that has one
// replace it. They are taken all or none: the client commits them together.
func (m machine) stageOffsets(s *Stage, ev stageOffsets) []effect {
	if v := s.takes(); v != OK {
		return s.refuse(v, ev.Took)
	}
	if ev.NoRoom {
		return s.refuse(NoRoom, 0)
	}
	places, added := s.places(ev.Offsets)
	body := int64(0)
	if s.group(ev.Group.ID) == nil {
		added, body = added+1, ev.Group.body()
	}
	for i := range ev.Offsets {
		body += ev.Offsets[i].body()
	}
	if s.ops()+added > ev.Ops || bodyFrame+s.Body+body > m.limits.Body {
		return s.refuse(TooMany, ev.Took)
	}
	back := s.keepGroup(ev.Group, ev.Took)
	if len(ev.Offsets) > 0 {
		s.group(ev.Group.ID).Staged = true
	}
	for i := range ev.Offsets {
		o := &ev.Offsets[i]
		if at := places[i]; at < len(s.Offsets) {
			old := &s.Offsets[at]
			back += old.size()
			s.Held -= old.size()
			s.Body -= old.body()
			*old = *o
		} else {
			s.Offsets = append(s.Offsets, *o)
		}
		s.Body += o.body()
		s.Held += o.size()
		back -= o.size()
	}
	return s.answer(Reply{Fit: len(ev.Offsets)}, back)
}

// places is where each of the offsets goes among the staged ones, and how many
// partitions are new among them. A request of 4 MiB may name a hundred thousand:
// none is looked for one by one.
func (s *Stage) places(offsets []Offset) (at []int, added int) {
	type partition struct {
		group, topic string
		index        int32
	}
	known := make(map[partition]int, len(s.Offsets)+len(offsets))
	for i := range s.Offsets {
		o := &s.Offsets[i]
		known[partition{o.Group, o.Topic, o.Partition}] = i
	}
	at = make([]int, len(offsets))
	for i := range offsets {
		o := &offsets[i]
		p := partition{o.Group, o.Topic, o.Partition}
		place, ok := known[p]
		if !ok {
			place = len(s.Offsets) + added
			known[p] = place
			added++
		}
		at[i] = place
	}
	return at, added
}
