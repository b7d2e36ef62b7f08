package batch

import (
	"fmt"
	"testing"
)

const benchRecords = 1000

// benchBatch is 1,000 records of 1 KB that compress as messages do.
func benchBatch(tb testing.TB) []byte {
	rs := make([]Record, benchRecords)
	for i := range rs {
		value := fmt.Appendf(nil, `{"order":%d,"sum":%d,`, i, i*7919)
		value = append(value, jsonish(700)...)
		value = fmt.Appendf(value, `"noise":"%x"}`, noise(130 + i%3)[i%64:])
		rs[i] = Record{
			Offset: int64(i), Timestamp: 1700000000000 + int64(i), Key: fmt.Appendf(nil, "key-%d", i), Value: value,
			Headers: []Header{{[]byte("trace"), []byte("0123456789abcdef")}},
		}
	}
	return write(tb, rs)
}

func BenchmarkEach(b *testing.B) {
	plain := benchBatch(b)
	for c := None; c <= Zstd; c++ {
		b.Run(c.String(), func(b *testing.B) {
			raw := recompress(b, plain, c)
			d := NewDecoder()
			b.SetBytes(int64(len(plain) - headerSize))
			b.ReportAllocs()
			for b.Loop() {
				batch, _, err := Next(raw)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				err = d.Each(&batch, &Budget{Bytes: 2 << 20, Records: benchRecords}, func(*Record) error { n++; return nil })
				if err != nil || n != benchRecords {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	raw := benchBatch(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Next(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	batch := first(b, benchBatch(b))
	rs, err := readAll(&batch, roomy())
	if err != nil {
		b.Fatal(err)
	}
	var w Writer
	var dst []byte
	b.SetBytes(int64(len(batch.body)))
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(dst[:0])
		for i := range rs {
			if !w.Add(&rs[i]) {
				b.Fatal(i)
			}
		}
		dst = w.Finish()
	}
}

// Nothing is allocated for a record. A batch may cost a few: LZ4's reader is made
// anew (see Decoder.lz4), and zstd takes tables from a sync.Pool of its own, which
// a collection empties and the race detector makes forget at random.
func TestAllocations(t *testing.T) {
	plain := benchBatch(t)
	allCodecs(t, func(t *testing.T, c Codec) {
		raw := recompress(t, plain, c)
		batch := first(t, raw)
		d, budget := NewDecoder(), Budget{}
		fn := func(*Record) error { return nil }
		most := map[Codec]float64{LZ4: 20, Zstd: 20}[c]
		got := testing.AllocsPerRun(20, func() {
			budget = Budget{Bytes: 2 << 20, Records: benchRecords}
			if err := d.Each(&batch, &budget, fn); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%v per batch", got)
		if got > most {
			t.Errorf("%v allocations per batch, at most %v", got, most)
		}
	})
	var w Writer
	rs, dst := tricky(), make([]byte, 0, 4<<20)
	if got := testing.AllocsPerRun(20, func() {
		w.Reset(dst)
		for i := range rs {
			w.Add(&rs[i])
		}
		w.Finish()
	}); got != 0 {
		t.Errorf("Writer: %v allocations", got)
	}
}
