//go:build !race

package main

import (
	"context"
	"os"
	"testing"
	"time"
)

// A producer keeps its order and writes nothing twice through a lost answer and
// through gateways that are killed. QE_FULL=1 takes every client through
// everything. What runs here are processes, in which the race detector sees
// nothing.
func TestFaults(t *testing.T) {
	o := options{clients: "franz-go", faults: "lost-answer,gateway-kill", rounds: 2, records: 3000}
	if os.Getenv("QE_FULL") == "1" {
		o = options{full: true}
	}
	take(t, o)
}

// Records and offsets commit together, once, through the same and a zombie. The
// patches of compat/mutants name these tests.
func TestTransactions(t *testing.T) {
	if os.Getenv("QE_FULL") == "1" {
		take(t, options{txn: true, full: true})
		return
	}
	for _, faults := range []string{"lost-answer", "gateway-kill@end", "gateway-kill@answer", "zombie"} {
		t.Run(faults, func(t *testing.T) {
			take(t, options{txn: true, clients: "franz-go", faults: faults, rounds: 2})
		})
	}
}

func take(t *testing.T, o options) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts processes")
	}
	o.dir = t.TempDir()
	o.fill()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Minute)
	defer cancel()
	failed, err := run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if failed {
		t.Error("see above")
	}
}
