// Command faults takes idempotent producers of several client libraries through
// whatever can go wrong between them and the log, and judges what is in the log
// afterwards. README.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/window"
)

type options struct {
	full     bool
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
	flag.BoolVar(&o.full, "full", false, "six rounds of every fault, a million records with the window and a million without")
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// fill sets what was left open: the short form, or the full one.
func (o *options) fill() {
	short := options{windows: "900", rounds: 2, slow: 1, records: 3000, parallel: 5}
	if o.full {
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
	root, err := moduleRoot(ctx)
	if err != nil {
		return false, err
	}
	cache := filepath.Join(root, "compat", "clients", ".cache")
	picked, err := pickClients(filepath.Join(root, "compat", "faults"), o.clients)
	if err != nil {
		return false, err
	}
	dir, keep := o.dir, o.dir != ""
	if !keep {
		if dir, err = os.MkdirTemp("", "queen-edge-faults-"); err != nil {
			return false, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	exe := filepath.Join(dir, "queen-edge")
	if err := build(ctx, root, exe); err != nil {
		return false, fmt.Errorf("build: %w", err)
	}
	for _, c := range picked {
		if err := c.install([]string{"COMPAT_CACHE=" + cache}); err != nil {
			return false, err
		}
	}
	began := time.Now()
	results, err := o.all(ctx, exe, dir, cache, picked)
	if err != nil {
		return false, err
	}
	printTables(results, os.Stdout)
	failed = printTotal(results, time.Since(began), os.Stdout)
	switch {
	case failed:
		fmt.Println("faults: logs and data are in", dir)
	case !keep:
		err = os.RemoveAll(dir)
	}
	return failed, err
}

// all takes the clients through their trials, some of them at a time.
func (o *options) all(ctx context.Context, exe, dir, cache string, picked []client) ([]result, error) {
	trials := make([][]result, len(picked))
	errs := make([]error, len(picked))
	places := make(chan struct{}, o.parallel)
	var running sync.WaitGroup
	var printing sync.Mutex // guards stdout, where a trial's line stays whole
	for i, c := range picked {
		running.Add(1)
		go o.client(ctx, c, exe, filepath.Join(dir, c.name), cache, &trials[i], &errs[i], places, &running, &printing)
	}
	running.Wait()
	return slices.Concat(trials...), errors.Join(errs...)
}

// client takes one client through its trials, on a system of its own.
func (o *options) client(ctx context.Context, c client, exe, dir, cache string, results *[]result, failed *error, places chan struct{}, running *sync.WaitGroup, printing *sync.Mutex) {
	defer running.Done()
	places <- struct{}{}
	defer func() { <-places }()
	var err error
	defer func() { *failed = err }()
	trials, err := o.trials(c)
	if err != nil {
		return
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return
	}
	events, err := os.Create(filepath.Join(dir, "faults.jsonl"))
	if err != nil {
		return
	}
	defer events.Close()
	s, err := startSystem(exe, dir, events, func(cell window.Cell) error {
		var errs []error
		for _, t := range trials {
			errs = append(errs, cell.Make(ctx, t.topic(), partitions, t.window))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, t := range trials {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		r := t.run(ctx, s, cache)
		*results = append(*results, r)
		printing.Lock()
		r.print(os.Stdout)
		printing.Unlock()
	}
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

func pickClients(dir, names string) ([]client, error) {
	all := clients(dir)
	if names == "" {
		return all, nil
	}
	var picked []client
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no client %q", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/queen-mq/queen-edge").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside queen-edge's module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
