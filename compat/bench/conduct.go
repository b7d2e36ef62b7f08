package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// conductor lets the peers go through all steps in turn. One runs at a time.
type conductor struct {
	out   io.Writer
	dir   string // everything of a run; emptied between peers
	exe   string // queen-edge
	self  string // this program
	jars  string
	size  size
	steps []step
	peers []string
	id    peer.Identity
	run   *result.Run
	sync  bool     // syncs can be counted
	disk  []string // what the disk alone takes, of each round
	tls   map[string]string
	// profiles is the folder for profiles of records on their way and of logins;
	// empty: none are taken. They cost, and so nothing else is measured.
	profiles string
}

// conduct makes the run.
func (c *conductor) conduct(ctx context.Context) error {
	begin := time.Now()
	if err := roomFor(c.dir, c.size.disk); err != nil {
		return err
	}
	syscall.Sync() // what was just built
	counted := c.tryCounting(ctx)
	machine, err := facts(ctx, c.dir, c.jars, counted)
	if err != nil {
		return err
	}
	c.run = &result.Run{Made: begin.UTC().Format(time.RFC3339), Rounds: c.size.rounds, Machine: machine, Client: load.Settings()}
	for _, id := range c.peers {
		c.run.Peers = append(c.run.Peers, result.Peer{ID: id, Title: peer.Title(id), Settings: peer.Settings(id)})
	}
	for _, s := range c.steps {
		c.run.Workloads = append(c.run.Workloads, s.workloads(c.sync)...)
	}
	for round := 1; round <= c.size.rounds; round++ {
		if err := c.diskRound(); err != nil {
			return err
		}
		for i := range c.peers {
			id := c.peers[(i+round-1)%len(c.peers)] // nobody is always the first
			if err := c.visit(ctx, round, id); err != nil {
				return fmt.Errorf("round %d, %s: %w", round, id, err)
			}
		}
	}
	c.run.Machine = append(c.run.Machine, result.Fact{Name: "the disk alone, 1 KiB written and synced 500 times a second", Value: c.diskFact()})
	for _, p := range c.run.Peers {
		if c.tls[p.ID] != "" {
			c.run.Machine = append(c.run.Machine, result.Fact{Name: "TLS of " + p.Title, Value: c.tls[p.ID]})
		}
	}
	c.run.Minutes = time.Since(begin).Minutes()
	if missing := c.run.Missing(); len(missing) > 0 {
		return fmt.Errorf("numbers are missing: %q", missing)
	}
	return nil
}

// tryCounting says how syncs are counted, or why they are not.
func (c *conductor) tryCounting(ctx context.Context) string {
	if err := peer.CanCountSyncs(ctx, c.dir); err != nil {
		return "not counted: " + err.Error()
	}
	c.sync = true
	return "fsync and fdatasync, counted by the kernel's trace points (perf stat)"
}

// visit is one peer's part of a round. Its data goes before the next one comes,
// and what the kernel still had to write of it.
func (c *conductor) visit(ctx context.Context, round int, id string) (err error) {
	if !slices.ContainsFunc(c.steps, func(s step) bool { return slices.Contains(s.peers, id) }) {
		return nil
	}
	r := &running{dir: filepath.Join(c.dir, id)}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	if r.Peer, err = peer.StartPeer(ctx, id, peer.Place{Dir: r.dir, Exe: c.exe, Self: c.self, Jars: c.jars, Identity: c.id, Profiles: c.profiles != ""}); err != nil {
		return err
	}
	defer func() {
		r.Stop()
		if err == nil { // logs of one that failed stay
			err = os.RemoveAll(r.dir)
			syscall.Sync()
		}
	}()
	if c.sync && id != peer.Bare {
		parts := r.Processes()
		if r.syncs, err = peer.CountSyncs(ctx, parts[len(parts)-1].PID()); err != nil { // the last one stores
			return err
		}
		defer r.syncs.Stop()
	}
	c.say("round %d: %s is up after %.1f s", round, peer.Title(id), time.Since(begin).Seconds())
	return c.goThrough(ctx, r, round, id)
}

