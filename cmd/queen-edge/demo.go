package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tlsconf"
)

const (
	demoAddr       = "127.0.0.1:9092"
	demoPartitions = 4
	// demoHost is what clients dial. A name, not 127.0.0.1: some clients check
	// certificates by name only.
	demoHost = "localhost"
)

type demoOptions struct {
	data    string
	addr    string
	envFile string
	once    bool
	log     string
	wait    time.Duration // of an empty group for more members
}

func newDemoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a cell and a gateway on this machine, with two tenants to try",
		Long: "Run an embedded cell and a gateway in one process on loopback, with a development\n" +
			"CA and the two clusters acme and globex, and print client settings to paste.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "", "folder that keeps the cell's data and the CA (default: a temporary one, removed at the end)")
	f.StringVar(&o.addr, "addr", "", "loopback host:port of the gateway; port 0 takes a free one (default "+demoAddr+", with --once a free one)")
	f.StringVar(&o.envFile, "env-file", "", "write address, CA and tokens to this file (0600) once clients can connect")
	f.BoolVar(&o.once, "once", false, "let both tenants produce and consume once, print a table and exit")
	f.DurationVar(&o.wait, "group-join-delay", config.Defaults().Group.JoinDelay, "how long an empty group waits for more members")
	f.StringVar(&o.log, "log-level", "warn", "debug, info, warn, error or off")
	return cmd
}

// demo runs until ctx ends, or, with --once, until the round trip is over.
func demo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) (err error) {
	dir, cleanup, err := demoFolder(o.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	d, err := openDemo(dir, demoListen(o), o.wait, newLogger(stderr, o.log, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go d.serve(ctx, served)
	err = d.present(ctx, o, stdout)
	if err == nil && !o.once {
		select {
		case err = <-served:
			return err
		case <-ctx.Done():
		}
	}
	stop()
	return errors.Join(err, <-served)
}

// present shows the demo: one round trip, or the settings to paste.
func (d *demoRun) present(ctx context.Context, o demoOptions, stdout io.Writer) error {
	if o.envFile != "" {
		if err := d.writeEnv(o.envFile); err != nil {
			return err
		}
	}
	if o.once {
		return d.once(ctx, stdout)
	}
	return d.printSettings(stdout)
}

func demoListen(o demoOptions) string {
	switch {
	case o.addr != "":
		return o.addr
	case o.once:
		return "127.0.0.1:0"
	}
	return demoAddr
}

func demoFolder(data string) (dir string, cleanup func() error, err error) {
	if data != "" {
		return data, func() error { return nil }, os.MkdirAll(data, 0o700)
	}
	dir, err = os.MkdirTemp("", "queen-edge-demo-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// demoRun is a demo that listens.
type demoRun struct {
	cell      *cell.Cell
	cellDir   string // whose admin.sock takes "queen-edge cell" commands
	cellLn    net.Listener
	client    *proxyclient.Client
	gateway   *edge.Server
	gatewayLn net.Listener
	port      int
	caFile    string
	roots     *x509.CertPool
	tokens    []demoToken
}

func openDemo(dir, addr string, wait time.Duration, log *zap.Logger) (d *demoRun, err error) {
	d = &demoRun{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if err := d.listen(addr); err != nil {
		return d, err
	}
	if d.cellDir, err = filepath.Abs(filepath.Join(dir, "cell")); err != nil {
		return d, err
	}
	d.cell, err = cell.Open(cell.Config{
		Dir: d.cellDir, Logger: log, SharedHosts: []string{"127.0.0.1", demoHost}, Admin: true,
	})
	if err != nil {
		return d, err
	}
	if d.tokens, err = makeTokens(d.cell.Control()); err != nil {
		return d, err
	}
	return d, d.openGateway(dir, wait, log)
}

// listen opens both listeners. Only loopback: the CA's key and the tokens are
// for playing.
func (d *demoRun) listen(addr string) (err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--addr %q: %w", addr, err)
	}
	if host == "" || host == demoHost {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--addr %q: the demo listens on loopback only", addr)
	}
	if d.gatewayLn, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil {
		return err
	}
	d.port = d.gatewayLn.Addr().(*net.TCPAddr).Port
	d.cellLn, err = net.Listen("tcp", "127.0.0.1:0")
	return err
}

func (d *demoRun) openGateway(dir string, wait time.Duration, log *zap.Logger) error {
	ca, err := tlsconf.OpenDevCA(filepath.Join(dir, "ca"))
	if err != nil {
		return err
	}
	d.caFile, err = filepath.Abs(filepath.Join(dir, "ca", "ca.crt"))
	if err != nil {
		return err
	}
	d.roots = ca.Pool()
	pair, err := ca.IssuePair([]string{demoHost, "127.0.0.1", "::1", "acme.localhost", "globex.localhost"})
	if err != nil {
		return err
	}
	cfg := config.Defaults()
	cfg.URL = "http://" + d.cellLn.Addr().String()
	cfg.Advertised = config.Addr{Host: demoHost, Port: int32(d.port)}
	cfg.SASL = []sasl.Mechanism{sasl.Plain}
	cfg.ForwardSNIHost = true
	cfg.DefaultPartitions = demoPartitions
	cfg.Group.JoinDelay = max(wait, 0)
	if d.client, err = proxyclient.New(proxyclient.Config{URL: cfg.URL}); err != nil {
		return err
	}
	certificates, err := edge.OpenTLS(cfg, pair, log)
	if err != nil {
		return err
	}
	d.gateway = edge.New(edge.Options{Config: cfg, Cell: d.client, TLS: certificates, Log: log})
	return nil
}

// serve runs cell and gateway; the cell outlives the gateway's drain.
func (d *demoRun) serve(ctx context.Context, out chan<- error) {
	cellCtx, stopCell := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCell()
	cellDone := make(chan error, 1)
	go d.serveCell(cellCtx, cellDone)
	err := d.gateway.Serve(ctx, d.gatewayLn)
	stopCell()
	out <- errors.Join(err, <-cellDone)
}

func (d *demoRun) serveCell(ctx context.Context, out chan<- error) {
	out <- d.cell.Serve(ctx, d.cellLn)
}

func (d *demoRun) close() error {
	var errs []error
	for _, ln := range []net.Listener{d.gatewayLn, d.cellLn} {
		if ln != nil {
			if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if d.client != nil {
		d.client.Close()
	}
	if d.cell != nil {
		errs = append(errs, d.cell.Close())
	}
	return errors.Join(errs...)
}

func (d *demoRun) bootstrap() string { return net.JoinHostPort(demoHost, strconv.Itoa(d.port)) }
