package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
)

const (
	// quiet is how long a client may settle nothing: its own patience with a
	// request, and a restart behind it.
	quiet = 100 * time.Second
	// gathering is how long a fault waits for a full pipeline behind the batch it
	// strikes.
	gathering = 400 * time.Millisecond
)

// trial is one client, one fault, one window: a cell of the table.
type trial struct {
	client  client
	fault   fault
	window  int // s; 0: off
	rounds  int
	records int
}

func (t trial) String() string {
	return fmt.Sprintf("%s %s window=%d", t.client.name, t.fault.name, t.window)
}

func (t trial) topic() string { return fmt.Sprintf("%s-%s-%d", t.client.name, t.fault.name, t.window) }

// result is what became of a trial.
type result struct {
	trial
	rounds     int // in which the fault struck
	fired      int // how often it struck
	behind     int // most requests pipelined behind a first batch that was struck
	acked      int
	duplicates int
	took       time.Duration
	err        error
}

// trying is a trial under way.
type trying struct {
	trial
	s       *system
	p       *producer
	granted int
	result  result
}

// run takes a client through the rounds of a fault, and judges what is in the
// log.
func (t trial) run(ctx context.Context, s *system, cache string) result {
	began := time.Now()
	w := &trying{trial: t, s: s, result: result{trial: t}}
	before := s.proxy.Fired(inject.Kind(t.fault.name))
	w.result.err = w.all(ctx, cache)
	w.result.fired = s.proxy.Fired(inject.Kind(t.fault.name)) - before
	if w.p != nil && w.p.program != nil {
		w.p.kill()
	}
	w.result.took = time.Since(began)
	return w.result
}

func (w *trying) all(ctx context.Context, cache string) (err error) {
	topic := w.topic()
	w.p, err = startProducer(w.client.dir, filepath.Join(w.s.dir, topic+".log"), []string{
		"QE_FAULTS_BOOTSTRAP=" + w.s.lane.addr(), "QE_FAULTS_TOKEN=" + w.s.token, "QE_FAULTS_TOPIC=" + topic,
		fmt.Sprintf("QE_FAULTS_PARTITIONS=%d", partitions), "COMPAT_CACHE=" + cache,
	})
	if err != nil {
		return err
	}
	if err := w.grant(partitions); err != nil { // so that it is connected when the first batch is struck
		return err
	}
	if _, err := w.p.wait(w.granted, nil, quiet); err != nil {
		return err
	}
	for i := range w.rounds {
		if err := w.round(i); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	if err := w.p.finish(quiet); err != nil {
		return err
	}
	return w.judge(ctx, topic)
}

func (w *trying) grant(n int) error {
	w.granted += n
	return w.p.upTo(w.granted)
}

// round strikes one push: the first one of a burst, so that what is pipelined is
// behind it, or in the next round one in the middle.
func (w *trying) round(i int) error {
	first, n := i%2 == 0, w.records/w.rounds
	struck := make(chan struct{})
	var failed error
	behind := 0
	rule := w.fault.ruleFor(i, func() {
		defer close(struck)
		if first { // in the middle it strikes whatever is on the way
			behind = w.s.lane.await(w.client.inFlight, gathering) - 1
		}
		if w.fault.act != nil {
			failed = w.fault.act(w.s)
		}
	})
	if !first {
		if err := w.grant(n); err != nil {
			return err
		}
		if _, err := w.p.wait(w.granted-n*3/4, nil, quiet); err != nil {
			return err
		}
	}
	defer w.s.proxy.Clear()
	for _, r := range append([]inject.Rule{rule}, w.fault.more...) {
		r.Name = rule.Name
		if err := w.s.proxy.Add(r); err != nil {
			return err
		}
	}
	if first {
		if err := w.grant(n); err != nil {
			return err
		}
	}
	if err := w.struck(struck, n/4); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	w.result.rounds++
	w.result.behind = max(w.result.behind, behind)
	_, err := w.p.wait(w.granted, nil, quiet)
	return err
}

// struck waits for the fault. A client that was too fast for it writes some more.
func (w *trying) struck(struck <-chan struct{}, more int) error {
	for range 5 {
		if fired, err := w.p.wait(w.granted, struck, quiet); fired || err != nil {
			return err
		}
		select {
		case <-struck:
			return nil
		default:
		}
		if err := w.grant(max(more, partitions)); err != nil {
			return err
		}
	}
	return errors.New("the fault did not strike")
}
