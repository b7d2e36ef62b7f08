package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

// checkPatience bounds the search for an order of the history.
const checkPatience = time.Minute

// judge compares the output and the committed offsets with the input. Their last
// states become looks of the history.
func (t *transacting) judge() error {
	ctx, cancel := context.WithTimeout(t.ctx, readPatience)
	defer cancel()
	log, err := t.view.whole(ctx, t.w)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	offsets, err := t.view.committed(ctx)
	if err != nil {
		return fmt.Errorf("committed offsets: %w", err)
	}
	now := time.Now()
	t.history.Look(onlooker, history.Span{Call: now, Return: now}, history.Offsets(offsets))
	for p := range log {
		var numbers []int
		for _, r := range log[p] {
			numbers = append(numbers, r.number)
		}
		t.result.records += len(numbers)
		t.history.Look(onlooker, history.Span{Call: now, Return: now}, history.Log{Partition: int32(p), Numbers: numbers})
	}
	problems := slices.Concat(t.view.odd, effects(log, t.fed), agree(offsets, t.fed), t.ghosts(log))
	if t.result.struck < t.rounds {
		problems = append(problems, "the fault did not strike in every round")
	}
	t.result.met = t.meetings()
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// effects looks for every input's effect: once, and nothing else.
func effects(log [txnPartitions][]written, fed int) (problems []string) {
	times := make(map[int]int)
	for p := range log {
		for _, r := range log[p] {
			times[r.number]++
		}
	}
	lost, twice := 0, 0
	for n := range fed {
		switch {
		case times[n] == 0:
			lost++
		case times[n] > 1:
			twice++
		}
		delete(times, n)
	}
	if lost > 0 {
		problems = append(problems, fmt.Sprintf("%d inputs have no effect", lost))
	}
	if twice > 0 {
		problems = append(problems, fmt.Sprintf("%d inputs have their effect more than once", twice))
	}
	if len(times) > 0 {
		problems = append(problems, fmt.Sprintf("%d records are of no input", len(times)))
	}
	return problems
}

// agree compares offsets with records: all of the input was read, once.
func agree(offsets map[int32]int64, fed int) (problems []string) {
	for p := range int32(txnPartitions) {
		want := int64((fed - int(p) + txnPartitions - 1) / txnPartitions)
		if offsets[p] != want {
			problems = append(problems, fmt.Sprintf("partition %d is committed up to %d, and was read up to %d", p, offsets[p], want))
		}
	}
	return problems
}

// ghosts are records of transactions that were aborted or fenced.
func (t *transacting) ghosts(log [txnPartitions][]written) (problems []string) {
	ended := make(map[string]history.Outcome)
	t.result.txns = make(map[history.Outcome]int)
	for _, w := range append([]*worker{t.w}, t.others...) {
		for _, c := range w.txns {
			ended[fmt.Sprintf("%s/%d/%d", w.id, c.life, c.number)] = c.outcome
			t.result.txns[c.outcome]++
		}
	}
	for p := range log {
		for offset, r := range log[p] {
			how, asked := ended[r.by]
			if !asked || how == history.Aborted || how == history.Fenced {
				problems = append(problems, fmt.Sprintf("partition %d, offset %d is of transaction %q, which has not committed", p, offset, r.by))
			}
		}
	}
	return problems
}

// meetings are what the applications met, each once.
func (t *transacting) meetings() (met []meeting) {
	for _, w := range append([]*worker{t.w}, t.others...) {
		for _, m := range w.met {
			met = addNew(met, m)
		}
	}
	return met
}

// check holds the history against the model.
func (t *transacting) check() error {
	t.w.record(0, &t.history)
	for i, other := range t.others {
		other.record(1+i, &t.history)
	}
	t.history.Add(&t.view.looked)
	t.result.verdict = t.history.Check(checkPatience)
	return t.result.verdict.Err
}
