package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// lz4Frame is a frame of 4 MiB blocks without checksums that holds raw in one
// stored block, if there is any.
func lz4Frame(t testing.TB, linked bool, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(lz4.BlockSizeOption(lz4.Block4Mb), lz4.ChecksumOption(false)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	frame := out.Bytes()
	if linked {
		frame[4] &^= 1 << 5
		frame[6] = 0xdf // the header's checksum with that bit off
	}
	frame = frame[:7]
	if len(raw) > 0 {
		frame = binary.LittleEndian.AppendUint32(frame, uint32(len(raw))|lz4Stored)
		frame = append(frame, raw...)
	}
	return append(frame, 0, 0, 0, 0)
}

// lz4Block is raw as a block, with its length.
func lz4Block(t testing.TB, raw []byte) []byte {
	t.Helper()
	block := make([]byte, lz4.CompressBlockBound(len(raw)))
	n, err := lz4.CompressBlock(raw, block, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(n)), block[:n]...)
}

// The files in testdata/lz4 are liblz4's: blocks of 64 KB and 4 MB, linked and
// independent, with block and content checksums and content size, and without.
func TestLZ4Frames(t *testing.T) {
	files, err := filepath.Glob("testdata/lz4/*.lz4")
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			frame, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkLZ4(frame); err != nil {
				t.Fatal(err)
			}
			got, err := readLZ4(t, NewDecoder(), frame)
			if err != nil || !bytes.Equal(got, jsonish(100_000)) {
				t.Fatal("differs", len(got), err)
			}
			for i := range frame { // every byte cut off is missed
				if err := checkLZ4(frame[:i]); !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%d of %d bytes: %v", i, len(frame), err)
				}
			}
		})
	}
}

// A frame of linked blocks that begins with a match copies what was before it.
// There must be nothing: not the batch this Decoder read before, which may be
// another tenant's.
func TestLZ4CannotReadThePast(t *testing.T) {
	secret := bytes.Repeat([]byte("another tenant's secret "), 1000)
	plain := write(t, []Record{{Value: secret}})
	// No literals, then a match of 36 bytes at distance 1000, then one literal.
	block := []byte{0x0f, 0xe8, 0x03, 17, 0x10, 0}
	for _, linked := range []bool{true, false} {
		d := NewDecoder()
		victim := first(t, recompress(t, plain, LZ4))
		if err := d.Each(&victim, roomy(), func(*Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got, err := readLZ4(t, d, lz4With(t, linked, nil, block)); !errors.Is(err, ErrCorrupt) || len(got) > 0 {
			t.Errorf("linked %v: read %q, %v", linked, got, err)
		}
		if !linked {
			continue
		}
		// With a past of its own the same block is sound.
		own := noise(1000)
		want := append(append(bytes.Clone(own), own[:36]...), 0)
		if got, err := readLZ4(t, d, lz4With(t, linked, own, block)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("its own past: %d bytes, %v", len(got), err)
		}
	}
}

// lz4With is a frame of one stored and one compressed block.
func lz4With(t *testing.T, linked bool, stored, block []byte) []byte {
	frame := lz4Frame(t, linked, stored)
	frame = binary.LittleEndian.AppendUint32(frame[:len(frame)-4], uint32(len(block)))
	return append(append(frame, block...), 0, 0, 0, 0)
}

// readLZ4 decompresses a frame as Each would.
func readLZ4(t *testing.T, d *Decoder, frame []byte) ([]byte, error) {
	t.Helper()
	left := 1 << 20
	r, err := d.lz4(&Batch{Magic: magicV2, body: frame})
	if err != nil {
		t.Fatal(err)
	}
	defer d.release()
	d.win.src, d.win.left = r, &left
	err = d.win.fill(left)
	return bytes.Clone(d.win.buf), err
}

func TestLZ4Refused(t *testing.T) {
	plain := write(t, make3())
	good := lz4Frame(t, false, plain[headerSize:])
	legacy := bytes.Repeat([]byte{0x02, 0x21, 0x4c, 0x18}, 1000)
	for name, frame := range map[string][]byte{
		"empty":          {},
		"legacy":         legacy,
		"legacy after":   append(bytes.Clone(good), legacy...),
		"two frames":     append(bytes.Clone(good), good...),
		"byte after":     append(bytes.Clone(good), 0),
		"skippable":      append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, good...),
		"header sum":     flip(good, 6),
		"version":        flip(good, 4),
		"block length":   flip(good, 9),
		"truncated":      good[:len(good)-1],
		"no end":         good[:len(good)-4],
		"checksum claim": flipBit(good, 4, lz4FlagChecksum),
	} {
		b := first(t, withBody(plain, LZ4, frame))
		if _, err := readAll(&b, roomy()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flip(b []byte, at int) []byte { return flipBit(b, at, 0xff) }

func flipBit(b []byte, at int, bits byte) []byte {
	b = bytes.Clone(b)
	b[at] ^= bits
	return b
}
