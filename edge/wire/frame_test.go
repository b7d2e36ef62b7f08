package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/queen-mq/queen-edge/edge/wire"
)

func TestSize(t *testing.T) {
	for _, test := range []struct {
		declared uint32
		limit    int
		ok       bool
	}{
		{0, 0, true},
		{0, 100, true},
		{100, 100, true},
		{101, 100, false},
		{64 << 10, 64 << 10, true},
		{64<<10 + 1, 64 << 10, false},
		{wire.MaxFrame, wire.MaxFrame, true},
		{wire.MaxFrame + 1, wire.MaxFrame, false},
		{math.MaxInt32, wire.MaxFrame, false},
		{1 << 31, wire.MaxFrame, false},
		{math.MaxUint32, wire.MaxFrame, false}, // −2³¹ and −1
	} {
		var b [wire.SizeBytes]byte
		binary.BigEndian.PutUint32(b[:], test.declared)
		n, err := wire.Size(b, test.limit)
		if (err == nil) != test.ok || test.ok && n != int(test.declared) || !test.ok && n != 0 {
			t.Errorf("%d under %d: %d, %v", test.declared, test.limit, n, err)
		}
		var over *wire.OversizeError
		if !test.ok && (!errors.As(err, &over) || over.Declared != test.declared || over.Limit != test.limit) {
			t.Errorf("%d under %d: %v does not say so", test.declared, test.limit, err)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	full := []byte{0, 18, 0xff, 0xff, 1, 2, 3, 4, 9}
	for n := range wire.PrefixBytes {
		if _, err := wire.ParsePrefix(full[:n]); !errors.Is(err, wire.ErrShortFrame) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	p, err := wire.ParsePrefix(full)
	if err != nil || p != (wire.Prefix{Key: 18, Version: -1, CorrelationID: 0x01020304}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// read reads a frame of which held has come already.
func read(r io.Reader, held []byte, size int) ([]byte, error) {
	var frames wire.Frames
	buf := frames.Get()
	*buf = append(*buf, held...)
	buf, err := frames.Read(r, buf, size)
	return *buf, err
}

// A buffer that was lent is as good as a new one, and frames that grow take each
// other's.
func TestFramesAreLentAgain(t *testing.T) {
	var frames wire.Frames
	for round := range byte(3) {
		var lent []*[]byte
		for _, size := range []int{10, 5000, 70_000, 300_000, 5 << 20, 17 << 20} {
			content := bytes.Repeat([]byte{round + 1}, size)
			buf, err := frames.Read(bytes.NewReader(content), frames.Get(), size)
			if err != nil || !bytes.Equal(*buf, content) {
				t.Fatalf("round %d: %d bytes of %d, %v", round, len(*buf), size, err)
			}
			lent = append(lent, buf)
		}
		for _, buf := range lent {
			frames.Put(buf)
		}
	}
}

func BenchmarkReadFrame(b *testing.B) {
	for _, size := range []int{1000, 300_000, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var frames wire.Frames
			content := make([]byte, size)
			r := bytes.NewReader(nil)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(content)
				buf, err := frames.Read(r, frames.Get(), size)
				if err != nil {
					b.Fatal(err)
				}
				frames.Put(buf)
			}
		})
	}
}

func TestReadFrame(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for _, size := range []int{0, 1, 8, 64<<10 - 1, 64 << 10, 64<<10 + 1, len(content)} {
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(content), "halves": iotest.HalfReader(bytes.NewReader(content)),
			"end with data": iotest.DataErrReader(bytes.NewReader(content[:size])),
		} {
			b, err := read(r, nil, size)
			if err != nil || !bytes.Equal(b, content[:size]) {
				t.Errorf("%s, %d bytes: %d, %v", name, size, len(b), err)
			}
		}
	}
}

// What the buffer holds already is kept, and counts.
func TestReadGoesOn(t *testing.T) {
	r := strings.NewReader("world")
	b, err := read(r, []byte("hello "), 11)
	if err != nil || string(b) != "hello world" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err = read(r, b, 11); err != nil || string(b) != "hello world" {
		t.Errorf("%q, %v: a full buffer was read into", b, err)
	}
}

// Memory is taken for bytes that arrived, never for those that were declared.
func TestReadBoundsMemory(t *testing.T) {
	for _, arrived := range []int{0, 1, 10_000, 100_000, 1_000_000} {
		b, err := read(bytes.NewReader(make([]byte, arrived)), nil, wire.MaxFrame)
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(b) != arrived {
			t.Errorf("%d bytes arrived: %d, %v", arrived, len(b), err)
		}
		if most := max(4*arrived, 64<<10); cap(b) > most {
			t.Errorf("%d bytes arrived, memory for %d was taken, want at most %d", arrived, cap(b), most)
		}
	}
	broken := errors.New("broken")
	if b, err := read(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), nil, 5); !errors.Is(err, broken) || string(b) != "ab" {
		t.Errorf("%q, %v", b, err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("a frame"), 7, 0)
	f.Add([]byte("a frame"), 100, 3)
	f.Add([]byte{}, 0, 0)
	f.Add(bytes.Repeat([]byte{7}, 70_000), 69_999, 10)
	f.Fuzz(func(t *testing.T, content []byte, size, held int) {
		size = int(uint(size) % (1 << 20))
		held = int(uint(held) % uint(min(size, len(content))+1))
		b, err := read(bytes.NewReader(content[held:]), bytes.Clone(content[:held]), size)
		if want := content[:min(size, len(content))]; !bytes.Equal(b, want) {
			t.Errorf("%d bytes, want %d", len(b), len(want))
		}
		if (err == nil) != (size <= len(content)) {
			t.Errorf("%d of %d bytes: %v", len(content), size, err)
		}
		if cap(b) > max(4*len(content), 64<<10) {
			t.Errorf("memory for %d bytes, %d arrived", cap(b), len(content))
		}
	})
}
