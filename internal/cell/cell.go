// Package cell is the embedded cell: a Queen cell in one process with its data
// in one folder. It answers the HTTP contract that a gateway speaks to any
// cell (cell-http), tenants and plans included, for demos, development, tests
// and one-machine installs.
package cell

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

// logFolder is where the records are, inside the data folder.
const logFolder = "log"

// Config says where a cell keeps its data and how it is reached. Only Dir is
// required.
type Config struct {
	Dir    string           // data folder; created when it is not there
	Clock  func() time.Time // nil: the wall clock
	Logger *zap.Logger      // nil: silent

	// SharedHosts are the host names that stand for no cluster, so that the
	// key decides (cell-http §2.4). Empty: every host must name a cluster.
	SharedHosts []string
	// DefaultCluster is the slug unknown hosts stand for; empty: none.
	DefaultCluster string
	// MaxBodyBytes caps a request body; 0: 16 MiB.
	MaxBodyBytes int64
}

// Cell is an open cell. Close it when nothing serves from it any more.
type Cell struct {
	control *control.Store
	broker  *broker.Broker
	proxy   *proxy.Proxy
	log     *zap.Logger
}

// Open opens the data folder, or makes a new one. Only one process may have it
// open.
func Open(cfg Config) (*Cell, error) {
	if cfg.Dir == "" {
		return nil, errors.New("cell: Dir is required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	// The broker first: it is what keeps a second process out.
	b, err := broker.Open(broker.Config{Dir: filepath.Join(cfg.Dir, logFolder), Clock: cfg.Clock, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	c, err := assemble(cfg, b)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return c, nil
}

// assemble puts control and proxy in front of an open broker.
func assemble(cfg Config, b *broker.Broker) (*Cell, error) {
	store, err := control.Open(cfg.Dir, cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	front, err := proxy.New(proxy.Config{
		Control: store, Broker: b, Logger: cfg.Logger,
		SharedHosts: cfg.SharedHosts, DefaultCluster: cfg.DefaultCluster, MaxBodyBytes: cfg.MaxBodyBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	return &Cell{control: store, broker: b, proxy: front, log: cfg.Logger}, nil
}

// Control is where clusters and keys are made and revoked.
func (c *Cell) Control() *control.Store { return c.control }

// Handler answers the cell's HTTP contract.
func (c *Cell) Handler() http.Handler { return c.proxy }

// Requests are the counts of requests by route.
func (c *Cell) Requests() *proxy.Counters { return c.proxy.Counters() }

// Close ends parked polls and closes the data folder. Requests still running
// are answered 503; call it when Serve has returned.
func (c *Cell) Close() error {
	c.proxy.Drain()
	return c.broker.Close()
}
