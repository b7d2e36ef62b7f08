package rig

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/ports"
	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/trace"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sasl"
)

// anyPort is where a service listens that is not started again.
const anyPort = "127.0.0.1:0"

// service is a part of the system that runs until it is ended.
type service struct {
	stop context.CancelFunc
	done chan error
}

func startService(serve func(context.Context) error) *service {
	ctx, stop := context.WithCancel(context.Background())
	s := &service{stop: stop, done: make(chan error, 1)}
	go func() { s.done <- serve(ctx) }()
	return s
}

// end waits for the end; a service that does not run has ended.
func (s *service) end() error {
	if s == nil {
		return nil
	}
	s.stop()
	return <-s.done
}

// StartCell opens the cell on its folder, at the address it had before.
func (r *Rig) StartCell(tb testing.TB) {
	tb.Helper()
	c, err := cell.Open(cell.Config{
		Dir: filepath.Join(r.opts.Dir, "cell"), Logger: r.opts.Log, Clock: r.opts.Clock, SharedHosts: []string{"127.0.0.1", Host},
	})
	check(tb, err)
	ln := listen(tb, r.cellAt)
	r.Cell, r.CellURL = c, "http://"+r.cellAt.Addr()
	r.cellRun = startService(func(ctx context.Context) error { return errors.Join(c.Serve(ctx, ln), c.Close()) })
}

// StopCell ends the cell: running requests are answered, then its address is
// dead and its folder closed.
func (r *Rig) StopCell(tb testing.TB) {
	tb.Helper()
	check(tb, r.cellRun.end())
	r.cellRun = nil
}

// StartGateway starts a gateway that knows nothing of an earlier one, at the
// address that one had.
func (r *Rig) StartGateway(tb testing.TB) {
	tb.Helper()
	ln := listen(tb, r.gatewayAt)
	cfg := r.configure(tb, r.gatewayAt.Number())
	r.Addr = net.JoinHostPort(Host, strconv.Itoa(r.gatewayAt.Number())) // which is not what a lane's clients are told
	r.Gateway, r.gatewayRun = r.serve(tb, cfg, ln)
}

// serve starts a gateway.
func (r *Rig) serve(tb testing.TB, cfg config.Config, ln net.Listener) (*edge.Server, *service) {
	tb.Helper()
	client, err := proxyclient.New(proxyclient.Config{URL: cfg.URL, ConnectTimeout: Patience / 2, CallTimeout: Patience / 2})
	check(tb, err)
	certificates, err := edge.OpenTLS(cfg, nil, r.opts.Log)
	check(tb, err)
	auditLog, traces := r.openAudit(tb, cfg), r.openTraces(tb, cfg)
	server := edge.New(edge.Options{Config: cfg, Cell: client, Audit: auditLog, Traces: traces, TLS: certificates, Log: r.opts.Log, Clock: r.opts.Clock})
	return server, startService(func(ctx context.Context) error {
		defer client.Close()
		err := server.Serve(ctx, ln)
		if auditLog != nil {
			err = errors.Join(err, auditLog.Close())
		}
		if traces != nil {
			err = errors.Join(err, traces.Close())
		}
		return err
	})
}

// StopGateway drains the gateway; its address is dead afterwards.
func (r *Rig) StopGateway(tb testing.TB) {
	tb.Helper()
	check(tb, r.gatewayRun.end())
	r.gatewayRun = nil
}

// configure is the gateway's configuration for the port it listens on.
func (r *Rig) configure(tb testing.TB, port int) config.Config {
	tb.Helper()
	cfg := config.Defaults()
	cfg.URL = r.CellURL
	if r.opts.CellAt != nil {
		cfg.URL = r.opts.CellAt(r.CellURL)
	}
	cfg.Advertised = config.Addr{Host: Host, Port: int32(port)}
	if r.pair != "" {
		cfg.TLSCert, cfg.TLSKey = r.pair+".crt", r.pair+".key"
	}
	cfg.SASL = []sasl.Mechanism{sasl.Plain}
	cfg.DefaultPartitions = 4
	// Deadlines that a test does not ask for must not meet it on a busy machine.
	cfg.LoginTimeout, cfg.Limits.TLSHandshake, cfg.Limits.ProxyHeader = Patience/2, Patience/2, Patience/2
	if r.opts.OwnKey != "" {
		cfg.SASL, cfg.Token = nil, r.Secret(r.opts.OwnKey)
	}
	if cfg.Cluster.NodeID = r.opts.Node; r.opts.Node != 0 {
		cfg.Cluster.Heartbeat, cfg.Cluster.TTL = NodeHeartbeat, NodeTTL
		cfg.Token = r.Secret(r.opts.Registry)
	}
	if r.opts.Config != nil {
		r.opts.Config(&cfg)
	}
	check(tb, cfg.Validate())
	return cfg
}

// openAudit opens the audit log, if the configuration has one.
func (r *Rig) openAudit(tb testing.TB, cfg config.Config) *audit.Log {
	tb.Helper()
	if cfg.AuditLog == "" {
		return nil
	}
	l, err := audit.Open(cfg.AuditLog, nil, time.Now, r.opts.Log)
	check(tb, err)
	return l
}

// openTraces makes the tracer, if the configuration has one.
func (r *Rig) openTraces(tb testing.TB, cfg config.Config) *trace.Tracer {
	tb.Helper()
	if cfg.OTLPEndpoint == "" {
		return nil
	}
	t, err := trace.New(trace.Config{Endpoint: cfg.OTLPEndpoint, Ratio: cfg.OTLPRatio, Log: r.opts.Log})
	check(tb, err)
	return t
}

// keepPort keeps a port until the test has ended.
func keepPort(tb testing.TB) *ports.Port {
	tb.Helper()
	p, err := ports.Keep()
	check(tb, err)
	tb.Cleanup(func() { check(tb, p.Close()) })
	return p
}

// listen listens on a port where nobody does.
func listen(tb testing.TB, p *ports.Port) net.Listener {
	tb.Helper()
	ln, err := p.Listen()
	check(tb, err)
	return ln
}
