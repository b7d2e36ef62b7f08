package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// spareDescriptors is what the process needs beside one descriptor per client:
// calls to the cell, log, listener.
const spareDescriptors = 600

// heapFloor is memory that is never touched, so that none is taken for it, and that
// the collector counts as alive. It runs whenever what is alive has doubled: where
// that is next to nothing, as in a gateway with few connections, it would run twenty
// times a second under logins alone.
const heapFloor = 4 << 20

func newServeCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway (the default command); it is configured by QUEEN_* variables",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), addr, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen on this host:port (port 0: any) and advertise it, instead of QUEEN_KAFKA_ADDR and QUEEN_KAFKA_ADVERTISED_ADDR")
	return cmd
}

// serve runs the gateway until ctx ends and its connections are drained.
func serve(ctx context.Context, addr string, stdout, stderr io.Writer) error {
	cfg, ln, err := configure(addr)
	if err != nil {
		return err
	}
	if ln != nil {
		defer ln.Close() //nolint:errcheck // Serve closes it; this is for the ways out before
	}
	log := newLogger(stderr, cfg.LogLevel, cfg.LogJSON)
	certificates, err := edge.OpenTLS(cfg, nil, log)
	if err != nil {
		return err
	}
	cell, err := proxyclient.New(proxyclient.Config{URL: cfg.URL})
	if err != nil {
		return fmt.Errorf("QUEEN_URL: %w", err)
	}
	defer cell.Close()
	if ln == nil {
		if ln, err = net.Listen("tcp", cfg.Addr); err != nil {
			return fmt.Errorf("cannot bind QUEEN_KAFKA_ADDR=%s: %w", cfg.Addr, err)
		}
	}
	announce(log, cfg, ln)
	auditLog, closeAudit, err := openAudit(cfg, stderr, log)
	if err != nil {
		return err
	}
	defer closeAudit()
	traces, closeTraces, err := openTraces(cfg, log)
	if err != nil {
		return err
	}
	defer closeTraces()
	idle := make([]byte, heapFloor)
	defer runtime.KeepAlive(idle)
	srv := edge.New(edge.Options{Config: cfg, Cell: cell, Audit: auditLog, Traces: traces, TLS: certificates, Log: log})
	closeSide, err := serveSide(srv, cfg, stdout, log)
	if err != nil {
		return err
	}
	defer closeSide()
	if _, err := fmt.Fprintf(stdout, "serve: listening on %s\n", ln.Addr()); err != nil {
		return err
	}
	return srv.Serve(ctx, ln)
}

// serveSide opens the listener for operators, if there is to be one. It outlives
// the other: while that drains, somebody must say that it does.
func serveSide(srv *edge.Server, cfg config.Config, stdout io.Writer, log *zap.Logger) (stop func(), err error) {
	if cfg.AdminAddr == "" {
		return func() {}, nil
	}
	ln, err := net.Listen("tcp", cfg.AdminAddr)
	if err != nil {
		return nil, fmt.Errorf("cannot bind QUEEN_KAFKA_ADMIN_ADDR=%s: %w", cfg.AdminAddr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go runSide(ctx, srv, ln, log, done)
	_, err = fmt.Fprintf(stdout, "serve: side listener on %s\n", ln.Addr())
	return func() { cancel(); <-done }, err
}

func runSide(ctx context.Context, srv *edge.Server, ln net.Listener, log *zap.Logger, done chan<- struct{}) {
	defer close(done)
	if err := srv.ServeSide(ctx, ln); err != nil {
		log.Error("the side listener has ended", zap.Error(err))
	}
}

// configure reads the environment; with an address of the command line the
// listener comes first, since its port may be any.
func configure(addr string) (config.Config, net.Listener, error) {
	if addr == "" {
		cfg, err := config.FromEnv()
		return cfg, nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("cannot bind --addr %s: %w", addr, err)
	}
	cfg, err := config.FromEnvBound(ln.Addr().String())
	if err != nil {
		_ = ln.Close()
		return cfg, nil, err
	}
	return cfg, ln, nil
}

// announce writes the boot line and the warnings that belong to every start.
func announce(log *zap.Logger, cfg config.Config, ln net.Listener) {
	log.Info("starting",
		zap.String("queen_url", cfg.URL), zap.Bool("authenticated", !cfg.Token.IsZero()),
		zap.Stringer("listen", ln.Addr()), zap.Stringer("advertised", cfg.Advertised),
		zap.Int32("default_partitions", cfg.DefaultPartitions), zap.Duration("group_join_delay", cfg.Group.JoinDelay),
		zap.Bool("tls", cfg.TLS()), zap.Bool("sasl", len(cfg.SASL) > 0), zap.Bool("forward_sni_host", cfg.ForwardSNIHost),
		zap.Strings("lanes", cfg.Lanes), zap.String("default_lane", cfg.DefaultLane),
		zap.Int32("node_id", cfg.Cluster.NodeID), zap.String("cluster", cfg.Cluster.ID()))
	for _, w := range cfg.Warnings() {
		log.Warn(w)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return
	}
	if need := uint64(cfg.MaxConnections) + spareDescriptors; limit.Cur < need {
		log.Warn("the limit of open files is below what the connection ceiling needs: raise it, or lower QUEEN_KAFKA_MAX_CONNECTIONS",
			zap.Uint64("limit", limit.Cur), zap.Uint64("needed", need), zap.Int("max_connections", cfg.MaxConnections))
	}
}
