package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// roomy is the budget of one produce request.
func roomy() *Budget { return &Budget{Bytes: 100 << 20, Records: 1_000_000} }

// clone copies a record out of a Decoder's memory.
func clone(r *Record) Record {
	out := Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: cloneBytes(r.Key), Value: cloneBytes(r.Value)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{Key: cloneBytes(h.Key), Value: cloneBytes(h.Value)})
	}
	return out
}

func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// text shows a record with null and empty told apart.
func text(r Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d@%d %s=%s", r.Offset, r.Timestamp, nullText(r.Key), nullText(r.Value))
	for _, h := range r.Headers {
		fmt.Fprintf(&b, " %s:%s", nullText(h.Key), nullText(h.Value))
	}
	return b.String()
}

func nullText(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// sameRecords fails at the first difference.
func sameRecords(t interface{ Fatalf(string, ...any) }, got, want []Record) {
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if reflect.DeepEqual(got[i], want[i]) {
			continue // tells null from empty, but not nil headers from none
		}
		if g, w := text(got[i]), text(want[i]); g != w {
			t.Fatalf("record %d is\n%.300s\nwant\n%.300s", i, g, w)
		}
	}
}

// readAll is what Each yields of one batch.
func readAll(b *Batch, budget *Budget) (out []Record, err error) {
	err = NewDecoder().Each(b, budget, func(r *Record) error {
		out = append(out, clone(r))
		return nil
	})
	return out, err
}

// write makes one batch of rs with the Writer.
func write(t testing.TB, rs []Record) []byte {
	var w Writer
	w.Reset(nil)
	for i := range rs {
		if !w.Add(&rs[i]) {
			t.Fatalf("record %d refused", i)
		}
	}
	return w.Finish()
}

// first is the first batch of raw.
func first(t testing.TB, raw []byte) Batch {
	t.Helper()
	b, _, err := Next(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recompress is the batch raw under another codec.
func recompress(t testing.TB, raw []byte, c Codec) []byte {
	t.Helper()
	body, err := Compress(nil, c, raw[headerSize:])
	if err != nil {
		t.Fatal(err)
	}
	return withBody(raw, c, body)
}

// withBody is the header of raw before another body, sealed anew.
func withBody(raw []byte, c Codec, body []byte) []byte {
	out := append(append([]byte{}, raw[:headerSize]...), body...)
	attrs := binary.BigEndian.Uint16(out[offAttributes:])&^codecMask | uint16(c)
	binary.BigEndian.PutUint16(out[offAttributes:], attrs)
	return seal(out)
}

// seal makes the length and the CRC true.
func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[offLength:], uint32(len(raw)-lengthEnd))
	binary.BigEndian.PutUint32(raw[offCRC:], crc32.Checksum(raw[offAttributes:], castagnoli))
	return raw
}

// jsonish is n bytes that compress as messages do; past 200,000 it repeats.
func jsonish(n int) []byte {
	b := make([]byte, 0, n+32)
	for i := 0; len(b) < min(n, 200_000); i++ {
		b = append(b, `{"id":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"name":"record"}`...)
	}
	for len(b) < n {
		b = append(b, b[:min(len(b), n-len(b))]...)
	}
	return b[:n]
}

// noise is n bytes that do not compress, the same in every run.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// allCodecs calls fn as a subtest of each codec.
func allCodecs(t *testing.T, fn func(t *testing.T, c Codec)) {
	for c := None; c <= Zstd; c++ {
		t.Run(c.String(), func(t *testing.T) { fn(t, c) })
	}
}
