package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
)

// allocated is how many bytes fn takes from the heap, freed or not.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBudgetLimit(t *testing.T) {
	sizes := []int{1, 1000, 64 << 10, 128 << 10, 4500 << 10}
	allCodecs(t, func(t *testing.T, c Codec) {
		for _, size := range sizes {
			plain := write(t, []Record{{Offset: 0, Value: jsonish(size)}, {Offset: 1, Value: noise(10)}})
			b := first(t, recompress(t, plain, c))
			need := len(plain) - headerSize
			at := &Budget{Bytes: need, Records: 2}
			if _, err := readAll(&b, at); err != nil || *at != (Budget{}) {
				t.Errorf("%d bytes at the limit: %v, left %+v", size, err, *at)
			}
			for _, bytes := range []int{need - 1, need / 2, 0} {
				if _, err := readAll(&b, &Budget{Bytes: bytes, Records: 2}); !errors.Is(err, ErrTooLarge) {
					t.Errorf("%d bytes, %d left of %d: %v", size, bytes, need, err)
				}
			}
		}
	})
}

func TestBudgetRecords(t *testing.T) {
	allCodecs(t, func(t *testing.T, c Codec) {
		b := first(t, recompress(t, write(t, make3()), c))
		budget := &Budget{Bytes: 1 << 20, Records: 2}
		called := false
		err := NewDecoder().Each(&b, budget, func(*Record) error { called = true; return nil })
		if !errors.Is(err, ErrTooLarge) || called || *budget != (Budget{Bytes: 1 << 20, Records: 2}) {
			t.Errorf("%v, called %v, %+v", err, called, *budget)
		}
	})
}

func make3() []Record {
	return []Record{{Offset: 0, Value: []byte("a")}, {Offset: 1}, {Offset: 2, Key: []byte("k")}}
}

// One request has one budget for its batches.
func TestBudgetIsShared(t *testing.T) {
	allCodecs(t, func(t *testing.T, c Codec) {
		plain := write(t, make3())
		b := first(t, recompress(t, plain, c))
		budget := &Budget{Bytes: 2*(len(plain)-headerSize) + 1, Records: 9}
		d := NewDecoder()
		for i, want := range []error{nil, nil, ErrTooLarge} {
			if err := d.Each(&b, budget, func(*Record) error { return nil }); !errors.Is(err, want) {
				t.Errorf("batch %d: %v", i, err)
			}
		}
	})
}

const (
	bombPart  = 4 << 20
	bombParts = 256 // 1 GiB
)

// bomb is 1 GiB of zeros after head, compressed; parts are repeated, as every
// one of the formats allows, so that making it is cheap.
func bomb(t *testing.T, c Codec, head []byte) []byte {
	t.Helper()
	zeros := make([]byte, bombPart)
	if c == LZ4 {
		return lz4Bomb(t, head, zeros)
	}
	out, err := Compress(nil, c, head)
	if err != nil {
		t.Fatal(err)
	}
	part, err := Compress(nil, c, zeros)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, bytes.Repeat(part, bombParts)...)
}

// lz4Bomb repeats a block, not a frame: one frame of 4 MiB blocks.
func lz4Bomb(t *testing.T, head, zeros []byte) []byte {
	out := lz4Frame(t, false, head)
	out = out[:len(out)-4] // without the end
	out = append(out, bytes.Repeat(lz4Block(t, zeros), bombParts)...)
	return append(out, 0, 0, 0, 0)
}

func TestBombs(t *testing.T) {
	const most = 110 << 20
	// A record that declares 90 MiB, which the budget allows, and then goes on.
	record := binary.AppendVarint(nil, 90<<20)
	record = append(record, 0, 0, 0, 1)
	record = binary.AppendVarint(record, 90<<20-100)
	huge := binary.AppendVarint(nil, 1<<30)
	for name, head := range map[string][]byte{"zeros": {0}, "record": record, "record of 1 GiB": huge} {
		allCodecs(t, func(t *testing.T, c Codec) {
			if c == None || c > Gzip && name == "record of 1 GiB" {
				t.Skip("nothing is compressed, or as zeros")
			}
			b := first(t, withBody(write(t, make3()), c, bomb(t, c, head)))
			runtime.GC()
			var err error
			grown := allocated(func() { _, err = readAll(&b, roomy()) })
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("%s: %d KiB of input cost %.1f MiB", name, len(b.body)>>10, float64(grown)/(1<<20))
			if grown > most {
				t.Errorf("%s: allocated %d bytes", name, grown)
			}
		})
	}
}

// Declared lengths buy nothing.
func TestDeclaredLengths(t *testing.T) {
	record := binary.AppendVarint(nil, 99<<20) // of which two bytes come
	record = append(record, 0, 0)
	for c := None; c <= Zstd; c++ {
		b := first(t, recompress(t, withBody(write(t, make3()), None, record), c))
		var err error
		grown := allocated(func() { _, err = readAll(&b, roomy()) })
		if !errors.Is(err, ErrCorrupt) || grown > 4<<20 {
			t.Errorf("%s: %v, allocated %d", c, err, grown)
		}
	}
	raw := binary.AppendUvarint(nil, 99<<20) // raw snappy of 99 MiB in 20 bytes
	b := first(t, withBody(write(t, make3()), Snappy, append(raw, make([]byte, 16)...)))
	var err error
	grown := allocated(func() { _, err = readAll(&b, roomy()) })
	if !errors.Is(err, ErrCorrupt) || grown > 1<<20 {
		t.Errorf("snappy: %v, allocated %d", err, grown)
	}
}

// What a large batch took is not kept.
func TestScratchIsBounded(t *testing.T) {
	allCodecs(t, func(t *testing.T, c Codec) {
		d := NewDecoder()
		for _, size := range []int{1000, 2 << 20, 5 << 20, 2000} {
			b := first(t, recompress(t, write(t, []Record{{Value: jsonish(size)}}), c))
			if err := d.Each(&b, roomy(), func(*Record) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if cap(d.scratch) > keepScratch {
				t.Errorf("keeps %d bytes after %d", cap(d.scratch), size)
			}
			if d.win.buf != nil || d.rec.Value != nil || d.lz != nil {
				t.Errorf("keeps the batch")
			}
		}
	})
}
