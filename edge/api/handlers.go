package api

import (
	"context"
	"net/netip"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/session"
	"github.com/queen-mq/queen-edge/edge/slab"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Cell is what the handlers ask of a cell beside what the catalog asks.
type Cell interface {
	Push(ctx context.Context, s tenancy.Scope, b *proxyclient.PushBody, from, to proxyclient.Mark, dst []proxyclient.PushResult) ([]proxyclient.PushResult, error)
	Fetch(ctx context.Context, s tenancy.Scope, entries []proxyclient.FetchEntry, maxWait time.Duration, minBytes int,
		sink func(entry int, r *batch.Record) error, dst []proxyclient.FetchResult) ([]proxyclient.FetchResult, error)
	TxnOps
	OffsetsForTimes(ctx context.Context, s tenancy.Scope, q []proxyclient.TimeQuery) ([]proxyclient.TimeAnswer, error)
	Sizes(ctx context.Context, s tenancy.Scope, queue string) ([]proxyclient.PartitionSize, error)
}

// Verify proves a claim; it is a tenancy.Verifier.
type Verify interface {
	VerifyFrom(ctx context.Context, c tenancy.Claim, from netip.Prefix) (tenancy.Proof[[]proxyclient.Queue], error)
	Proven(ctx context.Context, c tenancy.Claim) bool
}

// Config is what the handlers work with.
type Config struct {
	Cell      Cell
	Catalog   *catalog.Catalog
	Groups    *group.Coordinator
	Cluster   *cluster.Node // of several gateways; nil: this one is alone
	Offsets   *offsets.Store
	Txns      *txn.Coordinator
	Verify    Verify
	Sessions  *session.Store   // fetch sessions; nil: there are none
	Producers *tenancy.Ceiling // producer states of the process
	Inflated  *tenancy.Ceiling // bytes of decompressed records and push bodies of the process; nil: no bound
	Answers   *tenancy.Ceiling // bytes of answers under construction of the process; nil: no bound

	TxnMaxTimeout time.Duration // longest transaction timeout
	SessionLife   time.Duration // of a login whose credential names no end; 0: none

	RoomWait time.Duration // how long a Produce waits for room below Inflated

	Host string // advertised address; empty: the name of each client's lane
	Port int32

	Coalesce           int // Produce frames merged into one push
	DecompressedBytes  int // of one Produce request
	ProduceRecords     int // of one Produce request
	FetchResponse      int // bytes of one Fetch response
	MetadataNames      int // names answered by one Metadata
	MetadataPartitions int // partitions in one all-topics Metadata

	Admin Admin // of topics and their configs

	// Served is told of every request when its answer has been made, of answer bytes
	// with their length, or when it was found that there is none. It must not block;
	// nil: nobody is told.
	Served func(r Request, o Outcome, answer int)

	Clock func() time.Time // nil: time.Now
	Log   *zap.Logger
}

// Admin is what the administration of topics works with.
type Admin struct {
	Creates   int // topics made, or deleted, by one request
	Alters    int // topics whose configs one request alters
	Describes int // resources described by one request
	SizeCalls int // topics whose sizes one request asks the cell for

	// What the broker's configs show.
	MaxPartitions     int32
	DefaultPartitions int32
	Group             GroupConfig
	TxnMaxTimeout     time.Duration
	Idle              time.Duration
}

// GroupConfig is what the broker's configs show of groups.
type GroupConfig struct{ JoinDelay, MinSession, MaxSession time.Duration }

// Handlers answer requests. They are safe for concurrent use; a Conn is not.
type Handlers struct {
	cfg      Config
	table    []Row
	windows  []kmsg.ApiVersionsResponseApiKey // of the table
	decoders batch.Pool
	memory   slab.Pool // of answers
	sizes    *sizes
	sampled  *zap.Logger // for what clients cause: each line once a minute
	Stats    Stats
}

// New makes the handlers.
func New(cfg Config) *Handlers {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	table := planned(Table())
	return &Handlers{cfg: cfg, table: table, windows: windows(table), sizes: newSizes(cfg.Cell, cfg.Clock), sampled: Sampled(cfg.Log)}
}

const (
	// nodeID is the broker's id of a gateway that is alone: every leader,
	// coordinator and controller.
	nodeID = 0
	// clusterID is what clients are told (kafka-surface §6.1).
	clusterID = "queen"
	// noEpoch is the leader epoch of everything (B1).
	noEpoch = -1
)
