package tenancy

import (
	"cmp"
	"container/list"
	"slices"
)

// waiter is one who waits at a Ceiling.
type waiter struct {
	id    ID
	n     int64
	ready chan struct{}
	came  uint64        // in which order
	place *list.Element // in its tenant's line; nil: in none
}

// ceilingLines are those who wait at a Ceiling: a line for each tenant, the one
// whose first has come first before the others. However many of a tenant wait, the
// others pay for one of them. The Ceiling's lock guards it.
type ceilingLines struct {
	came  uint64
	of    map[ID]*list.List // of *waiter
	order []*list.List
}

// has reports whether somebody of the tenant waits.
func (l *ceilingLines) has(id ID) bool { return l.of[id] != nil }

// add puts w at the end of its tenant's line.
func (l *ceilingLines) add(w *waiter) {
	l.came++
	w.came = l.came
	line := l.of[w.id]
	if line == nil {
		if l.of == nil {
			l.of = make(map[ID]*list.List)
		}
		line = list.New()
		l.of[w.id] = line
		l.order = append(l.order, line)
	}
	w.place = line.PushBack(w)
}

// each offers those who wait, in the order in which they came, and takes those out
// that are let in. Behind one that is not, its tenant's others are not asked.
func (l *ceilingLines) each(letIn func(*waiter) bool) {
	for i := 0; i < len(l.order); {
		if w := first(l.order[i]); letIn(w) {
			l.remove(w)
		} else {
			i++
		}
	}
}

// remove takes w out; false: it is in no line.
func (l *ceilingLines) remove(w *waiter) bool {
	if w.place == nil {
		return false
	}
	line := l.of[w.id]
	leads := line.Front() == w.place
	at, _ := l.find(first(line))
	line.Remove(w.place)
	w.place = nil
	if !leads {
		return true
	}
	l.order = slices.Delete(l.order, at, at+1)
	if line.Len() == 0 {
		delete(l.of, w.id)
		return true
	}
	at, _ = l.find(first(line))
	l.order = slices.Insert(l.order, at, line)
	return true
}

// find is the place of the line that begins with w, or where it belongs.
func (l *ceilingLines) find(w *waiter) (at int, found bool) {
	return slices.BinarySearchFunc(l.order, w.came, func(line *list.List, came uint64) int { return cmp.Compare(first(line).came, came) })
}

func first(line *list.List) *waiter { return line.Front().Value.(*waiter) }
