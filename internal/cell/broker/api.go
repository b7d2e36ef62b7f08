// Package broker is the embedded cell's store of queues, partitions, records
// and keys: the typed core behind internal/cell/proxy. It knows tenants by the
// identity the proxy names and nothing of credentials, plans or HTTP
// (cell-http §1, §3, §4).
package broker

import (
	"errors"
	"time"
)

// Tenant is the broker-side identity of one cluster (cell-http §2.5: the
// "broker tenant uuid"). All state belongs to exactly one Tenant.
type Tenant [16]byte

// Queue is one queue of a tenant as a listing shows it.
type Queue struct {
	ID            string    // changes when the queue is deleted and recreated, survives Configure
	Name          string    // topic name
	Partitions    int       // partitions that exist now: pushed to at least once
	CreatedAt     time.Time // UTC
	Options       Options
	RetainedBytes int64 // payload bytes readable now
}

// PushItem is one record to append. Order within a partition is kept.
type PushItem struct {
	Queue         string
	Partition     string // by name; the empty string is refused, callers fill in "Default"
	Payload       []byte // raw JSON text, stored and returned as it is; must not be changed until Push returns
	TransactionID []byte // deduplication key; empty: the broker mints a unique one; must not be changed until Push returns
}

// PushStatus is the verdict on one item.
type PushStatus uint8

// Verdicts of cell-http §3.4.
const (
	Queued PushStatus = iota
	Duplicate
	Failed
)

// PushResult is the answer to the item at the same index.
type PushResult struct {
	Status    PushStatus
	Offset    int64    // absolute offset; −1 when none
	MessageID [16]byte // unique; rendered as a UUID, and as the transaction id of an item that has none
}

// FetchEntry asks for the records of one partition from Offset (inclusive) on.
type FetchEntry struct {
	Queue     string
	Partition string
	Offset    int64 // ≥ 0; 2^63−1 is a bounds probe
	MaxBytes  int   // payload bytes, 1 … 8 MiB (clamped); at least one record is given
}

// FetchRequest is one long poll over at most 1,024 entries.
type FetchRequest struct {
	Entries  []FetchEntry
	MaxWait  time.Duration // clamped to 0 … 30 s
	MinBytes int           // ≤ 0 never parks
}

// EntryError is an error marker beside an entry's bounds.
type EntryError uint8

// Markers of cell-http §3.5.
const (
	NoError EntryError = iota
	UnknownTopicOrPartition
	OffsetOutOfRange
)

// Record is one stored record.
type Record struct {
	Offset        int64
	Payload       []byte // raw JSON text; read-only
	AppendTime    time.Time
	MessageID     [16]byte
	TransactionID string // empty: render MessageID
}

// FetchResult answers the entry at the same index.
type FetchResult struct {
	Records        []Record
	HighWatermark  int64 // next offset to be assigned
	LogStartOffset int64 // first retained offset
	Error          EntryError
}

// TimeQuery asks for the first record appended at or after Time.
type TimeQuery struct {
	Queue     string
	Partition string
	Time      time.Time
}

// TimeResult answers a TimeQuery; Offset is −1 when nothing is that late.
type TimeResult struct {
	Offset         int64
	AppendTime     time.Time
	HighWatermark  int64
	LogStartOffset int64
	Error          EntryError
}

// Errors a caller maps to the envelopes of cell-http §3.13.
var (
	ErrStorageFull = errors.New("storage full")         // 507 storage_full; nothing was written
	ErrNameTooLong = errors.New("name too long")        // 413 name_too_long
	ErrTooMany     = errors.New("too many entries")     // 400
	ErrBadRequest  = errors.New("bad request")          // 400 bad_request
	ErrClosed      = errors.New("the broker is closed") // 503 retry
)

// The methods of *Broker (all safe for concurrent use; a nil error means that
// what was written is on disk):
//
//	Open(Config) (*Broker, error)
//	(*Broker) Close() error
//	(*Broker) Queues(t Tenant) []Queue                       // by name
//	(*Broker) Queue(t Tenant, name string) (Queue, bool)
//	(*Broker) PartitionSizes(t Tenant, queue string) (map[string]int64, bool) // retained bytes by partition
//	(*Broker) Configure(ctx, t Tenant, name string, change func(*Options) error) (Queue, error)
//	(*Broker) Delete(ctx, t Tenant, name string) (existed bool, err error)
//	(*Broker) Push(ctx, t Tenant, items []PushItem, into []PushResult) ([]PushResult, error) // creates missing queues
//	(*Broker) Fetch(ctx, t Tenant, r FetchRequest) ([]FetchResult, error)
//	(*Broker) OffsetsForTimes(ctx, t Tenant, q []TimeQuery) ([]TimeResult, error)
//
// kv_api.go has those for keys and transactions.
