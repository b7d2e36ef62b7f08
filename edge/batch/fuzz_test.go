package batch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/snappy"
)

// seeds are what producers sent (testdata/producers) up to a size the fuzzer
// can work with, and small batches of every codec.
func seeds(f *testing.F) (out [][]byte) {
	files, err := filepath.Glob("testdata/producers/*.bin")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(raw) < 8<<10 {
			out = append(out, raw)
		}
	}
	for c := None; c <= Zstd; c++ {
		out = append(out, recompress(f, write(f, make3()), c), recompress(f, write(f, tricky()[:7]), c))
	}
	return out
}

// known says that err is one of the four the package promises.
func known(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrMagic) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalidRecord)
}

// FuzzNext seals half of its inputs, for the CRC alone would stop the rest.
func FuzzNext(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, sealed bool) {
		if sealed && len(raw) >= headerSize {
			raw = seal(bytes.Clone(raw))
		}
		for rest := raw; len(rest) > 0; {
			b, next, err := Next(rest)
			if err != nil {
				if !known(err) {
					t.Fatal(err)
				}
				return
			}
			if b.Magic == magicV2 && headerSize+len(b.body)+len(next) != len(rest) {
				t.Fatalf("%d + %d + %d of %d bytes", headerSize, len(b.body), len(next), len(rest))
			}
			_, err = readAll(&b, &Budget{Bytes: 1 << 20, Records: 10_000})
			if err != nil && !known(err) {
				t.Fatal(err)
			}
			rest = next
		}
	})
}

// FuzzEach gives any bytes to any codec under a small budget.
func FuzzEach(f *testing.F) {
	for _, s := range seeds(f) {
		b := first(f, s)
		f.Add(byte(b.Codec()), b.body, b.NumRecords, 1<<20)
		f.Add(byte(b.Codec()), b.body, b.NumRecords, len(b.body)-1)
	}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, codec byte, body []byte, count int32, bytes int) {
		bytes = int(uint(bytes) % (2 << 20))
		b := Batch{Magic: magicV2, Attributes: int16(codec & codecMask), NumRecords: count, LastOffsetDelta: count - 1, body: body}
		budget := &Budget{Bytes: bytes, Records: 100_000}
		seen, size := int32(0), 0
		err := d.Each(&b, budget, func(r *Record) error {
			if r.Offset != int64(seen) {
				t.Fatalf("offset %d after %d records", r.Offset, seen)
			}
			seen++
			size += minRecord + 1 - 2 + max(1, len(r.Key)) + max(1, len(r.Value)) + minHeader*len(r.Headers)
			return nil
		})
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if err == nil && seen != count {
			t.Fatalf("%d records of %d", seen, count)
		}
		if budget.Bytes < 0 || budget.Records < 0 || budget.Bytes > bytes {
			t.Fatalf("budget of %d is now %+v", bytes, *budget)
		}
		if size > bytes {
			t.Fatalf("records of %d bytes from a budget of %d", size, bytes)
		}
	})
}

// FuzzTwin holds the codecs against each other: the same record bytes must meet
// the same end, whether they come at once or as a stream.
func FuzzTwin(f *testing.F) {
	for _, s := range seeds(f) {
		if b := first(f, s); b.Codec() == None {
			f.Add(b.body, b.NumRecords, 1<<20)
			f.Add(b.body, b.NumRecords, len(b.body)-1)
			f.Add(b.body[:len(b.body)-1], b.NumRecords, len(b.body))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, count int32, bytes int) {
		if len(raw) == 0 {
			return // some codecs refuse to be empty
		}
		bytes = int(uint(bytes) % (1 << 20))
		read := func(c Codec) ([]Record, error) {
			body, err := Compress(nil, c, raw)
			if err != nil {
				t.Fatal(err)
			}
			b := Batch{Magic: magicV2, Attributes: int16(c), NumRecords: count, LastOffsetDelta: count - 1, body: body}
			return readAll(&b, &Budget{Bytes: bytes, Records: 100_000})
		}
		want, wantErr := read(None)
		for c := Gzip; c <= Zstd; c++ {
			got, err := read(c)
			for _, e := range []error{ErrCorrupt, ErrMagic, ErrTooLarge, ErrInvalidRecord} {
				if errors.Is(err, e) != errors.Is(wantErr, e) {
					t.Fatalf("%s: %v, but uncompressed: %v", c, err, wantErr)
				}
			}
			if err == nil {
				sameRecords(t, got, want)
			}
		}
	})
}

// FuzzSnappyXerial finds framed input that is not what was framed.
func FuzzSnappyXerial(f *testing.F) {
	f.Add([]byte{}, 100)
	f.Add([]byte(xerialHeader), 0)
	f.Add(appendXerial(nil, jsonish(300)), 300)
	f.Add(appendXerial(nil, jsonish(300)), 299)
	f.Add(append(appendXerial(nil, noise(50)), appendXerial(nil, jsonish(50))...), 1000)
	f.Add(snappy.Encode(nil, jsonish(300)), 1000)
	for _, s := range seeds(f) {
		if b := first(f, s); b.Codec() == Snappy {
			f.Add(b.body, 1<<16)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, limit int) {
		limit = int(uint(limit) % (1 << 20))
		raw, err := unsnappy(nil, src, limit)
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		if len(raw) > limit || len(raw) > snappyRatio*len(src) {
			t.Fatalf("%d bytes of %d, limit %d", len(raw), len(src), limit)
		}
		again, err := unsnappy(nil, appendXerial(nil, raw), limit)
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("framed again: %v", err)
		}
	})
}
