package txn

import (
	"encoding/json"
	"errors"
	"time"
)

// RowState is how the row of a transactional id describes its last transaction.
type RowState string

// States of a row (cell-http §4.8).
const (
	RowOpen      RowState = "open"
	RowCommitted RowState = "committed"
	RowAborted   RowState = "aborted"
)

// Row is the durable half of a transactional id: the value of qk:txn:<id>. Its
// version in the store is the fence; its Write tells whose write it is.
type Row struct {
	ProducerID int64    `json:"pid"`
	Epoch      int16    `json:"epoch"`
	State      RowState `json:"state"`
	Seq        int64    `json:"seq"`

	Node        int32 `json:"node"`
	Incarnation int64 `json:"incarnation"`
	Timestamp   int64 `json:"ts"`                // ms
	Timeout     int64 `json:"timeout,omitempty"` // of its transactions, ms

	// Write is fresh with every write; that of a commit is its commit id (B11).
	Write string `json:"id,omitempty"`
	// Previous is the producer a bump named (KIP-360): it may ask again.
	Previous *RowProducer `json:"prev,omitempty"`
	// Lost says that the transaction was aborted by an owner that held none of
	// it, and that its producer has not aborted it yet.
	Lost bool `json:"lost,omitempty"`
}

// RowProducer is a Producer in a Row.
type RowProducer struct {
	ProducerID int64 `json:"pid"`
	Epoch      int16 `json:"epoch"`
}

var errRow = errors.New("txn: the row names no producer")

// ParseRow reads a row's value.
func ParseRow(value []byte) (Row, error) {
	var r Row
	if err := json.Unmarshal(value, &r); err != nil {
		return Row{}, err
	}
	if r.ProducerID <= 0 || r.Epoch < 0 {
		return Row{}, errRow
	}
	return r, nil
}

// Encode is the row's value.
func (r Row) Encode() []byte {
	b, err := json.Marshal(r)
	if err != nil { // numbers and texts always encode
		panic(err)
	}
	return b
}

// timeout is the transaction timeout; where the row does not say, Kafka's
// default.
func (r Row) timeout() time.Duration {
	if r.Timeout <= 0 || r.Timeout > maxTimeout {
		return defaultTimeout
	}
	return time.Duration(r.Timeout) * time.Millisecond
}

const (
	defaultTimeout = time.Minute
	maxTimeout     = 7_200_000 // ms: the most that can be allowed
)

func (r Row) producer() Producer { return Producer{ID: r.ProducerID, Epoch: r.Epoch} }

func (r Row) previous() Producer {
	if r.Previous == nil {
		return Nobody()
	}
	return Producer{ID: r.Previous.ProducerID, Epoch: r.Previous.Epoch}
}

// row is what the stage's next write says.
func (s *Stage) row(p, previous Producer, state RowState, seq int64, write string) Row {
	r := Row{ProducerID: p.ID, Epoch: p.Epoch, State: state, Seq: seq, Write: write, Timeout: s.Timeout.Milliseconds()}
	if previous.Named() {
		r.Previous = &RowProducer{ProducerID: previous.ID, Epoch: previous.Epoch}
	}
	return r
}
