// Package cell is the embedded cell: a Queen cell in one process with its data
// in one folder. It answers the HTTP contract that a gateway speaks to any
// cell (cell-http), tenants and plans included, for demos, development, tests
// and one-machine installs.
package cell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
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
	// UpstreamTimeout is how long the broker may take; 0: 35 s.
	UpstreamTimeout time.Duration

	// Shadow only logs what rates, registry and retention would refuse
	// (cell-http §5.4); without it they are enforced.
	Shadow bool
	// ReconcileInterval is between two measures of what clusters store;
	// 0: DefaultReconcileInterval.
	ReconcileInterval time.Duration
	// Plans is the plan table; nil: control.Plans.
	Plans []control.Plan

	// MaxTxnKVOps is how many KV operations one transaction may have; 0: the
	// most there can be. A cell that allows more than the contract's 64
	// announces it.
	MaxTxnKVOps int
	// RetentionInterval is between two passes that expire records; 0: 10 s.
	RetentionInterval time.Duration

	// Admin opens <Dir>/admin.sock, which answers while the cell serves.
	Admin bool
}

// DefaultReconcileInterval is how often a cluster's storage is measured
// (cell-http §5.5).
const DefaultReconcileInterval = time.Minute

// usageInterval is how often metering rows are written down (cell-http §5.6).
const usageInterval = 15 * time.Second

// Cell is an open cell. Close it when nothing serves from it any more.
type Cell struct {
	cfg     Config
	folder  io.Closer // the folder's lock
	control *control.Store
	broker  *broker.Broker
	proxy   *proxy.Proxy
	usage   usageFiles
	log     *zap.Logger
	admin   net.Listener // nil: none

	closing chan struct{} // ends keep
	kept    sync.WaitGroup
	closed  sync.Once
	ended   error // of Close
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
	if cfg.ReconcileInterval < 0 {
		return nil, fmt.Errorf("cell: ReconcileInterval %v is negative", cfg.ReconcileInterval)
	}
	cfg.MaxTxnKVOps = cmp.Or(cfg.MaxTxnKVOps, broker.LargestTxnKVOps)
	cfg.ReconcileInterval = cmp.Or(cfg.ReconcileInterval, DefaultReconcileInterval)
	if cfg.Plans == nil {
		cfg.Plans = control.Plans()
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	folder, err := lockFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	b, err := broker.Open(broker.Config{
		Dir: filepath.Join(cfg.Dir, logFolder), Clock: cfg.Clock, Logger: cfg.Logger,
		MaxTxnKVOps: cfg.MaxTxnKVOps, RetentionInterval: cfg.RetentionInterval,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cell: %w", err), folder.Close())
	}
	c, err := assemble(cfg, b)
	if err != nil {
		return nil, errors.Join(err, b.Close(), folder.Close())
	}
	c.folder = folder
	if cfg.Admin {
		c.openAdmin()
	}
	c.kept.Add(1)
	go c.keep()
	return c, nil
}

// lockFolder keeps every other process out of a data folder.
func lockFolder(dir string) (io.Closer, error) {
	lock, err := vfs.Default.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("cell: %s is in use by another process: %w", dir, err)
	}
	return lock, nil
}

// assemble puts control and proxy in front of an open broker.
func assemble(cfg Config, b *broker.Broker) (*Cell, error) {
	store, err := control.OpenWithPlans(cfg.Dir, cfg.Clock, cfg.Plans)
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	usage := usageFiles{dir: filepath.Join(cfg.Dir, usageFolder)}
	front, err := proxy.New(proxy.Config{
		Control: store, Broker: b, Logger: cfg.Logger, Clock: cfg.Clock, Usage: usage,
		SharedHosts: cfg.SharedHosts, DefaultCluster: cfg.DefaultCluster,
		MaxBodyBytes: cfg.MaxBodyBytes, UpstreamTimeout: cfg.UpstreamTimeout, Shadow: cfg.Shadow,
	})
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	return &Cell{
		cfg: cfg, control: store, broker: b, proxy: front, usage: usage, log: cfg.Logger,
		closing: make(chan struct{}),
	}, nil
}

// keep measures storage and writes metering rows down until the cell closes.
func (c *Cell) keep() {
	defer c.kept.Done()
	measure := time.NewTicker(c.cfg.ReconcileInterval)
	defer measure.Stop()
	write := time.NewTicker(usageInterval)
	defer write.Stop()
	var pruned time.Month
	for {
		select {
		case <-c.closing:
			return
		case <-measure.C:
			c.proxy.Reconcile()
		case <-write.C:
			if err := c.proxy.FlushUsage(false); err != nil {
				c.log.Error("metering rows could not be written; they are kept for the next time", zap.Error(err))
			}
			if now := c.cfg.Clock(); now.Month() != pruned {
				pruned = now.Month()
				if err := c.usage.prune(now); err != nil {
					c.log.Error("old metering rows could not be removed; next month they are tried again", zap.Error(err))
				}
			}
		}
	}
}

// Reconcile measures at once what clusters store, and blocks or releases their
// pushes.
func (c *Cell) Reconcile() { c.proxy.Reconcile() }

// Control is where clusters and keys are made and revoked.
func (c *Cell) Control() *control.Store { return c.control }

// Handler answers the cell's HTTP contract.
func (c *Cell) Handler() http.Handler { return c.proxy }

// Requests are the counts of requests by route.
func (c *Cell) Requests() *proxy.Counters { return c.proxy.Counters() }

// Close ends parked polls and closes the data folder. Requests still running
// are answered 503; call it when Serve has returned.
func (c *Cell) Close() error {
	c.closed.Do(c.shutDown)
	return c.ended
}

func (c *Cell) shutDown() {
	c.proxy.Drain()
	close(c.closing)
	c.kept.Wait()
	c.ended = errors.Join(c.closeAdmin(), c.proxy.FlushUsage(true), c.broker.Close(), c.folder.Close())
}
