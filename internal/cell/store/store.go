package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// Errors of a store.
var (
	ErrFull     = errors.New("free space is below the reserve")
	ErrClosed   = errors.New("the store is closed")
	ErrPoisoned = errors.New("a write to the log failed; the store takes no more writes until it is opened again")
	ErrLocked   = errors.New("the data folder is in use by another process")
	ErrGone     = errors.New("the segment is not in use any more") // look the row up again
)

// Defaults and limits of Config.
const (
	DefaultSegmentBytes = 64 << 20
	MinSegmentBytes     = 16 << 10
	MinReserveBytes     = 256 << 20

	// flushEvery bounds the log that a crash makes the next opening read.
	flushEvery = 256 << 20
)

// Config says where a store lives. Only Dir is required.
type Config struct {
	Dir          string
	FS           vfs.FS // default: the disk
	SegmentBytes int64  // of a log file; default 64 MiB, at least 16 KiB
	ReserveBytes int64  // free space writes leave; default and least 256 MiB
	Logger       *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	c.SegmentBytes = max(c.SegmentBytes, MinSegmentBytes)
	c.ReserveBytes = max(c.ReserveBytes, MinReserveBytes)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Machine is what the entries mean. Its methods are called by one goroutine at
// a time, in log order: by Open for Load and what is applied again, then by the
// writer, which also runs every Command.Plan.
type Machine interface {
	// Load reads what the index holds, before anything is applied.
	Load(*Store) error
	// Apply turns a durable entry into rows. It must not depend on anything
	// but the entries before: after a crash it runs again for those the index
	// had not kept.
	Apply(*Entry, *Batch) error
	// Publish makes what was applied since the last call visible; its rows
	// can be read now.
	Publish()
}

// Store is an open data folder. It is safe for concurrent use.
type Store struct {
	cfg     Config
	machine Machine
	lock    io.Closer
	index   *pebble.DB
	log     *log

	commands chan *Command
	stop     chan struct{} // closed by Close
	stopOnce sync.Once
	written  chan struct{} // closed when the writer has ended
	kick     chan struct{} // there may be work for the reclaimer
	sparse   chan struct{} // see Sparse
	reclaims sync.WaitGroup
	closeErr error

	poison    atomic.Pointer[error]
	syncs     atomic.Int64
	unflushed atomic.Int64 // bytes of log applied since the index was flushed last

	// Owned by the writer.
	group  group
	atSeen position
}

// Open locks and opens a folder, and applies what the index has lost. machine
// must not call Do before Open has returned.
func Open(cfg Config, machine Machine) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{
		cfg: cfg, machine: machine,
		commands: make(chan *Command, maxGroup),
		stop:     make(chan struct{}), written: make(chan struct{}),
		kick: make(chan struct{}, 1), sparse: make(chan struct{}, 1),
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.reclaims.Add(1)
	go s.write()
	go s.reclaim()
	s.wake(s.kick)
	s.wake(s.sparse)
	return s, nil
}

func (s *Store) open() error {
	fs, dir := s.cfg.FS, s.cfg.Dir
	if dir == "" {
		return errors.New("no data folder is named")
	}
	if err := makeDir(fs, dir); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	lock, err := fs.Lock(fs.PathJoin(dir, "LOCK"))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
	}
	s.lock = lock
	logDir, indexDir := fs.PathJoin(dir, "log"), fs.PathJoin(dir, "index")
	for _, d := range []string{logDir, indexDir} {
		if err := makeDir(fs, d); err != nil {
			return fmt.Errorf("make the data folder: %w", err)
		}
	}
	if s.index, err = openIndex(fs, indexDir, s.cfg.Logger); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	if s.log, err = openLog(fs, logDir, s.cfg.SegmentBytes); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	s.group.init(s.index)
	return s.catchUp()
}

// Close ends the writer after the commands it has, flushes the index and
// unlocks the folder. Iterators and reads must have ended.
func (s *Store) Close() error {
	s.stopOnce.Do(s.shutDown)
	return s.closeErr
}

func (s *Store) shutDown() {
	close(s.stop)
	<-s.written
	s.reclaims.Wait()
	if s.failure() == nil {
		s.closeErr = s.index.Flush() // so that the next opening applies nothing
	}
	s.closeErr = errors.Join(s.closeErr, s.closeFiles())
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.log != nil {
		errs = append(errs, s.log.close())
	}
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Do hands a command to the writer and waits until it is durable and visible.
// When ctx ends first the command may still take place.
func (s *Store) Do(ctx context.Context, c *Command) error {
	if err := s.failure(); err != nil {
		return err
	}
	c.done = make(chan error, 1)
	select {
	case <-s.stop:
		return ErrClosed
	default:
	}
	select {
	case s.commands <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return ErrClosed
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.written:
	}
	select { // the writer may have answered with its last breath
	case err := <-c.done:
		return err
	default:
		return ErrClosed
	}
}

// Syncs is how many times the log was synced for a group.
func (s *Store) Syncs() int64 { return s.syncs.Load() }

// Waiting is how many commands wait for the writer.
func (s *Store) Waiting() int { return len(s.commands) }

// Files is how many log files are in use and how many wait to be used again.
func (s *Store) Files() (inUse, unused int) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return len(s.log.segments), len(s.log.free)
}

// Sparse signals that SparseSegments may have something new.
func (s *Store) Sparse() <-chan struct{} { return s.sparse }

// SparseSegments lists the segments of which less than half is live. Their
// live blobs should be written again.
func (s *Store) SparseSegments() []uint64 { return s.log.sparseSegments() }

func (s *Store) wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fail poisons the store with its first failure.
func (s *Store) fail(err error) error {
	err = fmt.Errorf("%w: %w", ErrPoisoned, err)
	if s.poison.CompareAndSwap(nil, &err) {
		s.cfg.Logger.Error("writing has stopped", zap.Error(err))
	}
	return *s.poison.Load()
}

func (s *Store) failure() error {
	if err := s.poison.Load(); err != nil {
		return *err
	}
	return nil
}
