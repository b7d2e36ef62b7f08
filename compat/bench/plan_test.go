package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/compat/bench/load"
	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// Both forms take the same steps: the short one proves the long one.
func TestFormsTakeTheSameSteps(t *testing.T) {
	long, short := full().plan(), brief().plan()
	if len(long) != len(short) {
		t.Fatalf("%d and %d steps", len(long), len(short))
	}
	for i := range long {
		if long[i].id != short[i].id || long[i].spec.Kind != short[i].spec.Kind || !slices.Equal(long[i].peers, short[i].peers) {
			t.Errorf("step %d: %s and %s", i, long[i].id, short[i].id)
		}
	}
}

// What can be written in a peer's time is below the limit of disk, twice over:
// a log and its index.
func TestPlanFitsTheDisk(t *testing.T) {
	total := float64(full().maxBytes) // warm-up
	for _, s := range full().plan() {
		if s.spec.Kind == load.Latencies || s.spec.Kind == load.Produce || s.spec.Kind == load.FanOut {
			total += float64(s.spec.MaxBytes)
		}
	}
	if limit := full().disk; total > limit*.7 {
		t.Errorf("a peer may write %.1f GB of values, and have %.0f GB on the disk", total/1e9, limit/1e9)
	}
}

// Every aim is measured by the plan.
func TestPlanMeasuresTheAims(t *testing.T) {
	run := &result.Run{Rounds: 1}
	for _, id := range []string{peer.Queen, peer.KafkaTLS, peer.KafkaSync, peer.KafkaOpen, peer.Bare} {
		run.Peers = append(run.Peers, result.Peer{ID: id, Title: peer.Title(id)})
		for _, s := range full().plan() {
			for _, w := range s.workloads(false) {
				values := map[string]float64{}
				for _, name := range w.Wants[id] {
					values[name] = 1
				}
				run.Samples = append(run.Samples, result.Sample{Round: 1, Peer: id, Workload: w.ID, Values: values})
			}
		}
	}
	for _, a := range run.Aims() {
		if a.Reached == "" {
			t.Errorf("%s, %s: %s", a.Measure, a.Aim, a.Value)
		}
	}
}

func TestChoose(t *testing.T) {
	ids := func(only string) string {
		var all []string
		for _, s := range choose(full().plan(), only) {
			all = append(all, s.id)
		}
		return strings.Join(all, " ")
	}
	for only, want := range map[string]string{
		"zstd":         "1KB-zstd",
		"login,topics": "login-warm login-cold 10-topics 100-topics",
		"half,idle-":   "idle-connections 1KB-none latency-half idle-consumers", // what it is half of, in its place
	} {
		if got := ids(only); got != want {
			t.Errorf("%s: %s, want %s", only, got, want)
		}
	}
}

// used counts what is on the disk, not how long a file says it is: indexes of
// Apache Kafka are long and empty.
func TestUsedCountsBlocks(t *testing.T) {
	dir := t.TempDir()
	sparse(t, dir, 1<<30)
	if got, err := used(dir); err != nil || got > 1<<20 {
		t.Errorf("an empty file of 1 GiB takes %d bytes: %v", got, err)
	}
}

func sparse(t *testing.T, dir string, size int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}
