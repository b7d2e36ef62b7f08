// Package mainly is what the programs under compat do alike: they end when they
// are told to, or when their time is over, and their exit code says whether all
// was well.
package mainly

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Run runs a program to its end. ok is that all it looked at was as it should
// be; an error is told under the program's name. Either way the exit code is 1.
// A deadline of 0 is none.
func Run(name string, deadline time.Duration, run func(ctx context.Context) (ok bool, err error)) {
	if !finish(name, deadline, run) {
		os.Exit(1)
	}
}

func finish(name string, deadline time.Duration, run func(ctx context.Context) (bool, error)) bool {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	return ok && err == nil
}
