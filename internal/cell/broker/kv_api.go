package broker

import (
	"fmt"
	"time"
)

// Limits of one KV call (cell-http §4.7).
const (
	MaxKVOps        = 256
	MaxKVKeys       = 1024
	MaxKVValueBytes = 64 << 10 // of compact JSON
	MaxKVKeyBytes   = 512
	// KVReadBudget bounds the value bytes one call reads; rows beyond it are
	// in neither Rows nor Missing.
	KVReadBudget = 4 << 20

	// DefaultTxnKVOps and DefaultTxnKVKeys are what the contract lets a
	// transaction have; Config.MaxTxnKVOps raises both.
	DefaultTxnKVOps  = 64
	DefaultTxnKVKeys = 256
	// LargestTxnKVOps is the most Config.MaxTxnKVOps may say.
	LargestTxnKVOps = 1024
)

// KVKind is what an operation does, spelled as in cell-http §4.2.
type KVKind string

// Operations.
const (
	KVGet         KVKind = "get"
	KVGetMany     KVKind = "getMany"
	KVGetPrefix   KVKind = "getPrefix"
	KVPut         KVKind = "put"
	KVPutIfAbsent KVKind = "putIfAbsent" // its result says put
	KVDelete      KVKind = "delete"
	KVIncr        KVKind = "incr"
	// KVCheck judges a condition and writes nothing. The contract does not have
	// it, the official client does.
	KVCheck KVKind = "check"
)

// OptInt is an integer member that may be absent. One that is null or no
// integer is the caller's to refuse.
type OptInt struct {
	Set bool
	N   int64
}

// Int is a member that is there.
func Int(n int64) OptInt { return OptInt{Set: true, N: n} }

// KVOp is one operation. Members an operation does not have are ignored, but
// for an expiry on a delete and an expect on an incr, which are refused. The
// slices may be used again when the call has returned; the texts may not change.
type KVOp struct {
	Kind KVKind
	NS   string

	Key  string   // get, put, putIfAbsent, delete, incr, check
	Keys []string // getMany

	Prefix   string // getPrefix: not empty
	After    string // getPrefix: exclusive; empty: from the beginning
	Limit    OptInt // getPrefix: absent 100; clamped to 1 … 1,000
	KeysOnly bool   // getPrefix: rows without values

	Value []byte // put, putIfAbsent: JSON text, nil when the member is missing; kept compact
	By    OptInt // incr ("by", or "delta" of the official client): absent 1
	Min   OptInt // incr: a sum below loses with limit
	Max   OptInt // incr: a sum above loses with limit

	// Exactly one of both on put, putIfAbsent and incr; an incr of a row that
	// is there keeps the expiry that row has.
	TTLSeconds OptInt // > 0
	Forever    bool

	Expect   OptInt // put, delete, check: the version the row must have, 0: there must be none
	Required bool   // all but reads: losing aborts the call
}

// KVReason says why a write was not applied (cell-http §4.3, §4.4).
type KVReason string

// Reasons.
const (
	KVExists  KVReason = "exists"
	KVVersion KVReason = "version"
	KVAbsent  KVReason = "absent"
	KVLimit   KVReason = "limit" // incr would leave its bounds or those of an int64
	KVType    KVReason = "type"  // incr found a value that is no integer
)

// KVResult answers the operation at the same index.
type KVResult struct {
	Kind KVKind // put for putIfAbsent

	// Single-key operations. A put that was applied shows its own value and
	// version, a delete the old ones, a lost write those of the row that won.
	Key     string
	Value   []byte // compact JSON; nil when there is no row: render null
	Version int64  // 0 when there is no row
	Applied bool   // of a write
	Reason  KVReason
	Found   bool // of a get

	ExpiresAt time.Time // of a get: UTC, zero for never
	UpdatedAt time.Time

	// getMany and getPrefix.
	Rows      []KVRow  // in byte order of their keys
	Missing   []string // of getMany, in byte order
	Truncated bool
	NextAfter string // of a truncated getPrefix; empty: render null
}

// KVRow is one row as a read shows it. Value is nil with KeysOnly.
type KVRow struct {
	Key       string
	Value     []byte
	Version   int64
	ExpiresAt time.Time // UTC, zero for never
	UpdatedAt time.Time
}

// KVPrecondition is the error of a call whose required condition was lost:
// nothing was written (cell-http §4.6).
type KVPrecondition struct {
	FailedIndex int // position in the call's operations
	Reason      KVReason
	Version     int64  // of the row that won, 0 when there is none
	Value       []byte // of the row that won, nil when there is none
}

