package main

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sequenced is a batch of two records of an idempotent producer.
type sequenced struct {
	producer int64
	epoch    int16
	sequence int32
}

// elsewhere stands for a new connection between two batches.
var elsewhere = sequenced{producer: -1 << 62}

// sequences are idempotent producers, in and out of order, over one connection
// and over several, with a log that knows resends and with one that does not.
func (s *suite) sequences(v int16, window bool) {
	over := "" // the name of a case says when there is no window
	if !window {
		over = ", no window"
	}
	for _, c := range []struct {
		name    string
		batches []sequenced
	}{
		{"sequences in order", []sequenced{{1, 0, 0}, {1, 0, 2}, {1, 0, 4}}},
		{"a sequence again", []sequenced{{2, 0, 0}, {2, 0, 2}, {2, 0, 2}, {2, 0, 0}}},
		{"a gap", []sequenced{{3, 0, 0}, {3, 0, 4}, {3, 0, 2}}},
		{"half a batch again", []sequenced{{4, 0, 0}, {4, 0, 2}, {4, 0, 1}}},
		{"half a batch is new", []sequenced{{16, 0, 0}, {16, 0, 2}, {16, 0, 3}, {16, 0, 5}}},
		{"a batch long ago", []sequenced{{5, 0, 0}, {5, 0, 2}, {5, 0, 4}, {5, 0, 6}, {5, 0, 8}, {5, 0, 10}, {5, 0, 12}, {5, 0, 0}}},
		{"a first sequence that is not 0", []sequenced{{6, 0, 10}, {6, 0, 12}}},
		{"an older epoch", []sequenced{{7, 5, 0}, {7, 4, 2}, {7, 5, 2}}},
		{"a newer epoch from 0", []sequenced{{8, 0, 0}, {8, 1, 0}, {8, 1, 2}}},
		{"a newer epoch not from 0", []sequenced{{9, 0, 0}, {9, 1, 2}, {9, 0, 2}}},
		{"the last sequence", []sequenced{{10, 0, 1<<31 - 2}, {10, 0, 0}}},
		{"over the last sequence", []sequenced{{11, 0, 1<<31 - 1}, {11, 0, 1}}},
		{"sequence -1", []sequenced{{12, 0, -1}}},
		{"sequence -2", []sequenced{{13, 0, -2}}},
		{"epoch -1", []sequenced{{14, -1, 0}}},
		{"epoch -2", []sequenced{{15, -2, 0}}},
		{"producer 0", []sequenced{{0, 0, 0}}},
		{"producer -2", []sequenced{{-2, 0, 0}}},
		{"no producer with an epoch", []sequenced{{-1, 0, -1}}},
		{"no producer with a sequence", []sequenced{{-1, -1, 0}}},

		{"elsewhere, the next", []sequenced{{30, 0, 0}, elsewhere, {30, 0, 2}, {30, 0, 4}}},
		{"elsewhere, again", []sequenced{{31, 0, 0}, {31, 0, 2}, elsewhere, {31, 0, 0}, {31, 0, 2}, {31, 0, 4}}},
		{"elsewhere, a later one first", []sequenced{{32, 0, 0}, {32, 0, 2}, {32, 0, 4}, elsewhere, {32, 0, 4}, {32, 0, 0}, {32, 0, 2}, {32, 0, 6}}},
		{"elsewhere, a gap", []sequenced{{33, 0, 0}, elsewhere, {33, 0, 4}}},
		{"elsewhere, half a batch is new", []sequenced{{34, 0, 0}, {34, 0, 2}, elsewhere, {34, 0, 3}}},
		{"elsewhere, long ago", []sequenced{{35, 0, 0}, {35, 0, 2}, {35, 0, 4}, {35, 0, 6}, {35, 0, 8}, {35, 0, 10}, {35, 0, 12}, elsewhere, {35, 0, 0}}},
		{"elsewhere, an older epoch", []sequenced{{36, 5, 0}, elsewhere, {36, 4, 2}}},
		{"elsewhere, a newer epoch", []sequenced{{37, 0, 0}, elsewhere, {37, 1, 0}, {37, 1, 2}}},
		{"elsewhere, a newer epoch not from 0", []sequenced{{38, 0, 0}, elsewhere, {38, 1, 2}}},
	} {
		topic, p := s.producers(window)
		var steps []step
		anew := false
		for _, n := range c.batches {
			if n == elsewhere {
				anew = true
				continue
			}
			raw := records(s.now, []string{"one", "two"}, by(n.producer, n.epoch, n.sequence))
			steps = append(steps, step{req: produceOf(-1, part(topic, p, raw)), anew: anew})
			anew = false
		}
		s.add(s.row(0), v, c.name+over, steps...)
	}
	s.refusedSequences(v, window, over)
}

// refusedSequences are batches behind one that is refused.
func (s *suite) refusedSequences(v int16, window bool, over string) {
	two := []string{"one", "two"}
	for _, c := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"a sequence after a corrupt one", func(b []byte) []byte { return flip(b, 17) }},
		{"a sequence after a control batch", func([]byte) []byte {
			return records(s.now, two, by(20, 0, 2), func(b *kmsg.RecordBatch) { b.Attributes |= 0x20 })
		}},
	} {
		topic, p := s.producers(window)
		batch := func(sequence int32) []byte { return records(s.now, two, by(20, 0, sequence)) }
		s.add(s.row(0), v, c.name+over, ask(
			produceOf(-1, part(topic, p, batch(0))),
			produceOf(-1, part(topic, p, c.spoil(batch(2)))),
			produceOf(-1, part(topic, p, batch(4))),
			produceOf(-1, part(topic, p, batch(2))),
		)...)
	}
}
