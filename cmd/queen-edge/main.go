// Command queen-edge lets any Kafka client use a Queen Cloud cell with nothing
// but a tenant's token. This package is wiring and subcommands only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	var told *steps.Exit
	switch {
	case err == nil:
	case errors.As(err, &told):
		os.Exit(told.Code)
	default:
		fmt.Fprintf(os.Stderr, "FATAL: %v\n", err)
		os.Exit(1)
	}
}

// newRootCommand is the command line. Without a subcommand the gateway serves.
func newRootCommand() *cobra.Command {
	root := newServeCommand()
	root.Use = "queen-edge"
	root.Short = "Kafka clients on a Queen Cloud cell: a tenant needs only its token"
	root.SilenceUsage, root.SilenceErrors = true, true
	root.AddCommand(newServeCommand(), newCheckCommand(), newDoctorCommand(), newDemoCommand(), newCellCommand())
	return root
}
