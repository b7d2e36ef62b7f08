package api

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/slab"
	"github.com/queen-mq/queen-edge/tenancy"
)

// asked are answers of partitions that have records.
func asked(n int) []*kmsg.FetchResponseTopicPartition {
	out := make([]*kmsg.FetchResponseTopicPartition, n)
	for i := range out {
		p := kmsg.NewFetchResponseTopicPartition()
		out[i] = &p
	}
	return out
}

// Whatever pieces the batches come to lie in, each is what a buffer of its own
// would hold, as far as the budget goes, and the ceiling counts every piece.
func TestFillerMakesTheSameBatches(t *testing.T) {
	scope := someScope(t, "acme")
	pool := &slab.Pool{}
	rapid.Check(t, func(t *rapid.T) {
		ceiling := tenancy.NewCeiling(1<<40, 0)
		room := &lease{ceiling: ceiling, scope: scope}
		memory := &pieces{pool: pool}
		budget := rapid.SampledFrom([]int{1, 5000, 100_000, 3 << 20}).Draw(t, "budget")
		f := &filler{budget: budget, room: room, memory: memory}
		size := rapid.SampledFrom([]int{0, 1, 100, 1000, 4000, 5000, 70_000, 1_100_000})
		counts := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 8).Draw(t, "entries")
		answers := asked(len(counts))
		want := make([][]byte, len(counts))
		f.start(answers)
		total, offset := 0, int64(0)
		for entry, n := range counts {
			var w batch.Writer
			w.Reset(nil)
			open := total < budget
			value := bytes.Repeat([]byte{byte(entry)}, size.Draw(t, "size"))
			for range n {
				r := &batch.Record{Offset: offset, Timestamp: offset, Value: value}
				offset++
				if err := f.record(entry, r); err != nil {
					t.Fatal(err)
				}
				first := total == 0 && w.Count() == 0
				if open = open && (first || total+w.Len()+w.Size(r) <= budget); open {
					w.Add(r)
				}
				if held := ceiling.Held(scope); held < int64(memory.held) {
					t.Fatalf("%d bytes of memory, %d of the ceiling", memory.held, held)
				}
			}
			want[entry] = w.Finish()
			total += len(want[entry])
		}
		f.endEntry()
		answers[0].HighWatermark = -1 // nothing is given without its bounds
		for _, a := range answers[1:] {
			a.HighWatermark = offset
		}
		f.finish()
		for i := range answers {
			if i == 0 {
				want[i] = nil
			}
			if !bytes.Equal(answers[i].RecordBatches, want[i]) {
				t.Fatalf("entry %d of %v: %d bytes, want %d", i, counts, len(answers[i].RecordBatches), len(want[i]))
			}
		}
		if most := 4*total + 3*slab.Least; memory.held > most {
			t.Fatalf("%d bytes of memory for %d of batches", memory.held, total)
		}
		memory.release()
		if memory.held != 0 || len(memory.all) != 0 {
			t.Fatalf("%d bytes held", memory.held)
		}
	})
}

// Without room for a record what is there already is the answer.
func TestFillerStarves(t *testing.T) {
	scope := someScope(t, "acme")
	room := &lease{ceiling: tenancy.NewCeiling(slab.Least, 0), scope: scope}
	f := &filler{budget: 1 << 20, room: room, memory: &pieces{pool: &slab.Pool{}}}
	answers := asked(2)
	f.start(answers)
	for i := range int64(10) {
		if err := f.record(int(i/5), &batch.Record{Offset: i, Value: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	f.endEntry()
	f.finish()
	b, _, err := batch.Next(answers[0].RecordBatches)
	if err != nil || b.NumRecords != 3 || len(answers[1].RecordBatches) != 0 || !f.starved {
		t.Errorf("%v, %d records and %d bytes; starved: %v", err, b.NumRecords, len(answers[1].RecordBatches), f.starved)
	}
}
