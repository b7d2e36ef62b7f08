package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

// worker is a running transactional program: a client library that reads the
// input through a group and writes what it makes of it to the output, both in one
// transaction after the other.
type worker struct {
	*program

	id string // its transactional id

	mu      sync.Mutex // guards the fields below
	inits   []initCall
	txns    []txnCall
	met     []meeting
	odd     []string // lines that say nothing known
	done    bool
	changed chan struct{}
}

// initCall is an InitProducerId, by what the program calls the producer's life.
type initCall struct {
	life     int
	at       history.Span
	answered bool
}

// txnCall is a transaction whose commit was asked for.
type txnCall struct {
	life, number int
	at           history.Span
	writes       map[int32][]int
	offsets      map[int32]int64
	outcome      history.Outcome
}

// meeting is what an application was told in the place of success.
type meeting struct {
	call  string // init, begin, produce, offsets, commit, abort
	class string // what it does about it
	code  string // the client's own word
}

func (m meeting) String() string { return fmt.Sprintf("%s: %s (%s)", m.call, m.code, m.class) }

// Classes of a meeting.
const (
	metAbort  = "abort"  // it aborts and goes on
	metFenced = "fenced" // somebody else has its transactional id: a new producer
	metFatal  = "fatal"  // a new producer
	metRetry  = "retry"  // it asks the same again
)

func startWorker(dir, logFile, id string, env []string) (w *worker, err error) {
	w = &worker{id: id, changed: make(chan struct{})}
	w.program, err = startProgram(dir, logFile, append(env, "QE_FAULTS_TXN_ID="+id), w.take)
	return w, err
}

// take notes what one line says: its time, a word, and numbers.
func (w *worker) take(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.note(strings.Fields(line)); err != nil {
		w.odd = append(w.odd, line)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

var errOdd = errors.New("not a line that is known")

func (w *worker) note(words []string) error {
	if len(words) < 2 {
		return errOdd
	}
	micros, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return err
	}
	at, word, rest := time.UnixMicro(micros), words[1], words[2:]
	if word == "done" && len(rest) == 0 {
		w.done = true
		return nil
	}
	var n [2]int // life, number of the transaction
	for i := range min(len(rest), 2) {
		if n[i], err = strconv.Atoi(rest[i]); err != nil {
			return err
		}
	}
	switch {
	case word == "init" && len(rest) == 1:
		w.inits = append(w.inits, initCall{life: n[0], at: history.Span{Call: at}})
		return nil
	case word == "inited" && len(rest) == 1 && len(w.inits) > 0:
		last := &w.inits[len(w.inits)-1]
		last.at.Return, last.answered = at, true
		return nil
	case word == "commit" && len(rest) == 4:
		return w.commit(at, n, rest[2], rest[3])
	case word == "committed" && len(rest) == 2:
		return w.decide(at, n, history.Committed)
	case word == "aborted" && len(rest) == 2:
		w.decideIfAsked(at, n, history.Aborted)
		return nil
	case word == "met" && len(rest) == 5:
		return w.meet(at, n, meeting{call: rest[2], class: rest[3], code: rest[4]})
	}
	return errOdd
}

func (w *worker) commit(at time.Time, n [2]int, writes, offsets string) error {
	t := txnCall{life: n[0], number: n[1], at: history.Span{Call: at}, writes: make(map[int32][]int), offsets: make(map[int32]int64)}
	err := errors.Join(
		byPartition(writes, func(p int32, text string) error {
			for word := range strings.SplitSeq(text, ",") {
				number, err := strconv.Atoi(word)
				if err != nil {
					return err
				}
				t.writes[p] = append(t.writes[p], number)
			}
			return nil
		}),
		byPartition(offsets, func(p int32, text string) (err error) {
			t.offsets[p], err = strconv.ParseInt(text, 10, 64)
			return err
		}),
	)
	w.txns = append(w.txns, t)
	return err
}

// byPartition goes through "0:what;1:what".
func byPartition(text string, each func(p int32, what string) error) error {
	for part := range strings.SplitSeq(text, ";") {
		index, what, ok := strings.Cut(part, ":")
		p, err := strconv.ParseInt(index, 10, 32)
		if !ok || err != nil {
			return errOdd
		}
		if err := each(int32(p), what); err != nil {
			return err
		}
	}
	return nil
}

// decide says what became of a transaction.
func (w *worker) decide(at time.Time, n [2]int, how history.Outcome) error {
	if !w.decideIfAsked(at, n, how) {
		return errOdd
	}
	return nil
}

// decideIfAsked: a transaction may be aborted before its commit was asked for.
func (w *worker) decideIfAsked(at time.Time, n [2]int, how history.Outcome) bool {
	i := slices.IndexFunc(w.txns, func(t txnCall) bool { return t.life == n[0] && t.number == n[1] })
	if i < 0 {
		return false
	}
	w.txns[i].at.Return, w.txns[i].outcome = at, how
	return true
}

func (w *worker) meet(at time.Time, n [2]int, m meeting) error {
	if !slices.Contains([]string{metAbort, metFenced, metFatal, metRetry}, m.class) {
		return errOdd
	}
	w.met = append(w.met, m)
	if m.class == metFenced {
		w.decideIfAsked(at, n, history.Fenced)
	}
	return nil
}

// await waits until something is so of what it has said.
func (w *worker) await(what string, so func(*worker) bool, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		w.mu.Lock()
		ok, changed := so(w), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-w.exited:
			return w.died()
		case <-timer.C:
			return fmt.Errorf("no %s in %s; the client's log is %s", what, patience, w.log.Name())
		}
	}
}

// lives is how many producers it has had that were answered.
func (w *worker) lives() (n int) {
	for _, i := range w.inits {
		if i.answered {
			n++
		}
	}
	return n
}

// finish lets it close its client and end.
func (w *worker) finish(patience time.Duration) error {
	if err := w.program.finish(patience); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.done:
		return fmt.Errorf("the client did not say that it is done; its log is %s", w.log.Name())
	case len(w.odd) > 0:
		return fmt.Errorf("the client said %q", w.odd[0])
	}
	return nil
}

// record adds what it has done to a history.
func (w *worker) record(client int, h *history.History) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.inits {
		h.Init(client, i.at, history.Producer{ID: w.id, Life: i.life}, i.answered)
	}
	for _, t := range w.txns {
		h.Txn(client, t.at, history.Txn{
			Producer: history.Producer{ID: w.id, Life: t.life}, Writes: t.writes, Offsets: t.offsets, Outcome: t.outcome,
		})
	}
}