func (c *conductor) goThrough(ctx context.Context, r *running, round int, id string) error {
	best := 0.0 // records a second
	warm := false
	for _, s := range c.steps {
		if !slices.Contains(s.peers, id) {
			continue
		}
		if s.spec.Kind == load.Produce && !warm {
			warm = true
			if _, err := c.move(ctx, r, c.warmUp(), nil); err != nil {
				return fmt.Errorf("warm-up: %w", err)
			}
		}
		if err := c.fits(s); err != nil {
			return err
		}
		note := func(workload string, values map[string]float64) {
			c.run.Samples = append(c.run.Samples, result.Sample{Round: round, Peer: id, Workload: workload, Values: values})
			c.tell(round, id, workload, values)
		}
		rate, err := c.take(ctx, r, s, best, note)
		if err != nil {
			return fmt.Errorf("%s: %w", s.id, err)
		}
		if s.id == halfOf {
			best = rate
		}
	}
	return nil
}

// take goes one step.
func (c *conductor) take(ctx context.Context, r *running, s step, best float64, note func(string, map[string]float64)) (rate float64, err error) {
	if s.spec.Kind == load.Produce {
		return c.move(ctx, r, s, note)
	}
	s.spec.Name = s.id
	if s.half {
		s.spec.Rate = best / 2
		s.spec.Seconds = min(s.spec.Seconds, float64(s.spec.MaxBytes)/(s.spec.Rate*float64(s.spec.RecordBytes)))
	}
	if s.fresh {
		cell, ok := r.Peer.(peer.Cell)
		if !ok {
			return 0, errors.New("this peer makes no tokens")
		}
		if s.spec.Tokens, err = cell.NewTokens(ctx, c.size.tokens); err != nil {
			return 0, err
		}
	}
	res, before, after, err := c.drive(ctx, r, s.spec)
	if err != nil {
		return 0, err
	}
	if res.TLS != "" {
		c.tls[filepath.Base(r.dir)] = res.TLS
	}
	note(s.id, r.values(s.spec.Kind, res, before, after))
	return 0, nil
}

// move writes and reads; note may be nil. It returns the records written in a
// second.
func (c *conductor) move(ctx context.Context, r *running, s step, note func(string, map[string]float64)) (rate float64, err error) {
	s.spec.Name = s.id
	res, before, after, err := c.drive(ctx, r, s.spec)
	if err != nil {
		return 0, fmt.Errorf("produce: %w", err)
	}
	if note != nil {
		note(s.id+produced, r.values(load.Produce, res, before, after))
	}
	rate = float64(res.Sum.Records) / res.Seconds
	s.spec.Kind, s.spec.Expect = load.Consume, &res.Total
	if res, before, after, err = c.drive(ctx, r, s.spec); err != nil {
		return 0, fmt.Errorf("consume: %w", err)
	}
	if note != nil {
		note(s.id+consumed, r.values(load.Consume, res, before, after))
	}
	return rate, nil
}

// warmUp is what is done before records are measured: a JVM compiles what it
// finds hot.
func (c *conductor) warmUp() step {
	return step{id: "warm-up", spec: load.Spec{
		Kind: load.Produce, RecordBytes: 1000, Codec: "none", Topics: 1, Partitions: 4, Clients: 1, Seconds: c.size.warm, MaxBytes: c.size.maxBytes,
	}}
}

// fits sees that a step leaves the run below its limit of disk.
func (c *conductor) fits(s step) error {
	now, err := used(c.dir)
	if err != nil {
		return err
	}
	if float64(now)+float64(s.spec.MaxBytes) > c.size.disk {
		return fmt.Errorf("the run has %.1f GB on the disk, and may take %.0f", float64(now)/1e9, c.size.disk/1e9)
	}
	return nil
}

// tell says how it goes on.
func (c *conductor) tell(round int, id, workload string, v map[string]float64) {
	line := fmt.Sprintf("round %d: %-15s %-24s", round, id, workload)
	for _, name := range []string{result.MBps, result.P50, result.P99, result.LoginsPerS, result.ClientPerMin, result.KiBEach + ".gateway", result.KiBEach + ".kafka", result.KiBEach + ".bare"} {
		if value, ok := v[name]; ok {
			line += fmt.Sprintf(" %s=%.2f", name, value)
		}
	}
	c.say("%s", line)
}

func (c *conductor) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}
