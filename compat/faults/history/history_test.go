package history

import (
	"strings"
	"testing"
	"time"
)

// at is a span in milliseconds.
func at(from, to int64) Span { return Span{time.UnixMilli(from), time.UnixMilli(to)} }

func txn(life int, how Outcome, numbers ...int) Txn {
	return Txn{
		Producer: Producer{"id", life}, Outcome: how,
		Writes: map[int32][]int{0: numbers}, Offsets: map[int32]int64{0: int64(numbers[len(numbers)-1] + 1)},
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		what string
		play func(*History)
		bad  string // what the verdict says; empty: there is an order
	}{
		{"commits one after the other", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Committed, 0, 1))
			h.Look(1, at(12, 13), Offsets{0: 2})
			h.Txn(0, at(14, 15), txn(1, Committed, 2))
			h.Look(1, at(16, 17), Log{0, []int{0, 1, 2}})
		}, ""},
		{"looks while a commit is under way see either", func(h *History) {
			h.Txn(0, at(10, 20), txn(1, Committed, 0))
			h.Look(1, at(12, 13), Offsets{0: -1})
			h.Look(1, at(14, 15), End{0, 1})
			h.Look(1, at(16, 17), Offsets{0: 1})
		}, ""},
		{"offsets before their records", func(h *History) {
			h.Txn(0, at(10, 20), txn(1, Committed, 0))
			h.Look(1, at(12, 13), Offsets{0: 1})
			h.Look(1, at(14, 15), End{0, 0})
		}, "no place for history.End"},
		{"records before their offsets", func(h *History) {
			h.Txn(0, at(10, 20), txn(1, Committed, 0))
			h.Look(1, at(12, 13), End{0, 1})
			h.Look(1, at(14, 15), Offsets{0: 0})
		}, "no place for history.Offsets"},
		{"a commit that was answered and is not there", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Committed, 0))
			h.Look(1, at(12, 13), End{0, 0})
		}, "no place for history.End"},
		{"twice in the log", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Committed, 0))
			h.Look(1, at(12, 13), Log{0, []int{0, 0}})
		}, "no place for history.Log"},
		{"what was aborted is in the log", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Aborted, 0))
			h.Look(1, at(12, 13), Log{0, []int{0}})
		}, "no place for history.Log"},
		{"the outcome was never told, and it is there", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Unknown, 0))
			h.Look(1, at(12, 13), Log{0, []int{0}})
		}, ""},
		{"the outcome was never told, and it is not there", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Unknown, 0))
			h.Look(1, at(12, 13), Log{0, nil})
		}, ""},
		{"the outcome was never told, and half of it is there", func(h *History) {
			h.Txn(0, at(10, 11), txn(1, Unknown, 0, 1))
			h.Look(1, at(12, 13), Log{0, []int{0}})
		}, "no place for history.Log"},
		{"a fenced producer that is told so", func(h *History) {
			h.Init(1, at(12, 13), Producer{"id", 2}, true)
			h.Txn(0, at(14, 15), txn(1, Fenced, 0))
			h.Txn(1, at(16, 17), txn(2, Committed, 0))
			h.Look(2, at(18, 19), Log{0, []int{0}})
		}, ""},
		{"a fenced producer that commits", func(h *History) {
			h.Init(1, at(12, 13), Producer{"id", 2}, true)
			h.Txn(0, at(14, 15), txn(1, Committed, 0))
		}, "no place for history.Txn"},
		{"a fence that nobody raised", func(h *History) {
			h.Txn(0, at(14, 15), txn(1, Fenced, 0))
		}, "no place for history.Txn"},
		{"a fence by somebody who was not answered", func(h *History) {
			h.Init(1, at(12, 13), Producer{"id", 2}, false)
			h.Txn(0, at(14, 15), txn(1, Fenced, 0))
		}, ""},
		{"other ids have their own fences", func(h *History) {
			h.Init(1, at(12, 13), Producer{"other", 2}, true)
			h.Txn(0, at(14, 15), txn(1, Committed, 0))
			h.Look(1, at(16, 17), Offsets{0: 1})
		}, ""},
	} {
		var h History
		h.Init(0, at(1, 2), Producer{"id", 1}, true)
		c.play(&h)
		v := h.Check(time.Minute)
		if got := v.String(); (v.Err == nil) != (c.bad == "") || !strings.Contains(got, c.bad) || v.Operations != h.Len() {
			t.Errorf("%s: %s", c.what, got)
		}
	}
}
