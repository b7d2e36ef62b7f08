package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

const (
	// txnPartitions are those of the input and of the output: record n is in
	// partition n mod that of both.
	txnPartitions = 3
	// perRound is how many records a round has: half of them to be struck, half
	// for going on.
	perRound = 24
	// roundPatience is how long a round may take.
	roundPatience = 90 * time.Second
)

// txnTrial is one client and one fault at one step: a cell of the table. A run
// is one of its rounds.
type txnTrial struct {
	client client
	second client // of another member of the group
	strike strike
	rounds int
}

func (t txnTrial) String() string { return fmt.Sprintf("%s %s", t.client.name, t.strike) }

// names are what a trial has of its own.
type names struct{ id, group, input, output string }

func (t txnTrial) names() names {
	base := fmt.Sprintf("%s-%s-%s", t.client.name, t.strike.fault, t.strike.step)
	return names{id: base, group: base, input: base + "-in", output: base + "-out"}
}

// txnResult is what became of a trial.
type txnResult struct {
	txnTrial
	struck  int // rounds in which the fault struck
	records int
	txns    map[history.Outcome]int
	met     []meeting // each once
	verdict history.Verdict
	took    time.Duration
	err     error
}

// transacting is a trial under way.
type transacting struct {
	txnTrial
	ctx      context.Context //nolint:containedctx // of the trial, for what happens in the middle of a request
	s        *system
	cache    string
	names    names
	w        *worker
	others   []*worker
	usurpers []*usurper
	view     *view
	fed      int
	history  history.History
	result   txnResult
}

func (t txnTrial) run(ctx context.Context, s *system, cache string) txnResult {
	began := time.Now()
	w := &transacting{txnTrial: t, ctx: ctx, s: s, cache: cache, names: t.names(), result: txnResult{txnTrial: t}}
	w.result.err = w.all()
	for _, program := range append([]*worker{w.w}, w.others...) {
		if program != nil && program.program != nil {
			program.kill()
		}
	}
	w.result.took = time.Since(began)
	return w.result
}

func (t *transacting) env() []string {
	timeout := time.Minute
	if t.strike.short {
		timeout = shortTimeout
	}
	return []string{
		"QE_FAULTS_BOOTSTRAP=" + t.s.lane.addr(), "QE_FAULTS_TOKEN=" + t.s.token, "QE_FAULTS_VERSION=" + t.client.version,
		"QE_FAULTS_INPUT=" + t.names.input, "QE_FAULTS_OUTPUT=" + t.names.output, "QE_FAULTS_GROUP=" + t.names.group,
		fmt.Sprintf("QE_FAULTS_TXN_TIMEOUT_MS=%d", timeout.Milliseconds()), "COMPAT_CACHE=" + t.cache,
	}
}

func (t *transacting) all() (err error) {
	if t.view, err = openView(t.ctx, t.s, t.names); err != nil {
		return err
	}
	played := t.play()
	if played == nil {
		err = t.judge()
	}
	t.view.close() // it looks on until all is judged
	if played != nil {
		return played
	}
	return errors.Join(err, t.check())
}

// play takes the program through a round without a fault, so that it is under
// way, and then through those with one.
func (t *transacting) play() (err error) {
	t.w, err = startWorker(t.client.dir, filepath.Join(t.s.dir, t.names.id+".log"), t.names.id, t.env())
	if err != nil {
		return err
	}
	if err := t.w.await("producer", func(w *worker) bool { return w.lives() > 0 }, quiet); err != nil {
		return err
	}
	if err := errors.Join(t.feed(perRound), t.output(t.fed)); err != nil {
		return fmt.Errorf("before any fault: %w", err)
	}
	for i := range t.rounds {
		if err := t.round(); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return t.w.finish(quiet)
}

// round lays the fault, and feeds the input until the fault has struck and all
// has come through.
func (t *transacting) round() error {
	defer t.s.proxy.Clear()
	defer t.s.lane.release()
	struck := make(chan error, 1)
	if err := t.strike.install(t, func(err error) { struck <- err }); err != nil {
		return err
	}
	if err := t.feed(perRound / 2); err != nil {
		return err
	}
	if err := t.struck(struck); err != nil {
		return err
	}
	t.result.struck++
	if err := t.feed(perRound / 2); err != nil {
		return err
	}
	if t.strike.after != nil {
		if err := t.strike.after(t); err != nil {
			return err
		}
	}
	return t.output(t.fed)
}

func (t *transacting) struck(struck <-chan error) error {
	timer := time.NewTimer(roundPatience)
	defer timer.Stop()
	select {
	case err := <-struck:
		return err
	case <-t.w.exited:
		return t.w.died()
	case <-timer.C:
		return errors.New("the fault did not strike")
	}
}

func (t *transacting) feed(n int) error {
	ctx, cancel := context.WithTimeout(t.ctx, roundPatience)
	defer cancel()
	t.fed += n
	return t.view.feed(ctx, t.fed-n, t.fed)
}

// output waits until everything below n is in the output.
func (t *transacting) output(n int) error {
	ctx, cancel := context.WithTimeout(t.ctx, roundPatience)
	defer cancel()
	return t.view.await(ctx, t.w, "the transforms of all of the input", func() bool { return t.view.below(n) })
}