func (e *KVPrecondition) Error() string {
	return fmt.Sprintf("kv precondition: operation %d lost: %s", e.FailedIndex, e.Reason)
}

// KVErrorKind is the "error" member of a KV envelope (cell-http §4.7).
type KVErrorKind string

// Kinds. The broker itself answers the first two (ErrStorageFull and ErrClosed
// stay what they are); the others are the caller's to answer.
const (
	KVBadRequest      KVErrorKind = "kv_bad_request"    // 400
	KVPayloadTooLarge KVErrorKind = "payload_too_large" // 413
	KVQuotaExceeded   KVErrorKind = "kv_quota_exceeded" // 403
	KVFeatureGated    KVErrorKind = "feature_gated"     // 403
	KVRateLimited     KVErrorKind = "rate_limited"      // 429
	KVUnavailable     KVErrorKind = "kv_unavailable"    // 503
	KVNotFound        KVErrorKind = "not_found"         // 404
	KVFailed          KVErrorKind = "kv_error"          // 500
)

// Reasons of a KVError.
const (
	ReasonBadBody         = "kv_bad_body"
	ReasonTooManyOps      = "kv_too_many_ops"
	ReasonTooManyKeys     = "kv_too_many_keys"
	ReasonUnknownOp       = "kv_unknown_op"
	ReasonBadNamespace    = "kv_bad_namespace"
	ReasonBadKey          = "kv_bad_key"
	ReasonPrefixRequired  = "kv_prefix_required"
	ReasonBadTTL          = "kv_bad_ttl"
	ReasonExpiry          = "kv_expiry_not_specified"
	ReasonBadExpect       = "kv_bad_expect"
	ReasonDuplicateKey    = "kv_duplicate_key_in_call"
	ReasonTenantNotInput  = "kv_tenant_not_an_input" // the caller's: KVOp has no tenant
	ReasonValueTooLarge   = "kv_value_too_large"
	ReasonKeyTooLarge     = "kv_key_too_large"
	ReasonPrecondition    = "kv_precondition"        // TxnResult.Reason
	ReasonAckRefused      = "ack_rejected"           // the same
	ErrorPreconditionText = "kv_precondition_failed" // the "error" of a lost transaction
)

// KVError refuses a whole call; nothing was written.
type KVError struct {
	Kind   KVErrorKind
	Reason string
	Detail string // for people
}

func (e *KVError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Kind, e.Reason, e.Detail) }

// KVUsage is what a tenant's keys take. Expired rows count until they are
// removed, which the broker does in the background.
type KVUsage struct {
	Rows  int64
	Bytes int64 // namespaces, keys and values
}

// TxnResult is the verdict on a transaction (cell-http §3.8). When Success is
// false nothing was written and only the fields of the second part are set.
type TxnResult struct {
	TransactionID [16]byte // rendered as a UUID
	Success       bool
	Pushes        []PushResult // per push item; indexes 0 …
	Acks          []AckResult  // per ack; their indexes follow those of the items
	KV            []KVResult   // per KV operation; their indexes follow those of the acks

	Reason      string // kv_precondition, ack_rejected
	Text        string // why, of ack_rejected
	FailedIndex int    // in the flat space: items first, then acks, then KV operations
	KVReason    KVReason
	Version     int64
	Value       []byte // of the row that won, nil when there is none
}

// GroupRow is what one consumer group has committed of one queue (cell-http
// §3.10).
type GroupRow struct {
	Group             string // unescaped
	Queue             string
	Partitions        int   // committed ones: members and partitionCursors
	TotalLag          int64 // records
	PartitionsWithLag int

	Native    bool // its kind is "queen", else "kafka"; only it has what follows
	Conflates bool
	CreatedAt time.Time
	Since     time.Time // zero: it began with everything
}

// The methods of *Broker for keys, transactions and groups:
//
//	(*Broker) KV(ctx, t Tenant, ops []KVOp) ([]KVResult, error)   // *KVError, *KVPrecondition, ErrStorageFull, ErrClosed
//	(*Broker) Transaction(ctx, t Tenant, pushes []PushItem, kv []KVOp, acks ...Ack) (TxnResult, error) // *KVError and the errors of Push
//	(*Broker) KVStats(t Tenant) KVUsage
//	(*Broker) MaxTxnKVOps() int                                   // what a cell announces as txn-kv=<n>
//	(*Broker) Groups(t Tenant) ([]GroupRow, error)                // by group, then queue
//	(*Broker) Tidy(ctx) error                                     // expires and gives space back now
