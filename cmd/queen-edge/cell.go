package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/internal/cell"
)

// cellOptions are the flags of "queen-edge cell".
type cellOptions struct {
	dir         string
	addr        string
	sharedHosts []string
	bootstrap   string
	enforce     bool
	reconcile   time.Duration
	verbose     bool
}

// newCellCommand is "queen-edge cell": the embedded cell by itself, for a
// gateway in another process.
func newCellCommand() *cobra.Command {
	var o cellOptions
	cmd := &cobra.Command{
		Use:   "cell --data DIR",
		Short: "Run the embedded cell: a Queen cell in one process, with its data in one folder",
		Long: `Run the embedded cell: a Queen cell in one process, with its data in one folder.

It answers the HTTP contract a gateway speaks to any cell; point QUEEN_URL at it.
Ends when it gets SIGTERM or SIGINT, after the running requests.

The subcommands administrate it, while it runs and while it does not.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runCell(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	flags := cmd.Flags()
	cmd.PersistentFlags().StringVar(&o.dir, "data", "", "data folder; created when it is not there")
	flags.StringVar(&o.addr, "addr", "127.0.0.1:6711", "address to listen on; port 0 takes a free one")
	flags.StringArrayVar(&o.sharedHosts, "shared-host", []string{"127.0.0.1", "localhost"},
		"host name at which the key alone names the cluster; repeatable")
	flags.StringVar(&o.bootstrap, "bootstrap", "",
		"in a folder without clusters, create this one and print a key of it, once")
	flags.BoolVar(&o.enforce, "enforce", true,
		"refuse what is over a plan's rates, queues, partitions or retention; false only logs it")
	flags.DurationVar(&o.reconcile, "reconcile", cell.DefaultReconcileInterval, "how often stored bytes are held against the plans")
	flags.BoolVar(&o.verbose, "verbose", false, "log every request")
	if err := cmd.MarkPersistentFlagRequired("data"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.AddCommand(newCellAdminCommands(&o.dir)...)
	return cmd
}

// runCell serves until ctx ends.
func runCell(ctx context.Context, stdout, stderr io.Writer, o cellOptions) (err error) {
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("cell: %w", err)
	}
	defer ln.Close() //nolint:errcheck // Serve closes it; this is for the ways out before
	level := "info"
	if o.verbose {
		level = "debug"
	}
	c, err := cell.Open(cell.Config{
		Dir: o.dir, Logger: newLogger(stderr, level, false), SharedHosts: o.sharedHosts,
		Shadow: !o.enforce, ReconcileInterval: o.reconcile, Admin: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := bootstrapCell(c, stdout, o.bootstrap); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "cell: listening on http://%s\n", ln.Addr()); err != nil {
		return err
	}
	return c.Serve(ctx, ln)
}

// bootstrapCell makes the first cluster and shows its key this one time.
func bootstrapCell(c *cell.Cell, stdout io.Writer, slug string) error {
	if slug == "" {
		return nil
	}
	key, created, err := c.Control().Bootstrap(slug)
	if err != nil || !created {
		return err
	}
	_, err = fmt.Fprintf(stdout, "cell: created cluster %s\ncell: its key, shown this once: %s\n", slug, key)
	return err
}
