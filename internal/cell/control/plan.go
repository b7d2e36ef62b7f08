package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Plan codes.
const (
	PlanFree       = "free"
	PlanDev        = "dev"
	PlanPro        = "pro"
	PlanDedicatedS = "dedicated-s"

	// PlanLocal is this program's own addition to the table of cell-http §5.4:
	// no quotas, for a machine that sells nothing.
	PlanLocal = "local"
)

// ceilingBatchItems applies where max_batch_items is unset (cell-http §5.4).
const ceilingBatchItems = 10_000

// Limit is a bound, or none: the zero Limit is unlimited, as a null in the plan
// table is.
type Limit struct {
	bounded bool
	n       float64 // rates may be fractions; counts stay exact to 2^53
}

// AtMost is a Limit of n.
func AtMost(n float64) Limit { return Limit{bounded: true, n: n} }

// Value returns the bound, and whether there is one.
func (l Limit) Value() (float64, bool) { return l.n, l.bounded }

// Bounded reports whether there is a bound.
func (l Limit) Bounded() bool { return l.bounded }

// Exceeded reports whether n is above the bound.
func (l Limit) Exceeded(n int64) bool { return l.bounded && float64(n) > l.n }

// String renders the bound as error texts do.
func (l Limit) String() string {
	if !l.bounded {
		return "unlimited"
	}
	return strconv.FormatFloat(l.n, 'f', -1, 64)
}

// Limits are a plan's columns, or what a cluster has after its overrides.
type Limits struct {
	MaxReqPerSec          Limit
	ReqBurst              Limit
	MaxMsgsPerSec         Limit
	MsgsBurst             Limit
	MaxQueues             Limit
	MaxPartitionsPerQueue Limit
	MaxParkedPops         Limit
	MaxPayloadBytes       Limit // raw JSON text of one payload
	MaxBatchItems         Limit // never unlimited once resolved
	MaxRetainedBytes      Limit
	MaxRetentionSeconds   Limit
	MonthlyMsgsQuota      Limit // not overridable

	// Of the key space (cell-http §4.7), which no plan column has: calls that
	// read and that write, and what the grant holds.
	KVReadsPerSec, KVReadsBurst   Limit
	KVWritesPerSec, KVWritesBurst Limit
	KVMaxRows, KVMaxBytes         Limit
}

// withKeyRates are a plan's limits with the rates a broker is documented to
// hold a tenant's keys to.
func (l Limits) withKeyRates() Limits {
	l.KVReadsPerSec, l.KVReadsBurst, l.KVWritesPerSec = AtMost(200), AtMost(400), AtMost(100)
	return l
}

// Features are what a plan switches on beyond the log. Absent is off.
type Features struct {
	KV, Timers, Ephemeral, Streams, Traces bool
}

// Plan is one row of the plan table.
type Plan struct {
	Code     string
	Limits   Limits
	Features Features
}

const (
	gib = 1 << 30
	day = 24 * 60 * 60
)

// Plans is the plan table of cell-http §5.4, then PlanLocal.
func Plans() []Plan {
	return []Plan{
		{
			Code: PlanFree,
			Limits: Limits{
				MaxReqPerSec: AtMost(5), ReqBurst: AtMost(25), MaxMsgsPerSec: AtMost(20), MsgsBurst: AtMost(100),
				MaxQueues: AtMost(20), MaxPartitionsPerQueue: AtMost(8), MaxParkedPops: AtMost(50),
				MaxPayloadBytes: AtMost(262_144), MaxBatchItems: AtMost(1_000),
				MaxRetainedBytes: AtMost(1 * gib), MaxRetentionSeconds: AtMost(7 * day),
			}.withKeyRates(),
		},
		{
			Code: PlanDev,
			Limits: Limits{
				MaxReqPerSec: AtMost(10), ReqBurst: AtMost(50), MaxMsgsPerSec: AtMost(40), MsgsBurst: AtMost(200),
				MaxQueues: AtMost(50), MaxPartitionsPerQueue: AtMost(16), MaxParkedPops: AtMost(150),
				MaxPayloadBytes: AtMost(524_288), MaxBatchItems: AtMost(2_000),
				MaxRetainedBytes: AtMost(3 * gib), MaxRetentionSeconds: AtMost(14 * day),
			}.withKeyRates(),
		},
		{
			Code: PlanPro,
			Limits: Limits{
				MaxReqPerSec: AtMost(50), ReqBurst: AtMost(200), MaxMsgsPerSec: AtMost(200), MsgsBurst: AtMost(800),
				MaxQueues: AtMost(200), MaxPartitionsPerQueue: AtMost(32), MaxParkedPops: AtMost(1_000),
				MaxPayloadBytes: AtMost(1_048_576), MaxBatchItems: AtMost(5_000),
				MaxRetainedBytes: AtMost(20 * gib), MaxRetentionSeconds: AtMost(30 * day),
			}.withKeyRates(),
			Features: Features{Streams: true, Traces: true},
		},
		{
			Code: PlanDedicatedS,
			Limits: Limits{
				MaxReqPerSec: AtMost(200), ReqBurst: AtMost(800), MaxMsgsPerSec: AtMost(600), MsgsBurst: AtMost(2_000),
				MaxQueues: AtMost(1_000), MaxPartitionsPerQueue: AtMost(64), MaxParkedPops: AtMost(5_000),
				MaxPayloadBytes: AtMost(4_194_304), MaxBatchItems: AtMost(10_000),
				MaxRetainedBytes: AtMost(200 * gib), MaxRetentionSeconds: AtMost(90 * day),
			}.withKeyRates(),
			Features: Features{Streams: true, Traces: true},
		},
		{
			Code: PlanLocal,
			// Nothing is rated here, keys neither.
			//
			// About what a full 16 MiB body of the smallest records holds: the
			// body cap stays the bound that is felt.
			Limits:   Limits{MaxBatchItems: AtMost(250_000)},
			Features: Features{KV: true, Timers: true, Ephemeral: true, Streams: true, Traces: true},
		},
	}
}

