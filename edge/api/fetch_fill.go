package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// filler turns the records of a fetch, as they come off the wire, into one batch
// per partition, and keeps the response within its budget. The first record of
// a response always goes, however large (KIP-74).
//
// The batches lie in memory of the connection until the response is written.
type filler struct {
	budget  int
	room    *lease // of the answer
	starved bool   // there was no room for a record
	memory  *pieces
	bytes   int // of the batches that are whole
	made    []made
	answers []*kmsg.FetchResponseTopicPartition // of this chunk
	entry   int                                 // whose batch is open; −1: none
	closed  int                                 // entries below this one take no more records
	w       batch.Writer
}

// made is an answer's batch.
type made struct {
	answer *kmsg.FetchResponseTopicPartition
	batch  []byte
}

// start begins a chunk; its records are given by index into answers.
func (f *filler) start(answers []*kmsg.FetchResponseTopicPartition) {
	f.answers, f.entry, f.closed = answers, -1, 0
}

func (f *filler) full() bool { return f.starved || f.bytes >= f.budget }

// roomFor makes room for another size bytes of the open batch, or says that what
// is here already is the answer.
func (f *filler) roomFor(size int) bool {
	if f.w.Room() >= size {
		return true
	}
	want := f.memory.want(f.w.Len() + size)
	if !f.room.cover(int64(f.memory.held + want)) {
		f.starved = true
		return false
	}
	piece := f.memory.pool.Get(want)
	f.w.Move(*piece)
	f.memory.add(piece)
	return true
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
		f.entry, f.closed = entry, entry
		f.w.Reset(f.memory.last())
	}
	size := f.w.Size(r)
	first := f.bytes == 0 && f.w.Count() == 0
	if !first && f.bytes+f.w.Len()+size > f.budget {
		f.closed = entry + 1
		return nil
	}
	if !f.roomFor(size) || !f.w.Add(r) {
		f.closed = entry + 1
	}
	return nil
}

// endEntry closes the open batch.
func (f *filler) endEntry() {
	if f.entry < 0 {
		return
	}
	piece := f.w.Finish()
	f.memory.close(piece)
	if n := f.w.Len(); n > 0 {
		end := len(piece)
		f.made = append(f.made, made{answer: f.answers[f.entry], batch: piece[end-n : end : end]})
		f.bytes += n
	}
	f.closed = max(f.closed, f.entry+1)
	f.entry = -1
}

// finish hands the batches to the answers that have no error.
func (f *filler) finish() {
	for _, m := range f.made {
		if m.answer.ErrorCode == 0 && m.answer.HighWatermark >= 0 {
			m.answer.RecordBatches = m.batch
		}
	}
}
