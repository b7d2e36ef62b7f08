package topicconf

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
)

// Names of the options a cell is sent.
const (
	optionDedup     = "dedupWindowSeconds"
	optionRetention = "retentionEnabled"
	optionSeconds   = "retentionSeconds"
)

// PendingLife is how long a record that was written before its topic is
// believed (cell-http §4.8).
const PendingLife = 120 * time.Second

// Record is what is kept of a topic under qk:topiccfg:<topic>. It is needed
// because a cell rewrites the settings of a queue that it is not told again, and
// cannot be asked for them.
type Record struct {
	QueueID    *string // the queue it is pinned to; nil where the cell gives queues no ids, or pending
	Set        Options // last sent; nil: not known
	At         int64   // ms
	Partitions int64   // declared width; 0: none
	Kafka      Values  // as clients set them
	Pending    bool    // written before the queue
}

// Options are a cell's options by name, as JSON.
type Options map[string]json.RawMessage

// stored is the JSON of a record.
type stored struct {
	QueueID    *string           `json:"qid"`
	Set        Options           `json:"set"`
	At         int64             `json:"at"`
	Partitions *int64            `json:"partitions"`
	Kafka      map[string]string `json:"kafka,omitempty"`
	Pending    bool              `json:"pending,omitempty"`
}

// Encode is a record's value in the cell.
func (r Record) Encode() []byte {
	s := stored{QueueID: r.QueueID, Set: r.Set, At: r.At, Kafka: r.Kafka, Pending: r.Pending}
	if r.Partitions > 0 {
		s.Partitions = &r.Partitions
	}
	b, err := json.Marshal(s)
	if err != nil { // Set is JSON that was read or made here
		panic("topicconf: " + err.Error())
	}
	return b
}

// Decode reads a record; one that does not parse counts as absent. Values this
// version does not know are passed over.
func Decode(value []byte) (Record, bool) {
	var s struct {
		stored
		Kafka json.RawMessage `json:"kafka"`
	}
	if json.Unmarshal(value, &s) != nil {
		return Record{}, false
	}
	r := Record{QueueID: s.QueueID, Set: s.Set, At: s.At, Pending: s.Pending, Kafka: Values{}}
	if s.Partitions != nil && *s.Partitions > 0 {
		r.Partitions = *s.Partitions
	}
	var kept map[string]json.RawMessage
	_ = json.Unmarshal(s.Kafka, &kept) // of another shape: nothing is kept
	for name, raw := range kept {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			_ = r.Kafka.apply(Change{Name: name, Value: &text})
		}
	}
	r.Kafka.adopt(r.Set)
	return r, true
}

// adopt takes the retention from the options that were sent: another writer of
// records may keep it nowhere else.
func (v Values) adopt(set Options) {
	if string(set[optionRetention]) != "true" {
		return
	}
	seconds, err := strconv.ParseInt(string(set[optionSeconds]), 10, 64)
	if err == nil && seconds > 0 && seconds <= maxSeconds {
		v[RetentionMs] = strconv.FormatInt(seconds*1000, 10)
	}
}

const maxSeconds = int64(1<<63-1) / 1000

// First are the options of a topic that is made.
func First(v Values, dedupWindow int) Options {
	set := Options{optionDedup: number(int64(dedupWindow))}
	set.retain(v)
	return set
}

// Next are the options of a topic after a change: those that are kept, with
// every one that a config decides as v says. Options that went are not in it:
// see Sent. A record that has no dedup window stands for none.
func (o Options) Next(v Values) Options {
	next := maps.Clone(o)
	if next == nil {
		next = Options{}
	}
	delete(next, optionRetention)
	delete(next, optionSeconds)
	if _, ok := next[optionDedup]; !ok {
		next[optionDedup] = number(0)
	}
	next.retain(v)
	return next
}

func (o Options) retain(v Values) {
	seconds, limited, given := v.Retention()
	if !given {
		return
	}
	o[optionRetention] = json.RawMessage("false")
	if limited {
		o[optionRetention], o[optionSeconds] = json.RawMessage("true"), number(seconds)
	}
}

// Sent is what to tell the cell to come from before to o: all of o, and an
// explicit null for each option that went, since a cell may keep what it is not
// told.
func (o Options) Sent(before Options) map[string]any {
	out := make(map[string]any, len(o))
	for name := range before {
		out[name] = nil
	}
	for name, value := range o {
		out[name] = value
	}
	return out
}

func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }
