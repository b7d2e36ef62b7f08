package offsets

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/queen-mq/queen-edge/proxyclient"
)

// MaxMetadata is the longest text that may go with an offset, in bytes.
const MaxMetadata = 4096

// Place is a partition of a topic.
type Place struct {
	Topic     string
	Partition int32
}

// Entry is an offset to commit.
type Entry struct {
	Place
	Offset   int64
	Metadata string
	QueueID  string // of the topic's queue; "" where it is not known
}

// Stored is an offset as it was committed.
type Stored struct {
	Offset   int64
	Metadata string
	QueueID  string // "" where the committer did not know it
}

// value is a row's JSON (cell-http §4.8). qid is this gateway's own (B1): others
// read past it.
type value struct {
	Offset   *int64 `json:"offset"`
	Metadata string `json:"metadata"`
	At       int64  `json:"ts"`
	QueueID  string `json:"qid,omitempty"`
}

// errNoOffset is a row that holds no offset. It is not taken for absent: that
// would send a consumer to where its reset policy points.
var errNoOffset = errors.New("a row of committed offsets holds no offset")

// Put is the write that commits an entry. A transaction may carry it beside
// records.
func Put(group string, e *Entry, at time.Time) proxyclient.KVOp {
	return proxyclient.KVOp{
		Op:  proxyclient.KVPut,
		Key: Key(group, e.Topic, e.Partition),
		Value: encode(value{
			Offset: &e.Offset, Metadata: e.Metadata, At: at.UnixMilli(), QueueID: e.QueueID,
		}),
	}
}

// IndexPut is the write that lists a group. A group without members has the
// protocol type "".
func IndexPut(group, protocolType string, at time.Time) proxyclient.KVOp {
	return proxyclient.KVOp{
		Op: proxyclient.KVPut, Key: IndexKey(group),
		Value: encode(indexValue{ProtocolType: protocolType, At: at.UnixMilli()}),
	}
}

type indexValue struct {
	ProtocolType string `json:"pt"`
	At           int64  `json:"ts"`
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // text and numbers only
		panic(err)
	}
	return b
}

func decode(b []byte) (Stored, error) {
	var v value
	if err := json.Unmarshal(b, &v); err != nil {
		return Stored{}, errors.Join(errNoOffset, err)
	}
	if v.Offset == nil {
		return Stored{}, errNoOffset
	}
	return Stored{Offset: *v.Offset, Metadata: v.Metadata, QueueID: v.QueueID}, nil
}

// protocolType is what a row of the index says; one that does not parse still
// says that there is a group.
func protocolType(b []byte) string {
	var v indexValue
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	return v.ProtocolType
}
