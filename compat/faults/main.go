// Command faults takes producers of several client libraries, idempotent ones and
// with --txn transactional ones, through whatever can go wrong between them and
// the log, and judges what is in the log afterwards. README.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/window"
	"github.com/queen-mq/queen-edge/compat/mainly"
)

type options struct {
	full     bool
	txn      bool
	clients  string
	faults   string
	windows  string
	rounds   int
	slow     int
	records  int
	parallel int
	dir      string
}

func main() {
	var o options
	flag.BoolVar(&o.full, "full", false, "six rounds of every fault, a million records with the window and a million without; with --txn five rounds of every fault at every step")
	flag.BoolVar(&o.txn, "txn", false, "consume, transform and produce in transactions (TRANSACTIONS.md)")
	flag.StringVar(&o.clients, "clients", "", "these only, separated by commas")
	flag.StringVar(&o.faults, "faults", "", "these only, separated by commas")
	flag.StringVar(&o.windows, "windows", "", "deduplication windows in seconds, separated by commas; 0 is off")
	flag.IntVar(&o.rounds, "rounds", 0, "how often each fault strikes")
	flag.IntVar(&o.slow, "slow-rounds", 0, "how often those do that take the gateway's whole patience")
	flag.IntVar(&o.records, "records", 0, "records of a trial")
	flag.IntVar(&o.parallel, "parallel", 0, "clients at a time, each with a system of its own")
	flag.StringVar(&o.dir, "dir", "", "where logs and data go and stay; empty: they go when nothing failed")
	flag.Parse()
	o.fill()
	mainly.Run("faults", 0, func(ctx context.Context) (bool, error) {
		failed, err := run(ctx, o)
		return !failed, err
	})
}

// fill sets what was left open: the short form, or the full one.
func (o *options) fill() {
	short := options{windows: "900", rounds: 2, slow: 1, records: 3000, parallel: 5}
	switch {
	case o.txn && o.full:
		short = options{rounds: 5, parallel: 5}
	case o.txn:
		short = options{rounds: 1, parallel: 5}
	case o.full:
		short = options{windows: "900,0", rounds: 6, slow: 6, records: 14400, parallel: 5}
	}
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.rounds, short.rounds)
	set(&o.slow, min(short.slow, o.rounds))
	set(&o.records, short.records)
	set(&o.parallel, short.parallel)
	if o.windows == "" {
		o.windows = short.windows
	}
}

func run(ctx context.Context, o options) (failed bool, err error) {
	b, err := prepare(ctx, o.dir)
	if err != nil {
		return false, err
	}
	if o.txn {
		failed, err = b.transactions(ctx, &o)
	} else {
		failed, err = b.producers(ctx, &o)
	}
	return failed, errors.Join(err, b.close(failed || err != nil))
}

// producers takes idempotent producers through their trials.
func (b *bench) producers(ctx context.Context, o *options) (failed bool, err error) {
	picked, err := b.clients(clients(filepath.Join(b.root, "compat", "faults")), o.clients)
	if err != nil {
		return false, err
	}
	began := time.Now()
	trials := make([][]result, len(picked))
	err = inParallel(len(picked), o.parallel, func(i int) (err error) {
		trials[i], err = b.client(ctx, o, picked[i])
		return err
	})
	if err != nil {
		return false, err
	}
	results := slices.Concat(trials...)
	printTables(results, os.Stdout)
	return printTotal(results, time.Since(began), os.Stdout), nil
}

// client takes one client through its trials, on a system of its own.
func (b *bench) client(ctx context.Context, o *options, c client) (results []result, err error) {
	trials, err := o.trials(c)
	if err != nil {
		return nil, err
	}
	s, err := b.system(c.name, nil, func(cell window.Cell) error {
		var errs []error
		for _, t := range trials {
			errs = append(errs, cell.Make(ctx, t.topic(), partitions, t.window))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, t := range trials {
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		r := t.run(ctx, s, b.cache)
		results = append(results, r)
		r.print(&b.out)
	}
	return results, nil
}

// trials are those of one client.
func (o *options) trials(c client) (trials []trial, err error) {
	list, err := pickFaults(o.faults)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(o.windows, ",") {
		window, err := strconv.Atoi(text)
		if err != nil || window < 0 {
			return nil, fmt.Errorf("%q is no window", text)
		}
		for _, f := range list {
			t := trial{client: c, fault: f, window: window, rounds: o.rounds, records: o.records}
			if f.slow {
				t.rounds = o.slow
			}
			trials = append(trials, t)
		}
	}
	return trials, nil
}
