package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// filler turns the records of a fetch, as they come off the wire, into one batch
// per partition, and keeps the response within its budget. The first record of
// a response always goes, however large (KIP-74).
type filler struct {
	budget  int
	used    int
	answers []*kmsg.FetchResponseTopicPartition
	entry   int // whose batch is open; −1: none
	closed  int // entries below this one take no more records
	w       batch.Writer
}

// start begins a chunk; its records are given by index into answers.
func (f *filler) start(answers []*kmsg.FetchResponseTopicPartition) {
	f.answers, f.entry, f.closed = answers, -1, 0
}

func (f *filler) full() bool { return f.used >= f.budget }

// record takes one record, or leaves it for the client's next fetch.
func (f *filler) record(entry int, r *batch.Record) error {
	if entry < f.closed {
		return nil
	}
	if entry != f.entry {
		f.endEntry()
		if f.full() {
			return nil
		}
		f.entry, f.closed = entry, entry
		f.w.Reset(nil)
	}
	size := f.w.Size(r)
	if f.used > 0 || f.w.Count() > 0 {
		if f.used+f.w.Len()+size > f.budget {
			f.closed = entry + 1
			return nil
		}
	}
	if !f.w.Add(r) {
		f.closed = entry + 1
	}
	return nil
}

// endEntry closes the open batch.
func (f *filler) endEntry() {
	if f.entry < 0 {
		return
	}
	b := f.w.Finish()
	if len(b) > 0 {
		f.answers[f.entry].RecordBatches = b
		f.used += len(b)
	}
	f.closed = max(f.closed, f.entry+1)
	f.entry = -1
}
