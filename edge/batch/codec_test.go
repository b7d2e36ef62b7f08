package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// accepts says that body, under codec c, holds the same records as plain.
func accepts(t *testing.T, what string, plain []byte, c Codec, body []byte) {
	t.Helper()
	want, got := first(t, plain), first(t, withBody(plain, c, body))
	a, err := readAll(&want, roomy())
	if err != nil {
		t.Fatal(err)
	}
	b, err := readAll(&got, roomy())
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	sameRecords(t, b, a)
}

func refuses(t *testing.T, what string, plain []byte, c Codec, body []byte) {
	t.Helper()
	b := first(t, withBody(plain, c, body))
	if _, err := readAll(&b, roomy()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestSnappyForms(t *testing.T) {
	plain := write(t, []Record{{Value: jsonish(200_000)}, {Offset: 1, Value: noise(70_000)}})
	raw := plain[headerSize:]
	framed := appendXerial(nil, raw)
	block := func(b []byte) []byte {
		b = snappy.Encode(nil, b)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	header := []byte(xerialHeader)
	other := append(bytes.Clone(header[:xerialMagicSize]), 0, 0, 0, 2, 0, 0, 0, 1)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	accepts(t, "xerial", plain, Snappy, framed)
	accepts(t, "raw", plain, Snappy, snappy.Encode(nil, raw))
	accepts(t, "one block", plain, Snappy, join(header, block(raw)))
	accepts(t, "empty blocks", plain, Snappy, join(header, block(nil), block(raw), block(nil)))
	accepts(t, "another version", plain, Snappy, join(other, block(raw)))
	accepts(t, "two streams", plain, Snappy, join(header, block(raw[:10]), header, block(raw[10:])))
	accepts(t, "empty stream before", plain, Snappy, join(header, framed))
	for what, body := range map[string][]byte{
		"empty":               {},
		"half a header":       header[:10],
		"length cut":          join(framed, []byte{0, 0, 0}),
		"length -1":           join(header, bytes.Repeat([]byte{0xff}, 4), raw),
		"length one more":     join(header, binary.BigEndian.AppendUint32(nil, 8), make([]byte, 7)),
		"block of no bytes":   join(header, make([]byte, 4)),
		"last byte off":       framed[:len(framed)-1],
		"raw in xerial":       join(header, snappy.Encode(nil, raw)),
		"S2 only":             s2.Encode(nil, append(bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 3000), raw[:3000]...)),
		"declares too much":   append(binary.AppendUvarint(nil, 4000), bytes.Repeat([]byte{0xfe, 1, 0}, 20)...),
		"declares 4 GiB":      {0xff, 0xff, 0xff, 0xff, 0x1f},
		"copy before start":   {8, 0x1d, 4},
		"declares too little": append([]byte{1}, snappy.Encode(nil, raw[:100])[1:]...),
	} {
		refuses(t, what, plain, Snappy, body)
	}
}

func TestGzipForms(t *testing.T) {
	plain := write(t, []Record{{Value: jsonish(200_000)}, {Offset: 1, Value: noise(70_000)}})
	raw := plain[headerSize:]
	member := func(b []byte, level int) []byte {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, level)
		if err != nil {
			t.Fatal(err)
		}
		w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for _, level := range []int{gzip.NoCompression, gzip.BestSpeed, gzip.DefaultCompression, gzip.BestCompression} {
		accepts(t, "level", plain, Gzip, member(raw, level))
	}
	three := append(append(member(raw[:1000], 1), member(nil, 1)...), member(raw[1000:], 9)...)
	accepts(t, "three members", plain, Gzip, three)
	good := member(raw, 6)
	refuses(t, "empty", plain, Gzip, nil)
	refuses(t, "garbage after", plain, Gzip, append(bytes.Clone(good), "garbage"...))
	refuses(t, "checksum", plain, Gzip, flip(good, len(good)-8))
	refuses(t, "size", plain, Gzip, flip(good, len(good)-1))
	refuses(t, "no checksum", plain, Gzip, good[:len(good)-8])
	// A deflate block that begins with a match has no past to copy from.
	refuses(t, "before start", plain, Gzip, append(bytes.Clone(good[:10]), 0x03, 0x02, 0x00, 0, 0, 0, 0))
}

func TestZstdForms(t *testing.T) {
	plain := write(t, []Record{{Value: jsonish(200_000)}, {Offset: 1, Value: noise(50_000)}, {Offset: 2, Value: make([]byte, 200_000)}})
	raw := plain[headerSize:]
	encode := func(b []byte, stream bool, opts ...zstd.EOption) []byte {
		var out bytes.Buffer
		enc, err := zstd.NewWriter(&out, append(opts, zstd.WithEncoderConcurrency(1))...)
		if err != nil {
			t.Fatal(err)
		}
		if !stream {
			defer enc.Close()
			return enc.EncodeAll(b, nil)
		}
		for len(b) > 0 { // flushes make small blocks and hide the size
			n := min(len(b), 50_000)
			if _, err := enc.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			if err := enc.Flush(); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if err := enc.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for level := zstd.SpeedFastest; level <= zstd.SpeedBestCompression; level++ {
		opts := []zstd.EOption{zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(level == zstd.SpeedDefault), zstd.WithWindowSize(256 << 10)}
		accepts(t, level.String(), plain, Zstd, encode(raw, false, opts...))
		accepts(t, level.String()+" streamed", plain, Zstd, encode(raw, true, opts...))
	}
	small := encode(raw, true, zstd.WithWindowSize(zstd.MinWindowSize))
	accepts(t, "window of 1 KiB", plain, Zstd, small)
	skip := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	three := append(append(append(encode(raw[:1000], false), skip...), encode(raw[1000:2000], true)...), encode(raw[2000:], false)...)
	accepts(t, "three frames and a skippable one", plain, Zstd, three)
	good := encode(raw, true)
	refuses(t, "garbage after", plain, Zstd, append(bytes.Clone(good), "garbage"...))
	refuses(t, "three bytes after", plain, Zstd, append(bytes.Clone(good), 0x28, 0xb5, 0x2f))
	refuses(t, "checksum", plain, Zstd, flip(good, len(good)-1))
	refuses(t, "no checksum", plain, Zstd, good[:len(good)-4])
	refuses(t, "skippable beyond", plain, Zstd, append(bytes.Clone(good), 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0))
	refuses(t, "dictionary", plain, Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58, 9}, good[6:]...))
	refuses(t, "window of 256 MiB", plain, Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x04, 18 << 3}, good[6:]...))
}

// The bound that memory is taken by holds, and is near.
func TestZstdBound(t *testing.T) {
	for _, n := range []int{1, 1000, 128 << 10, 128<<10 + 1, 1 << 20} {
		for _, raw := range [][]byte{jsonish(n), noise(n), make([]byte, n)} {
			packed, err := Compress(nil, Zstd, raw)
			if err != nil {
				t.Fatal(err)
			}
			bound, err := zstdBound(packed, 1<<30)
			if err != nil || bound < int64(n) || bound > int64(n+zstdMaxBlock) {
				t.Errorf("%d bytes: bound %d, %v", n, bound, err)
			}
		}
	}
}
