package batch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tricky is what proxies are known to get wrong.
func tricky() []Record {
	key, value := []byte("k"), []byte("v")
	rs := []Record{
		{Timestamp: 1700000000000},
		{Timestamp: 0, Key: []byte{}, Value: []byte{}},
		{Timestamp: -1, Key: []byte{}, Value: nil},
		{Timestamp: 253402300799000, Key: nil, Value: []byte{}},
		{Timestamp: math.MaxInt64, Key: key, Value: value},
		{Timestamp: math.MinInt64, Key: []byte{0xff, 0, 0xfe}, Value: []byte{0xc3}},
		{Headers: []Header{{key, nil}, {key, []byte{}}, {key, value}, {[]byte{}, nil}, {[]byte("é☃"), []byte{0xff}}}},
		{Headers: manyHeaders()},
		{Value: jsonish(900 << 10)},
		{Value: noise(900 << 10)},
	}
	for _, n := range []int{1, 61, 62, 63, 64, 65, 8190, 8191, 8192, 65535, 65536} {
		rs = append(rs, Record{Value: jsonish(n)})
	}
	for i := range rs {
		rs[i].Offset = int64(i)
	}
	return rs
}

func TestRoundTrip(t *testing.T) {
	rs := tricky()
	plain := write(t, rs)
	allCodecs(t, func(t *testing.T, c Codec) {
		raw := recompress(t, plain, c)
		b := first(t, raw)
		if b.Codec() != c || b.NumRecords != int32(len(rs)) {
			t.Fatalf("%s, %d records", b.Codec(), b.NumRecords)
		}
		got, err := readAll(&b, roomy())
		if err != nil {
			t.Fatal(err)
		}
		sameRecords(t, got, rs)
		// Alone in its batch each record takes other paths.
		for _, r := range rs {
			r.Offset = 0
			b := first(t, recompress(t, write(t, []Record{r}), c))
			got, err := readAll(&b, roomy())
			if err != nil {
				t.Fatal(err)
			}
			sameRecords(t, got, []Record{r})
		}
	})
}

// A Decoder that has read, or failed to read, one codec reads the others.
func TestDecoderIsReusable(t *testing.T) {
	rs := tricky()[:8]
	plain := write(t, rs)
	var pool Pool
	for round := range 3 {
		for c := None; c <= Zstd; c++ {
			d := pool.Get()
			raw := recompress(t, plain, c)
			good := first(t, raw)
			bad := good
			bad.body = bad.body[:len(bad.body)/2]
			if err := d.Each(&bad, roomy(), func(*Record) error { return nil }); err == nil {
				t.Error("half a batch was read")
			}
			var got []Record
			if err := d.Each(&good, roomy(), func(r *Record) error { got = append(got, clone(r)); return nil }); err != nil {
				t.Fatal(round, c, err)
			}
			sameRecords(t, got, rs)
			pool.Put(d)
		}
	}
}

func TestLogAppendTime(t *testing.T) {
	raw := write(t, make3())
	raw[offAttributes+1] |= attrLogAppendTime
	binary.BigEndian.PutUint64(raw[offMaxTimestamp:], 12345)
	b := first(t, seal(raw))
	got, err := readAll(&b, roomy())
	if err != nil || !b.LogAppendTime() {
		t.Fatal(err)
	}
	for _, r := range got {
		if r.Timestamp != 12345 {
			t.Errorf("timestamp %d", r.Timestamp)
		}
	}
}

func TestAttributes(t *testing.T) {
	for bit, want := range map[int16][3]bool{0: {}, attrLogAppendTime: {true}, attrTransactional: {false, true}, attrControl: {false, false, true}} {
		b := Batch{Magic: magicV2, Attributes: bit | int16(Zstd)}
		if got := [3]bool{b.LogAppendTime(), b.IsTransactional(), b.IsControl()}; got != want || b.Codec() != Zstd {
			t.Errorf("%#x: %v, %s", bit, got, b.Codec())
		}
	}
	if Codec(6).String() != "unknown(6)" {
		t.Error(Codec(6))
	}
}

func TestWriterHeader(t *testing.T) {
	var w Writer
	w.Reset([]byte("before"))
	if w.Len() != 0 || w.Count() != 0 {
		t.Error("not empty", w.Len(), w.Count())
	}
	for _, r := range []Record{{Offset: 100, Timestamp: 50}, {Offset: 105, Timestamp: 70}, {Offset: 107, Timestamp: 60}} {
		size, before := w.Size(&r), w.Len()
		if !w.Add(&r) || w.Len() != before+size {
			t.Errorf("Size is %d, Add added %d", size, w.Len()-before)
		}
	}
	out := w.Finish()
	if w.Count() != 3 || w.Len() != len(out)-6 || w.Add(&Record{Offset: 200}) {
		t.Error("after Finish", w.Count(), w.Len())
	}
	b, rest, err := Next(out[6:])
	if err != nil || len(rest) != 0 || string(out[:6]) != "before" {
		t.Fatal(err)
	}
	b.body = nil
	want := Batch{
		Magic: magicV2, BaseOffset: 100, PartitionLeaderEpoch: -1, LastOffsetDelta: 7, FirstTimestamp: 50, MaxTimestamp: 70,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, NumRecords: 3,
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("header %+v, want %+v", b, want)
	}
}

func TestWriterEmpty(t *testing.T) {
	var w Writer
	w.Reset([]byte("x"))
	if out := w.Finish(); string(out) != "x" {
		t.Errorf("%q", out)
	}
	w.Reset(nil)
	if out := w.Finish(); out != nil {
		t.Errorf("%q", out)
	}
}

