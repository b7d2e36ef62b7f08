package offsets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Bounds of one call (cell-http §4.7, §4.8).
const (
	maxWrites     = 256     // operations
	maxWriteBytes = 1 << 20 // keys and values, as they are sent
	maxReads      = 128     // keys, and rows of a page
	maxPages      = 4096
)

const (
	// defaultPatience is how long a commit waits its turn, and again how long it
	// may write: clients give a request up after 30 s.
	defaultPatience = 15 * time.Second
	// maxIndexed bounds the groups of which is remembered that they are in the
	// index.
	maxIndexed = 10_000
)

var (
	// ErrUnread is an answer that says of a key neither what it holds nor that it
	// is absent. It must never become "no offset".
	ErrUnread = errors.New("the cell did not say all that it was asked about committed offsets")
	// ErrFull is a commit for which there is no room in the process.
	ErrFull = errors.New("too many commits wait")

	errNotApplied = errors.New("an unconditional write was not applied")
	errMisaligned = errors.New("the cell's answer is not one result for each operation")
	errAbandoned  = errors.New("the call that carried this commit did not come to its end")
)

// Cell is what is asked of a cell.
type Cell interface {
	KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error)
}

// Config are the settings.
type Config struct {
	Cell     Cell
	Fence    *Fence           // nil: there is no other gateway that writes to groups
	Waiting  *tenancy.Ceiling // offsets that wait to be written, of the process; nil: no bound
	Patience time.Duration    // how long a commit waits its turn, and how long it may write; 0: 15 s
	Clock    func() time.Time // nil: time.Now
	Log      *zap.Logger      // nil: none

	Committed func(took time.Duration, err error) // told of every commit, when it is over; nil: nobody
}

// Store keeps the committed offsets of all tenants. It is safe for concurrent
// use.
type Store struct {
	cfg     Config
	indexed *tenancy.LRU[string, string] // protocol types of groups that are in the index
	fences  *tenancy.LRU[string, int64]  // versions of fences

	fencesLost atomic.Int64

	mu    sync.Mutex // guards lines, and the users of each; never held over a call
	lines map[tenancy.Key[string]]*line
}

// New makes a store.
func New(cfg Config) *Store {
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Committed == nil {
		cfg.Committed = func(time.Duration, error) {}
	}
	return &Store{
		cfg:     cfg,
		indexed: tenancy.NewLRU[string, string](maxIndexed),
		fences:  tenancy.NewLRU[string, int64](maxFences),
		lines:   make(map[tenancy.Key[string]]*line),
	}
}

// enter finds or makes a group's line, which stays while it has users: an idle
// group takes no memory.
func (st *Store) enter(k tenancy.Key[string]) *line {
	st.mu.Lock()
	defer st.mu.Unlock()
	l := st.lines[k]
	if l == nil {
		l = &line{most: st.writes()}
		st.lines[k] = l
	}
	l.users++
	return l
}

func (st *Store) leave(k tenancy.Key[string], l *line) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(st.lines, k)
	}
}

// ask makes one call and checks that every operation has its result.
func (st *Store) ask(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	res, err := st.cfg.Cell.KV(ctx, s, ops)
	if err != nil {
		return nil, err
	}
	if len(res) != len(ops) {
		return nil, errMisaligned
	}
	return res, nil
}
