package topicconf

import (
	"math"
	"strconv"
	"strings"
)

// Names that mean something beyond being recorded.
const (
	RetentionMs       = "retention.ms"
	CleanupPolicy     = "cleanup.policy"
	MinInsyncReplicas = "min.insync.replicas"
	TimestampType     = "message.timestamp.type"
)

// The cleanup policies.
const (
	PolicyDelete  = "delete"
	PolicyCompact = "compact"
)

// Type is a value's type, by Kafka's numbers (KIP-569).
type Type int8

// The types.
const (
	String Type = 2
	Int    Type = 3
	Long   Type = 5
	Double Type = 6
	List   Type = 7
)

// Key is one config key.
type Key struct {
	Name     string
	Type     Type
	Default  string // what a topic has that does not set it; "": the key is not shown then
	Doc      string // for clients that ask for documentation
	Recorded bool   // kept and shown, and nothing else

	parse func(value string) (canonical, refusal string)
}

const notEnforced = " Recorded and reported, not enforced by this service."

// Keys are all keys, in the order they are described and documented.
func Keys() []Key {
	return []Key{
		{
			Name: CleanupPolicy, Type: List, Default: PolicyDelete, parse: parsePolicy,
			Doc: "delete removes records past retention.ms; compact alone keeps every record (nothing is compacted away); both together act as delete.",
		},
		{
			Name: MinInsyncReplicas, Type: Int, Default: "1", parse: parseMinInsync,
			Doc: "Always 1: clients see one logical broker, which acknowledges what its cell has stored.",
		},
		{
			Name: RetentionMs, Type: Long, Default: "-1", parse: parseRetention,
			Doc: "How long records are kept, in whole seconds; -1 keeps them for good. Without delete in cleanup.policy it is kept aside.",
		},
		{
			Name: TimestampType, Type: String, parse: parseTimestampType,
			Doc: "CreateTime: records carry the time their producer gave them.",
		},
		recorded("segment.bytes", Int, integer(14, math.MaxInt32), "Size of a segment file."),
		recorded("segment.ms", Long, integer(1, math.MaxInt64), "Age at which a segment is closed."),
		recorded("retention.bytes", Long, integer(math.MinInt64, math.MaxInt64), "Size a partition may keep."),
		recorded("max.message.bytes", Int, integer(0, math.MaxInt32), "Largest record batch."),
		recorded("min.compaction.lag.ms", Long, integer(0, math.MaxInt64), "Time a record stays uncompacted at least."),
		recorded("max.compaction.lag.ms", Long, integer(1, math.MaxInt64), "Time a record stays uncompacted at most."),
		recorded("delete.retention.ms", Long, integer(0, math.MaxInt64), "Time a tombstone is kept."),
		recorded("min.cleanable.dirty.ratio", Double, parseRatio, "Part of a log that may be uncompacted."),
	}
}

func recorded(name string, t Type, parse func(string) (string, string), doc string) Key {
	return Key{Name: name, Type: t, Recorded: true, Doc: doc + notEnforced, parse: parse}
}

func keyOf(name string) (Key, bool) {
	for _, k := range Keys() {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}

func names() string {
	var out []string
	for _, k := range Keys() {
		out = append(out, k.Name)
	}
	return strings.Join(out, ", ")
}

// integer accepts whole numbers of a range, as Kafka does: with spaces around,
// and a plus.
func integer(lo, hi int64) func(string) (string, string) {
	return func(value string) (string, string) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return "", "not a number in range"
		}
		if n < lo || n > hi {
			return "", "it must be " + strconv.FormatInt(lo, 10) + " to " + strconv.FormatInt(hi, 10)
		}
		return strconv.FormatInt(n, 10), ""
	}
}

// parseRetention rounds down to whole seconds, which is what a cell knows.
// Below one second nothing is left: that would delete everything, or nothing,
// depending on the reader.
func parseRetention(value string) (string, string) {
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch {
	case err != nil:
		return "", "not a number in range"
	case n == -1:
		return "-1", ""
	case n < 1000:
		return "", "it must be -1 (keep for good) or at least 1000: retention is kept in whole seconds"
	}
	return strconv.FormatInt(n/1000*1000, 10), ""
}

func parsePolicy(value string) (string, string) {
	policies := policiesOf(value)
	if len(policies) == 0 {
		return "", "a topic needs a cleanup policy: delete, compact or both"
	}
	for _, p := range policies {
		if p != PolicyDelete && p != PolicyCompact {
			return "", "it must be delete, compact or both"
		}
	}
	return strings.Join(policies, ","), ""
}

// policiesOf splits a list of policies, whatever case and spaces it is written
// with; what stands twice counts once. Of three one is wrong: the rest of the
// text is not looked at.
func policiesOf(value string) (out []string) {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	for p := range strings.SplitSeq(value, ",") {
		if out = with(out, strings.ToLower(strings.TrimSpace(p))); len(out) > 2 {
			break
		}
	}
	return out
}

func parseMinInsync(value string) (string, string) {
	canonical, refusal := integer(1, math.MaxInt32)(value)
	if refusal == "" && canonical != "1" {
		refusal = "it must be 1: clients see one logical broker, so no write could wait for more than one replica"
	}
	return canonical, refusal
}

func parseTimestampType(value string) (string, string) {
	switch value {
	case "CreateTime":
		return value, ""
	case "LogAppendTime":
		return "", "records are kept with the time their producer gave them and are never stamped anew, so LogAppendTime would not be true"
	}
	return "", "it must be CreateTime"
}

func parseRatio(value string) (string, string) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return "", "it must be a number from 0 to 1"
	}
	return strconv.FormatFloat(f, 'g', -1, 64), ""
}
