// Package history checks what transactional producers and those who look on have
// seen against a model in which a commit happens at one moment, whole: is there an
// order of all of it, in which everything lies between its call and its answer?
//
// The search for that order is porcupine's.
package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Outcome is what became of a transaction.
type Outcome uint8

// Outcomes.
const (
	Unknown   Outcome = iota // its producer was never told: now, later, or not at all
	Committed                // its producer was told so
	Aborted                  // given up before its commit was asked for, or told so
	Fenced                   // refused, since somebody else has the transactional id
)

// Txn is one transaction: what it would write, and when its outcome was decided.
type Txn struct {
	Producer Producer
	Writes   map[int32][]int // by partition of the output, in the order of the log
	Offsets  map[int32]int64 // by partition of the input
	Outcome  Outcome
}

// Producer is one life of a transactional id: an InitProducerId.
type Producer struct {
	ID   string
	Life int
}

// Init makes a producer the one that its transactional id belongs to.
type Init struct{ Producer Producer }

// Offsets is a look at what the group has committed.
type Offsets map[int32]int64

// End is a look at how many records one partition of the output has.
type End struct {
	Partition int32
	Records   int
}

// Log is a look at one partition of the output, from its start.
type Log struct {
	Partition int32
	Numbers   []int
}

// Span is when something was: from its call to its answer.
type Span struct{ Call, Return time.Time }

// History is what happened. Its zero value is an empty one.
type History struct {
	ops []porcupine.Operation
}

// Len is how many operations it has.
func (h *History) Len() int { return len(h.ops) }

// Txn adds a transaction. One that was given up has written nothing, which the
// looks at the log say. One whose producer was never told may be decided until the
// end of time.
func (h *History) Txn(client int, at Span, t Txn) {
	ret := at.Return.UnixMicro()
	switch t.Outcome {
	case Aborted:
		return
	case Unknown:
		ret = math.MaxInt64
	}
	h.add(client, at.Call.UnixMicro(), ret, t)
}

// Init adds an InitProducerId. One that was not answered may have happened, at
// some time.
func (h *History) Init(client int, at Span, p Producer, answered bool) {
	ret := at.Return.UnixMicro()
	if !answered {
		ret = math.MaxInt64
	}
	h.add(client, at.Call.UnixMicro(), ret, Init{p})
}

// Look adds what somebody saw: Offsets, End or Log.
func (h *History) Look(client int, at Span, saw any) {
	h.add(client, at.Call.UnixMicro(), at.Return.UnixMicro(), saw)
}

// Add adds all of another history.
func (h *History) Add(other *History) { h.ops = append(h.ops, other.ops...) }

func (h *History) add(client int, from, to int64, input any) {
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: input, Call: from, Return: to})
}

// Verdict is what Check found.
type Verdict struct {
	Operations int
	Err        error // nil: there is such an order
}

func (v Verdict) String() string {
	if v.Err != nil {
		return fmt.Sprintf("history of %d operations: %v", v.Operations, v.Err)
	}
	return fmt.Sprintf("history of %d operations: linearizable", v.Operations)
}

// Check looks for the order, for so long at most.
func (h *History) Check(patience time.Duration) Verdict {
	v := Verdict{Operations: len(h.ops)}
	result, info := porcupine.CheckOperationsVerbose(model, h.ops, patience)
	switch result {
	case porcupine.Illegal:
		v.Err = fmt.Errorf("NOT linearizable: %s", explain(h.ops, info))
	case porcupine.Unknown:
		v.Err = fmt.Errorf("no verdict in %s", patience)
	}
	return v
}

// explain names the operations that the longest order found has no place for, the
// earliest first.
func explain(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	placed := make(map[int]bool)
	best := 0
	for _, orders := range info.PartialLinearizations() {
		for _, order := range orders {
			if len(order) <= best {
				continue
			}
			best = len(order)
			clear(placed)
			for _, id := range order {
				placed[id] = true
			}
		}
	}
	first := -1
	for i := range ops {
		if !placed[i] && (first < 0 || ops[i].Return < ops[first].Return) {
			first = i
		}
	}
	if first < 0 {
		return "every order breaks"
	}
	return fmt.Sprintf("%d of %d fit, and then there is no place for %s", best, len(ops), describe(ops[first].Input))
}

func describe(input any) string { return fmt.Sprintf("%.300s", fmt.Sprintf("%T %+v", input, input)) }
