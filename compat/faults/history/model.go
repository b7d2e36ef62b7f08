package history

import (
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"
)

// state is what a cell holds.
type state struct {
	owner   map[string]int // by transactional id: the life that has it
	offsets map[int32]int64
	log     map[int32][]int
}

// model is a cell whose commits are atomic and fenced.
var model = porcupine.Model{
	Init: func() any {
		return state{owner: map[string]int{}, offsets: map[int32]int64{}, log: map[int32][]int{}}
	},
	Step:  func(s, input, _ any) (bool, any) { return step(s.(state), input) },
	Equal: func(a, b any) bool { return equal(a.(state), b.(state)) },
}

// step says whether something can happen now, and what is so afterwards.
func step(s state, input any) (bool, any) {
	switch in := input.(type) {
	case Init:
		owner := maps.Clone(s.owner)
		owner[in.Producer.ID] = in.Producer.Life
		return true, state{owner: owner, offsets: s.offsets, log: s.log}
	case Txn:
		owns := s.owner[in.Producer.ID] == in.Producer.Life
		switch {
		case in.Outcome == Fenced:
			return !owns, s
		case in.Outcome == Committed && !owns:
			return false, s
		case !owns: // never told, and it has lost
			return true, s
		}
		return true, s.commit(in)
	case Offsets:
		return sees(s.offsets, in), s
	case End:
		return len(s.log[in.Partition]) == in.Records, s
	case Log:
		return slices.Equal(s.log[in.Partition], in.Numbers), s
	}
	return false, s
}

// commit writes records and offsets of a transaction.
func (s state) commit(t Txn) state {
	next := state{owner: s.owner, offsets: maps.Clone(s.offsets), log: maps.Clone(s.log)}
	maps.Copy(next.offsets, t.Offsets)
	for p, numbers := range t.Writes {
		next.log[p] = slices.Concat(next.log[p], numbers)
	}
	return next
}

// sees compares a look at committed offsets; below 0 there is none.
func sees(have, saw map[int32]int64) bool {
	for p, offset := range saw {
		if max(offset, 0) != have[p] {
			return false
		}
	}
	return true
}

func equal(a, b state) bool {
	return maps.Equal(a.owner, b.owner) && maps.Equal(a.offsets, b.offsets) && maps.EqualFunc(a.log, b.log, slices.Equal[[]int])
}