func TestWriterOffsets(t *testing.T) {
	for _, c := range []struct {
		base, next int64
		first, ok  bool
	}{
		{0, 1, true, true},
		{0, math.MaxInt32, true, true},
		{0, math.MaxInt32 + 1, true, false},
		{5, math.MaxInt32 + 5, true, true},
		{5, math.MaxInt32 + 6, true, false},
		{5, 5, true, false},
		{5, 4, true, false},
		{5, -1, true, false},
		{math.MaxInt64 - 1, math.MaxInt64, true, true},
		{0, math.MaxInt64, true, false},
		{-1, 0, false, true},
		{math.MinInt64, 0, false, true},
	} {
		var w Writer
		w.Reset(nil)
		if ok := w.Add(&Record{Offset: c.base}); ok != c.first {
			t.Errorf("%d first: %v", c.base, ok)
		}
		before := w.Len()
		if ok := w.Add(&Record{Offset: c.next}); ok != c.ok {
			t.Errorf("%d after %d: %v", c.next, c.base, ok)
		} else if !ok && w.Len() != before {
			t.Errorf("%d after %d: wrote", c.next, c.base)
		}
	}
}

func TestVarints(t *testing.T) {
	for _, v := range []int64{0, -1, 1, 63, -64, 64, -65, 8191, -8192, 8192, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64} {
		b := binary.AppendVarint(nil, v)
		if varintLen(v) != len(b) {
			t.Errorf("%d: length %d, want %d", v, varintLen(v), len(b))
		}
		if got, n := varint64(b); got != v || n != len(b) {
			t.Errorf("%d: %d, %d", v, got, n)
		}
		got, n := varint32(b)
		if fits := v == int64(int32(v)); fits && (int64(got) != v || n != len(b)) || !fits && n >= 0 {
			t.Errorf("%d as 32 bits: %d, %d", v, got, n)
		}
		for i := range b {
			if _, n := varint64(b[:i]); n != 0 {
				t.Errorf("%d cut to %d: %d", v, i, n)
			}
		}
	}
	endless := bytes.Repeat([]byte{0x80}, 20)
	if _, n := varint32(endless); n >= 0 {
		t.Error("endless 32", n)
	}
	if _, n := varint64(endless); n >= 0 {
		t.Error("endless 64", n)
	}
}

// genRecord draws a record with any of its parts null, empty or odd.
func genRecord(offset int64) *rapid.Generator[Record] {
	return rapid.Custom(func(t *rapid.T) Record {
		r := Record{Offset: offset, Timestamp: rapid.Int64().Draw(t, "time"), Key: genBytes().Draw(t, "key"), Value: genBytes().Draw(t, "value")}
		for range rapid.IntRange(0, 4).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{Key: []byte(rapid.String().Draw(t, "name")), Value: genBytes().Draw(t, "header")})
		}
		return r
	})
}

func genBytes() *rapid.Generator[[]byte] {
	return rapid.OneOf(rapid.Just[[]byte](nil), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 1, 200))
}

// What was written is read, in every codec, and Size foretold it.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, math.MaxInt64-100).Draw(t, "base")
		c := Codec(rapid.IntRange(0, int(Zstd)).Draw(t, "codec"))
		var w Writer
		var rs []Record
		w.Reset(nil)
		for i := range rapid.IntRange(1, 20).Draw(t, "count") {
			r := genRecord(base+int64(i)).Draw(t, "record")
			size, before := w.Size(&r), w.Len()
			if !w.Add(&r) || w.Len()-before != size {
				t.Fatalf("Size %d, Add %d", size, w.Len()-before)
			}
			rs = append(rs, r)
		}
		plain := w.Finish()
		body, err := Compress(nil, c, plain[headerSize:])
		if err != nil {
			t.Fatal(err)
		}
		raw := withBody(plain, c, body)
		b, rest, err := Next(append(raw, "tail"...))
		if err != nil || string(rest) != "tail" {
			t.Fatal(err)
		}
		budget := &Budget{Bytes: len(plain) - headerSize, Records: len(rs)}
		got, err := readAll(&b, budget)
		if err != nil || *budget != (Budget{}) {
			t.Fatal(err, *budget)
		}
		sameRecords(t, got, rs)
		late := slices.MaxFunc(rs, func(a, b Record) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
		if b.MaxTimestamp != late.Timestamp {
			t.Fatalf("max timestamp %d, want %d", b.MaxTimestamp, late.Timestamp)
		}
	})
}

// A batch that moves while it is made is the same one, and what lies before it
// stays.
func TestWriterMoves(t *testing.T) {
	rs := tricky()
	want := write(t, rs)
	for at := range len(rs) + 1 {
		var w Writer
		w.Reset([]byte("before"))
		for i := range rs {
			if i == at {
				w.Move(append(make([]byte, 0, 4<<20), "elsewhere"...))
				if w.Room() != 4<<20-len("elsewhere")-w.Len() {
					t.Errorf("moved at %d: room for %d", at, w.Room())
				}
			}
			if !w.Add(&rs[i]) {
				t.Fatalf("record %d refused", i)
			}
		}
		head := "elsewhere"
		if at == len(rs) {
			head = "before"
		}
		if got := w.Finish(); string(got[:len(head)]) != head || !bytes.Equal(got[len(head):], want) || w.Len() != len(want) {
			t.Errorf("moved at %d: another batch", at)
		}
	}
}
