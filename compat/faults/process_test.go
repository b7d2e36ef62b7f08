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
	take(t, options{clients: "franz-go", faults: "lost-answer,gateway-kill", rounds: 2, records: 3000}, options{full: true})
}

// Records and offsets commit together, once, through the same and a zombie.
func TestTransactions(t *testing.T) {
	take(t, options{txn: true, clients: "franz-go", faults: "lost-answer,gateway-kill@answer,gateway-kill@end,zombie", rounds: 2}, options{txn: true, full: true})
}

func take(t *testing.T, o, full options) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts processes")
	}
	if os.Getenv("QE_FULL") == "1" {
		o = full
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
