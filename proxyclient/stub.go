package proxyclient

import (
	"context"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/tenancy"
)

type Queue struct {
	ID, Name   string
	Partitions int
}

func (c *Client) ListQueuesAs(ctx context.Context, claim tenancy.Claim) ([]Queue, error) { panic(0) }
func (c *Client) Identify(ctx context.Context, claim tenancy.Claim) (tenancy.Identity, error) {
	panic(0)
}
func (c *Client) ListQueues(ctx context.Context, s tenancy.Scope) ([]Queue, error) { panic(0) }
func (c *Client) Configure(ctx context.Context, s tenancy.Scope, queue string, options map[string]any) (queueID string, err error) {
	panic(0)
}
func (c *Client) DeleteQueue(ctx context.Context, s tenancy.Scope, queue string) (deleted bool, err error) {
	panic(0)
}

type PushBody struct{}

func NewPushBody() *PushBody                                            { panic(0) }
func (b *PushBody) Release()                                            {}
func (b *PushBody) Add(queue string, partition int32, r *batch.Record) {}
func (b *PushBody) Mark() Mark                                          { panic(0) }
func (b *PushBody) Truncate(m Mark)                                     {}
func (b *PushBody) Items() int                                          { panic(0) }
func (b *PushBody) Bytes() int                                          { panic(0) }

type Mark struct{ bytes, items int }

func (m Mark) Items() int { return m.items }
func (m Mark) Bytes() int { return m.bytes }

type PushStatus uint8

const (
	PushQueued PushStatus = iota
	PushDuplicate
	PushBuffered
	PushFailed
)

type PushResult struct {
	Status PushStatus
	Offset int64 // −1 absent
}

func (c *Client) Push(ctx context.Context, s tenancy.Scope, b *PushBody, from, to Mark, dst []PushResult) ([]PushResult, error) {
	panic(0)
}

type FetchEntry struct {
	Queue     string
	Partition int32
	Offset    int64
	MaxBytes  int
}
type EntryError uint8

const (
	EntryOK EntryError = iota
	EntryUnknownTopicOrPartition
	EntryOffsetOutOfRange
	EntryUnknownMarker
)

type FetchResult struct {
	HighWatermark, LogStart int64
	Error                   EntryError
	Marker                  string
}

func (c *Client) Fetch(ctx context.Context, s tenancy.Scope, entries []FetchEntry, maxWait time.Duration, minBytes int, sink func(entry int, r *batch.Record) error, dst []FetchResult) ([]FetchResult, error) {
	panic(0)
}

type TimeQuery struct {
	Queue     string
	Partition int32
	Timestamp int64
}
type TimeAnswer struct {
	Offset, Timestamp int64
	Error             EntryError
}

func (c *Client) OffsetsForTimes(ctx context.Context, s tenancy.Scope, q []TimeQuery) ([]TimeAnswer, error) {
	panic(0)
}

// KVKind is one of the four operations a gateway uses.
type KVKind uint8

const (
	KVPut KVKind = iota
	KVDelete
	KVGetMany
	KVGetPrefix
)

const KVNamespace = "queen-kafka"

// Expect is a write's condition; the zero value is none.
type Expect struct {
	given   bool
	version int64
}

func ExpectAbsent() Expect               { return Expect{given: true} }
func ExpectVersion(version int64) Expect { return Expect{given: true, version: version} }

type KVOp struct {
	Op         KVKind
	NS         string   // "" is KVNamespace
	Key        string   // put, delete
	Value      []byte   // put: JSON; nil is null
	TTLSeconds int64    // put: 0 is forever
	Expect     Expect   // put, delete
	Required   bool     // put, delete: losing aborts the whole call (KindPrecondition)
	Keys       []string // getMany
	Prefix     string   // getPrefix
	After      string   // getPrefix: exclusive; "" is from the start
	Limit      int      // getPrefix: 0 is the cell's default
	KeysOnly   bool     // getPrefix
}

type KVRow struct {
	Key     string
	Value   []byte // JSON; nil where KeysOnly was asked
	Version int64
}

type KVResult struct {
	Applied   bool   // writes
	Reason    string // writes that lost: exists, version, absent
	Value     []byte // writes: own or the winner's, JSON
	Version   int64  // writes
	Rows      []KVRow
	Missing   []string // getMany: proved absent
	Unread    []string // getMany: neither read nor proved absent; ask again
	Truncated bool
	NextAfter string // getPrefix: "" is the end
}

func (c *Client) KV(ctx context.Context, s tenancy.Scope, ops []KVOp) ([]KVResult, error) { panic(0) }
