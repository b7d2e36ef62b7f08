package batch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The files in testdata/producers are the records of produce requests as they
// came from Apache's Java client 3.9.1, librdkafka 2.16.1, franz-go 1.22.3,
// sarama, kafka-go and kafka-python 3.0.12, one per client and codec; zstd22 is
// Java's at level 22. All sent the same records as far as their API allows.

func manyHeaders() (hs []Header) {
	for i := range 1000 {
		hs = append(hs, Header{Key: fmt.Appendf(nil, "h%d", i), Value: []byte{byte(i)}})
	}
	return hs
}

func TestProducers(t *testing.T) {
	const start, far = 1700000000000, 253402300799000
	k, v, h, e := []byte("k"), []byte("v"), []byte("h"), []byte("é")
	big := Record{Timestamp: start + 2, Key: []byte("big"), Value: jsonish(100_000)}
	null := Record{Timestamp: start}
	dup := Record{Timestamp: start + 1, Key: k, Value: v, Headers: []Header{{h, []byte("1")}, {h, []byte("2")}}}
	rich := Record{Timestamp: far, Key: k, Value: v, Headers: []Header{{h, []byte("1")}, {h, nil}, {h, []byte{}}, {e, []byte{0xff}}}}
	richNow := rich
	richNow.Timestamp = start + 1
	all := []Record{null, {Timestamp: 0, Key: []byte{}, Value: []byte{}}, rich, {Timestamp: start + 1, Key: []byte("many"), Value: v, Headers: manyHeaders()}, big}
	// franz-go counts in nanoseconds and wraps beyond 292 years: what it sent is
	// what is read.
	wrapped := slices.Clone(all)
	wrapped[2].Timestamp = -4852116232933
	want := map[string][]Record{
		"java":       all,
		"franzgo":    wrapped,
		"librdkafka": {null, richNow, big},
		"sarama":     {null, dup, big},
		"kafkago":    {null, dup, big},
		"kafkapython": {
			{Timestamp: start, Key: []byte("first")},
			{Timestamp: start + 1, Key: k, Value: v, Headers: []Header{{h, []byte("1")}, {h, []byte{}}}},
			big,
		},
	}
	files, err := filepath.Glob("testdata/producers/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	d := NewDecoder()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			client, codec, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".bin"), "-")
			var got []Record
			compressed := false
			for rest := raw; len(rest) > 0; {
				var b Batch
				if b, rest, err = Next(rest); err != nil {
					t.Fatal(err)
				}
				compressed = compressed || strings.HasPrefix(codec, b.Codec().String())
				err := d.Each(&b, roomy(), func(r *Record) error {
					if len(got) < int(r.Offset) {
						t.Errorf("offset %d", r.Offset)
					}
					c := clone(r)
					c.Offset = 0
					got = append(got, c)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if !compressed {
				t.Errorf("no batch is %s", codec)
			}
			sameRecords(t, got, want[client])
		})
	}
}

// Level 22 declares a window of 128 MiB for a batch of 100 KB; reading it must
// not cost that.
func TestJavaLevel22(t *testing.T) {
	raw, err := os.ReadFile("testdata/producers/java-zstd22.bin")
	if err != nil {
		t.Fatal(err)
	}
	b := first(t, raw)
	var h zstd.Header
	if err := h.Decode(b.body); err != nil || h.WindowSize != zstdMaxWindow {
		t.Fatalf("window is %d, %v", h.WindowSize, err)
	}
	if grown := allocated(func() { _, err = readAll(&b, roomy()) }); err != nil || grown > 4<<20 {
		t.Errorf("allocated %d bytes, %v", grown, err)
	}
}
