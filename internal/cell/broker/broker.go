package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/spare"
	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Config says where a broker keeps its data. Only Dir is required.
type Config struct {
	Dir          string
	FS           vfs.FS           // default: the disk
	Clock        func() time.Time // append times; default time.Now
	ReserveBytes int64            // free space below which writes answer ErrStorageFull; default and least 256 MiB
	SegmentBytes int64            // size of a log file; default 64 MiB
	Logger       *zap.Logger

	MaxTxnKVOps       int           // of one transaction; default 64 (the contract's), at most 1,024
	RetentionInterval time.Duration // between passes that expire records, keys and deduplication; default 10 s
}

// DefaultRetentionInterval is Config.RetentionInterval when that is 0.
const DefaultRetentionInterval = 10 * time.Second

func (c Config) checked() (Config, error) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.MaxTxnKVOps == 0 {
		c.MaxTxnKVOps = DefaultTxnKVOps
	}
	if c.MaxTxnKVOps < DefaultTxnKVOps || c.MaxTxnKVOps > LargestTxnKVOps {
		return c, fmt.Errorf("MaxTxnKVOps is %d, it must be from %d to %d", c.MaxTxnKVOps, DefaultTxnKVOps, LargestTxnKVOps)
	}
	if c.RetentionInterval == 0 {
		c.RetentionInterval = DefaultRetentionInterval
	}
	if c.RetentionInterval < 0 {
		return c, fmt.Errorf("RetentionInterval is %v, it must be positive", c.RetentionInterval)
	}
	return c, nil
}

// Broker is an open data folder. See the list of its methods in api.go.
type Broker struct {
	cfg     Config
	clock   func() time.Time
	latest  atomic.Int64 // see now
	logger  *zap.Logger
	pushes  spare.List[push] // that are on the disk
	store   *store.Store
	machine *machine // its fields belong to the store's writer, see machine
	catalog catalog

	closing chan struct{} // closed by Close: parked fetches end
	purges  chan struct{} // see tidy
	passes  chan chan error
	tidied  sync.WaitGroup

	mu      sync.Mutex // guards closed and that calls only grows before it is set
	closed  bool
	calls   sync.WaitGroup // reads in progress
	closeMu sync.Once
	err     error // of Close
}

// Open opens the data folder, making it when it is missing. One process at a
// time has a folder open.
func Open(cfg Config) (*Broker, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		cfg: cfg, clock: cfg.Clock, logger: cfg.Logger,
		closing: make(chan struct{}), purges: make(chan struct{}, 1), passes: make(chan chan error),
	}
	b.catalog.tenants = make(map[Tenant]map[string]*queue)
	b.catalog.usage = make(map[Tenant]KVUsage)
	b.catalog.ids = make(map[PartitionID]*partition)
	b.machine = newMachine(&b.catalog)
	b.store, err = store.Open(store.Config{
		Dir: cfg.Dir, FS: cfg.FS, SegmentBytes: cfg.SegmentBytes, ReserveBytes: cfg.ReserveBytes, Logger: b.logger,
	}, b.machine)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Dir, err)
	}
	b.machine.reopening = false
	b.tidied.Add(1)
	go b.tidy()
	return b, nil
}

// Close ends parked fetches, waits for calls in progress and closes the folder.
// What was answered is on disk either way.
func (b *Broker) Close() error {
	b.closeMu.Do(b.shutDown)
	return b.err
}

func (b *Broker) shutDown() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	close(b.closing)
	b.calls.Wait()
	b.tidied.Wait()
	b.err = b.store.Close()
}

// enter holds Close back until leave.
func (b *Broker) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	b.calls.Add(1)
	return nil
}

func (b *Broker) leave() { b.calls.Done() }

// do hands a command to the writer.
func (b *Broker) do(ctx context.Context, c *store.Command) error {
	switch err := b.store.Do(ctx, c); {
	case errors.Is(err, store.ErrFull):
		return ErrStorageFull
	case errors.Is(err, store.ErrClosed):
		return ErrClosed
	default:
		return err
	}
}
