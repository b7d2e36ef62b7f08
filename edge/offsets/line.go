package offsets

import (
	"context"
	"slices"
	"sync"

	"github.com/queen-mq/queen-edge/tenancy"
)

// line is where the work of one group waits its turn.
type line struct {
	users int // guarded by Store.mu
	most  int // writes of one call

	mu      sync.Mutex // guards the fields below; never held over a call
	busy    bool       // somebody works
	waiting []*job     // in the order of arrival
}

// job is one commit, or something else that must be alone with its group.
type job struct {
	scope        tenancy.Scope
	by           tenancy.Credential
	group        string
	generation   int32
	protocolType func() string // nil: not a member's
	entries      []Entry
	bytes        int // that the entries take in a call, at most
	work         func(context.Context) error

	turn chan []*job   // what it is to do for itself and others; told at most once
	done chan struct{} // closed when written and err say how it went

	written int   // entries that are stored: the first ones
	err     error // of the others, or of the work
	settled bool  // by whoever works
}

// join puts a job in the line. Where nobody works it may begin at once.
func (l *line) join(j *job) (begin bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		l.waiting = append(l.waiting, j)
		return false
	}
	l.busy = true
	return true
}

// withdraw takes a job out of the line; false means that it has been taken.
func (l *line) withdraw(j *job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, j)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// pass gives the turn to the job that has waited longest, with all that can go
// with it.
func (l *line) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy, l.waiting = false, nil
		return
	}
	batch := l.take()
	batch[0].turn <- batch
}

// maxPassedOver bounds the places that are compared when jobs of one credential
// go before those of another.
const maxPassedOver = 4096

// take takes the first job and those of the same credential that fit in its
// call. One that is to commit a place after somebody who stays behind stays as
// well, so that for each place the order is that of arrival. l.mu is held.
func (l *line) take() []*job {
	head := l.waiting[0]
	batch, stay := []*job{head}, l.waiting[:0]
	bytes := head.bytes
	places, passed := make(map[Place]struct{}), make(map[Place]struct{})
	closed := head.work != nil || !fits(places, head, l.most)
	if !closed {
		add(places, head)
	}
	for _, j := range l.waiting[1:] {
		closed = closed || j.work != nil
		if !closed && j.by == head.by && bytes+j.bytes <= maxWriteBytes && fits(places, j, l.most) && !meets(passed, j) {
			add(places, j)
			bytes += j.bytes
			batch = append(batch, j)
			continue
		}
		stay = append(stay, j)
		if closed = closed || len(passed)+len(j.entries) > maxPassedOver; !closed {
			add(passed, j)
		}
	}
	clear(l.waiting[len(stay):])
	l.waiting = stay
	return batch
}

func add(places map[Place]struct{}, j *job) {
	for i := range j.entries {
		places[j.entries[i].Place] = struct{}{}
	}
}

func meets(places map[Place]struct{}, j *job) bool {
	for i := range j.entries {
		if _, ok := places[j.entries[i].Place]; ok {
			return true
		}
	}
	return false
}

// fits reports whether a job's writes and those of places are one call. A place
// that both commit is one write.
func fits(places map[Place]struct{}, j *job, most int) bool {
	if len(j.entries) > most || j.bytes > maxWriteBytes {
		return false
	}
	n := len(places)
	for i := range j.entries {
		if _, ok := places[j.entries[i].Place]; !ok {
			n++
		}
	}
	return n <= most
}
