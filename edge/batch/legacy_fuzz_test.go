package batch

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// legacySeeds are what producers sent (testdata/legacy).
func legacySeeds(f *testing.F) (out [][]byte) {
	files, err := filepath.Glob("testdata/legacy/*.bin")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

// FuzzLegacyNext walks any bytes as a partition's. Half of the inputs have their
// first message sealed, for the CRC alone would stop them.
func FuzzLegacyNext(f *testing.F) {
	for _, s := range legacySeeds(f) {
		f.Add(s, true, 1<<20)
		f.Add(append(bytes.Clone(s), s...), false, 1000)
	}
	f.Fuzz(func(t *testing.T, raw []byte, sealed bool, size int) {
		if sealed && len(raw) > offMessageAttributes {
			raw = sealMessage(bytes.Clone(raw))
		}
		size = int(uint(size) % (1 << 20))
		budget := &Budget{Bytes: size, Records: 10_000}
		for rest := raw; len(rest) > 0; {
			b, next, err := Next(rest)
			if err == nil && len(next) >= len(rest) {
				t.Fatalf("%d bytes left of %d", len(next), len(rest))
			}
			if err == nil {
				_, err = readAll(&b, budget)
			}
			if err != nil {
				if !known(err) {
					t.Fatal(err)
				}
				break
			}
			rest = next
		}
		if budget.Bytes < 0 || budget.Records < 0 {
			t.Fatalf("budget of %d is now %+v", size, *budget)
		}
	})
}

// FuzzLegacyEach gives any bytes to any codec of the old formats.
func FuzzLegacyEach(f *testing.F) {
	for _, s := range legacySeeds(f) {
		b := first(f, s)
		f.Add(b.Magic == magicV1, byte(b.Codec()), b.body, 1<<20, int64(3))
		f.Add(b.Magic == magicV1, byte(b.Codec()), b.body, len(b.body)-1, int64(0))
	}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, v1 bool, codec byte, body []byte, size int, offset int64) {
		size = int(uint(size) % (2 << 20))
		b := Batch{Attributes: int16(codec & codecMask), BaseOffset: offset, NumRecords: undeclared, body: body}
		if v1 {
			b.Magic = magicV1
		}
		budget := &Budget{Bytes: size, Records: 100_000}
		before := bytes.Clone(body)
		seen, read := int64(0), 0
		err := d.Each(&b, budget, func(r *Record) error {
			if r.Offset != seen || r.Headers != nil || !v1 && r.Timestamp != noTime {
				t.Fatalf("record %d is %s", seen, text(*r))
			}
			seen++
			read += lengthEnd + overheadV0 + len(r.Key) + len(r.Value)
			return nil
		})
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if budget.Bytes < 0 || budget.Records != 100_000-int(seen) && err == nil {
			t.Fatalf("budget of %d is now %+v after %d records", size, *budget, seen)
		}
		if read > size {
			t.Fatalf("messages of %d bytes from a budget of %d", read, size)
		}
		if !bytes.Equal(body, before) {
			t.Fatal("the caller's bytes were changed")
		}
	})
}

// FuzzLegacyTwin holds the codecs against each other: the same messages meet the
// same end, whether they come at once or as a stream.
func FuzzLegacyTwin(f *testing.F) {
	for _, s := range legacySeeds(f) {
		if b := first(f, s); b.Codec() == None {
			f.Add(b.body, b.Magic == magicV1, 1<<20)
			f.Add(b.body, b.Magic == magicV1, len(b.body)-1)
			f.Add(b.body[:len(b.body)-1], b.Magic == magicV1, len(b.body))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, v1 bool, size int) {
		if len(raw) == 0 {
			return // some codecs refuse to be empty
		}
		size = int(uint(size) % (1 << 20))
		read := func(c Codec) ([]Record, error) {
			body, err := Compress(nil, c, raw)
			if err != nil {
				t.Fatal(err)
			}
			b := Batch{Attributes: int16(c), NumRecords: undeclared, body: body}
			if v1 {
				b.Magic = magicV1
			}
			return readAll(&b, &Budget{Bytes: size, Records: 100_000})
		}
		want, wantErr := read(Gzip)
		for c := Snappy; c <= LZ4; c++ {
			got, err := read(c)
			for _, e := range []error{ErrCorrupt, ErrMagic, ErrTooLarge, ErrInvalidRecord} {
				if errors.Is(err, e) != errors.Is(wantErr, e) {
					t.Fatalf("%s: %v, but gzip: %v", c, err, wantErr)
				}
			}
			if err == nil {
				sameRecords(t, got, want)
			}
		}
	})
}

// Whatever messages are written are read, in every format, codec and grouping.
func TestLegacyProperty(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	value := func() []byte {
		switch n := rnd.IntN(4); n {
		case 0:
			return nil
		case 1:
			return []byte{}
		case 2:
			return noise(rnd.IntN(300))
		default:
			return jsonish(rnd.IntN(200_000))
		}
	}
	legacyCodecs(t, func(t *testing.T, magic int8, c Codec) {
		for range 25 {
			var raw []byte
			var want []Record
			for range 1 + rnd.IntN(3) {
				var ms []msg
				for i := range 1 + rnd.IntN(20) {
					m := msg{offset: int64(i), magic: magic, time: rnd.Int64(), key: value(), value: value()}
					r := Record{Offset: int64(i), Timestamp: m.time, Key: m.key, Value: m.value}
					if magic == magicV0 {
						r.Timestamp = noTime
					}
					if c == None {
						r.Offset = int64(len(want)) // all of them are one run
					}
					ms, want = append(ms, m), append(want, r)
				}
				set := messages(ms...)
				if c != None {
					set = wrap(t, magic, c, int64(len(ms)-1), set).bytes()
				}
				raw = append(raw, set...)
			}
			got, err := readSet(raw, &Budget{Bytes: 1 << 30, Records: 1000})
			if err != nil {
				t.Fatal(err)
			}
			sameRecords(t, got, want)
		}
	})
}

func BenchmarkLegacy(b *testing.B) {
	plain := first(b, benchBatch(b))
	rs, err := readAll(&plain, roomy())
	if err != nil {
		b.Fatal(err)
	}
	var set []byte
	for i, r := range rs {
		set = append(set, msg{offset: int64(i), magic: magicV1, time: r.Timestamp, key: r.Key, value: r.Value}.bytes()...)
	}
	for c := None; c <= LZ4; c++ {
		b.Run(c.String(), func(b *testing.B) {
			raw := set
			if c != None {
				raw = wrap(b, magicV1, c, int64(len(rs)-1), set).bytes()
			}
			d := NewDecoder()
			b.SetBytes(int64(len(set)))
			b.ReportAllocs()
			for b.Loop() {
				batch, _, err := Next(raw)
				if err != nil {
					b.Fatal(err)
				}
				if err := d.Each(&batch, &Budget{Bytes: 2 << 20, Records: benchRecords}, func(*Record) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
