package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// filler turns the records of a fetch, as they come off the wire, into one batch
// per partition, and keeps the response within its budget. The first record of
// a response always goes, however large (KIP-74).
//
// All batches of a response lie in one buffer, which the connection borrows
// until the response is written.
type filler struct {
	budget  int
	room    *lease // of the answer
	starved bool   // there was no room for a record
	buf     *[]byte
	spans   []span
	answers []*kmsg.FetchResponseTopicPartition // of this chunk
	entry   int                                 // whose batch is open; −1: none
	closed  int                                 // entries below this one take no more records
	from    int                                 // where the open batch begins
	w       batch.Writer
}

// span is where an answer's batch lies.
type span struct {
	answer   *kmsg.FetchResponseTopicPartition
	from, to int
}

// start begins a chunk; its records are given by index into answers.
func (f *filler) start(answers []*kmsg.FetchResponseTopicPartition) {
	f.answers, f.entry, f.closed = answers, -1, 0
}

func (f *filler) full() bool { return f.starved || len(*f.buf) >= f.budget }

// answerGrowth is what a byte of records takes until it is written: the buffer
// of the batches and the answer they are copied to, each while it grows.
const answerGrowth = 4

// roomFor takes memory for one more record of the open batch, or says that what
// is here already is the answer.
func (f *filler) roomFor(r *batch.Record) bool {
	if f.room.cover(answerGrowth * int64(f.from+f.w.Len()+f.w.Size(r))) {
		return true
	}
	f.starved = true
	return false
}

// record takes one record, or leaves it for the client's next fetch.
func (f *filler) record(entry int, r *batch.Record) error {
	if entry < f.closed {
		return nil
	}
	if entry != f.entry {
		f.endEntry()
		if f.full() {
			f.closed = entry + 1
			return nil
		}
		f.entry, f.closed, f.from = entry, entry, len(*f.buf)
		f.w.Reset(*f.buf)
	}
	first := f.from == 0 && f.w.Count() == 0
	if !first && f.from+f.w.Len()+f.w.Size(r) > f.budget {
		f.closed = entry + 1
		return nil
	}
	if !f.roomFor(r) || !f.w.Add(r) {
		f.closed = entry + 1
	}
	return nil
}

// endEntry closes the open batch.
func (f *filler) endEntry() {
	if f.entry < 0 {
		return
	}
	*f.buf = f.w.Finish()
	if to := len(*f.buf); to > f.from {
		f.spans = append(f.spans, span{answer: f.answers[f.entry], from: f.from, to: to})
	}
	f.closed = max(f.closed, f.entry+1)
	f.entry = -1
}

// finish hands the batches to the answers that have no error; the buffer does
// not move any more.
func (f *filler) finish() {
	for _, s := range f.spans {
		if s.answer.ErrorCode == 0 && s.answer.HighWatermark >= 0 {
			s.answer.RecordBatches = (*f.buf)[s.from:s.to:s.to]
		}
	}
}