// planByCode finds a row of a plan table.
func planByCode(plans []Plan, code string) (Plan, bool) {
	for _, p := range plans {
		if p.Code == code {
			return p, true
		}
	}
	return Plan{}, false
}

// Overrides is a cluster's limit_overrides: a JSON object by column name.
// Absent: the plan's value. Null: unlimited. A number: that number. Anything
// else: the plan's value.
type Overrides map[string]json.RawMessage

// resolve lays the overrides over a plan's limits.
func (o Overrides) resolve(plan Limits) Limits {
	l := plan
	for _, c := range l.overridable() {
		raw, present := o[c.name]
		if !present {
			continue
		}
		if v, ok := parseLimit(raw); ok {
			*c.limit = v
		}
	}
	if !l.MaxBatchItems.bounded {
		l.MaxBatchItems = AtMost(ceilingBatchItems)
	}
	l.ReqBurst = burstOr(l.ReqBurst, l.MaxReqPerSec)
	l.MsgsBurst = burstOr(l.MsgsBurst, l.MaxMsgsPerSec)
	l.KVReadsBurst = burstOr(l.KVReadsBurst, l.KVReadsPerSec)
	l.KVWritesBurst = burstOr(l.KVWritesBurst, l.KVWritesPerSec)
	return l
}

// burstOr is twice the rate where no burst is set (cell-http §5.4).
func burstOr(burst, rate Limit) Limit {
	if burst.bounded || !rate.bounded {
		return burst
	}
	return AtMost(2 * rate.n)
}

// OverridableLimits lists the columns an override may name.
func OverridableLimits() []string {
	var l Limits
	columns := l.overridable()
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].name
	}
	return names
}

// checkOverride holds an override that a person makes to what can be meant. A
// control file may hold more: what is neither number nor null is passed over.
func checkOverride(name string, value json.RawMessage) error {
	if !slices.Contains(OverridableLimits(), name) {
		return fmt.Errorf("%w: no limit is called %q (%s)", ErrInvalid, name, strings.Join(OverridableLimits(), ", "))
	}
	if value == nil {
		return nil
	}
	if l, ok := parseLimit(value); !ok || l.n < 0 {
		return fmt.Errorf("%w: %s: %s is neither a number from 0 on nor null", ErrInvalid, name, value)
	}
	return nil
}

// column names a limit as limit_overrides does.
type column struct {
	name  string
	limit *Limit
}

// overridable lists the columns an override may name.
func (l *Limits) overridable() []column {
	return []column{
		{"max_req_per_sec", &l.MaxReqPerSec},
		{"req_burst", &l.ReqBurst},
		{"max_msgs_per_sec", &l.MaxMsgsPerSec},
		{"msgs_burst", &l.MsgsBurst},
		{"max_queues", &l.MaxQueues},
		{"max_partitions_per_queue", &l.MaxPartitionsPerQueue},
		{"max_parked_pops", &l.MaxParkedPops},
		{"max_payload_bytes", &l.MaxPayloadBytes},
		{"max_batch_items", &l.MaxBatchItems},
		{"max_retained_bytes", &l.MaxRetainedBytes},
		{"max_retention_seconds", &l.MaxRetentionSeconds},
		{"kv_reads_per_sec", &l.KVReadsPerSec},
		{"kv_reads_burst", &l.KVReadsBurst},
		{"kv_writes_per_sec", &l.KVWritesPerSec},
		{"kv_writes_burst", &l.KVWritesBurst},
		{"kv_max_rows", &l.KVMaxRows},
		{"kv_max_bytes", &l.KVMaxBytes},
	}
}

// parseLimit reads one override; ok is false where the plan's value stands.
func parseLimit(raw json.RawMessage) (l Limit, ok bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return Limit{}, false
	}
	switch n := v.(type) {
	case nil:
		return Limit{}, true
	case float64:
		return AtMost(n), true
	default:
		return Limit{}, false
	}
}
