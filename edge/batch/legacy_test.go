package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// msg is one message of magic 0 or 1, with what a test wants to be odd about it.
type msg struct {
	offset     int64
	magic      int8
	attributes int8
	time       int64
	key, value []byte
}

func (m msg) bytes() []byte {
	be := binary.BigEndian
	b := be.AppendUint64(nil, uint64(m.offset))
	b = append(b, make([]byte, 8)...) // length, CRC
	b = append(b, byte(m.magic), byte(m.attributes))
	if m.magic == magicV1 {
		b = be.AppendUint64(b, uint64(m.time))
	}
	for _, v := range [][]byte{m.key, m.value} {
		if v == nil {
			b = be.AppendUint32(b, 1<<32-1)
			continue
		}
		b = append(be.AppendUint32(b, uint32(len(v))), v...)
	}
	return sealMessage(b)
}

// sealMessage makes the length and the CRC true.
func sealMessage(b []byte) []byte {
	binary.BigEndian.PutUint32(b[offLength:], uint32(len(b)-lengthEnd))
	binary.BigEndian.PutUint32(b[offMessageCRC:], crc32.ChecksumIEEE(b[offMagic:]))
	return b
}

// messages is a set of messages, one after the other.
func messages(ms ...msg) (out []byte) {
	for _, m := range ms {
		out = append(out, m.bytes()...)
	}
	return out
}

// wrap is raw in a compressed message.
func wrap(t testing.TB, magic int8, c Codec, offset int64, raw []byte) msg {
	t.Helper()
	value, err := Compress(nil, c, raw)
	if err != nil {
		t.Fatal(err)
	}
	return msg{offset: offset, magic: magic, attributes: int8(c), time: 77, value: value}
}

// readSet is what all of a set of batches yields.
func readSet(raw []byte, budget *Budget) (out []Record, err error) {
	for rest := raw; len(rest) > 0; {
		var b Batch
		if b, rest, err = Next(rest); err != nil {
			return out, err
		}
		rs, err := readAll(&b, budget)
		out = append(out, rs...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// legacyCodecs calls fn for both formats and each codec they had.
func legacyCodecs(t *testing.T, fn func(t *testing.T, magic int8, c Codec)) {
	for _, magic := range []int8{magicV0, magicV1} {
		for c := None; c <= LZ4; c++ {
			t.Run(c.String()+"-v"+string('0'+rune(magic)), func(t *testing.T) { fn(t, magic, c) })
		}
	}
}

// The files in testdata/legacy are message sets of kafka-python 2.0.2 and
// sarama 1.61.1, per format and codec. kafka-python writes the LZ4 header of
// magic 0 with the checksum of KIP-57; sarama has no LZ4 there.
func TestLegacyProducers(t *testing.T) {
	files, err := filepath.Glob("testdata/legacy/*.bin")
	if err != nil || len(files) != 15 {
		t.Fatal(len(files), "files", err)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	long := []byte(strings.Repeat("compressible ", 300))
	const start = 1700000000000
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := []Record{
				{Timestamp: start},
				{Offset: 1, Timestamp: start, Key: []byte{}, Value: []byte{}},
				{Offset: 2, Timestamp: start + 1, Key: []byte("k"), Value: []byte("v")},
				{Offset: 3, Timestamp: start + 2, Key: every, Value: long},
			}
			if strings.HasPrefix(filepath.Base(file), "kafkapython") {
				want[0].Timestamp = 0
			}
			name := strings.TrimSuffix(filepath.Base(file), ".bin")
			b := first(t, raw)
			if !strings.HasSuffix(name, b.Codec().String()) || !strings.Contains(name, "-v"+string('0'+rune(b.Magic))) {
				t.Fatalf("magic %d, %s", b.Magic, b.Codec())
			}
			if b.Magic == magicV0 {
				for i := range want {
					want[i].Timestamp = -1
				}
			}
			got, err := readSet(raw, roomy())
			if err != nil {
				t.Fatal(err)
			}
			sameRecords(t, got, want)
		})
	}
}

// The checksum of an LZ4 header is not looked at in the old formats: the one of
// KIP-57, and any other, is as good as the right one. In magic 2 it is.
func TestLegacyLZ4Checksum(t *testing.T) {
	inner := messages(msg{value: jsonish(1000)}, msg{offset: 1})
	for _, magic := range []int8{magicV0, magicV1} {
		if magic == magicV1 {
			inner = messages(msg{magic: 1, value: jsonish(1000)}, msg{offset: 1, magic: 1})
		}
		for xor := range 256 {
			m := wrap(t, magic, LZ4, 1, inner)
			m.value[6] ^= byte(xor)
			raw := m.bytes()
			before := bytes.Clone(raw)
			if rs, err := readSet(raw, roomy()); err != nil || len(rs) != 2 || len(rs[0].Value) != 1000 {
				t.Fatalf("magic %d, checksum changed by %#x: %d records, %v", magic, xor, len(rs), err)
			}
			if !bytes.Equal(raw, before) {
				t.Fatal("the caller's bytes were changed")
			}
		}
	}
	raw := recompress(t, write(t, make3()), LZ4)
	raw[headerSize+6] ^= 1
	if b := first(t, seal(raw)); true {
		if _, err := readAll(&b, roomy()); !errors.Is(err, ErrCorrupt) {
			t.Error("magic 2:", err)
		}
	}
}

// Every frame the library's writer can make, with the optional header fields.
func TestLegacyLZ4Frames(t *testing.T) {
	files, err := filepath.Glob("testdata/lz4/*.lz4")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		frame, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var src bytes.Reader
		var p patchedLZ4
		p.reset(frame, &src)
		if !bytes.Equal(p.left, frame[:len(p.left)]) {
			t.Errorf("%s: header %x is now %x", filepath.Base(file), frame[:len(p.left)], p.left)
		}
	}
	// FLG 0x68 has a content size: 15 bytes of header.
	frame := append([]byte{4, 0x22, 0x4d, 0x18, 0x68, 0x40, 1, 0, 0, 0, 0, 0, 0, 0, 0xff}, 1, 0, 0, 0x80, 'x', 0, 0, 0, 0)
	m := msg{attributes: int8(LZ4), value: frame}
	if _, err := readSet(m.bytes(), roomy()); !errors.Is(err, ErrCorrupt) {
		t.Error(err) // one byte is no message, but the header was taken
	}
}

// Offsets are the broker's to give: what producers write there varies.
func TestLegacyOffsets(t *testing.T) {
	for _, c := range []struct {
		name    string
		magic   int8
		wrapper int64
		inner   [3]int64
		err     error
	}{
		{"absolute", 0, 1002, [3]int64{1000, 1001, 1002}, nil},
		{"all 0", 0, 0, [3]int64{}, nil},
		{"from 0", 0, 0, [3]int64{0, 1, 2}, nil},
		{"relative", 1, 2, [3]int64{0, 1, 2}, nil},
		{"relative to another base", 1, 1002, [3]int64{0, 1, 2}, nil},
		{"of some librdkafka", 1, 0, [3]int64{0, 1, 2}, nil},
		{"compacted", 1, 7, [3]int64{0, 3, 7}, nil},
		{"all 0", 1, 0, [3]int64{}, nil},
		{"wrapper before the last", 1, 1, [3]int64{0, 1, 2}, ErrInvalidRecord},
		{"negative wrapper", 1, -1, [3]int64{0, 1, 2}, ErrInvalidRecord},
	} {
		var inner []msg
		for _, o := range c.inner {
			inner = append(inner, msg{offset: o, magic: c.magic})
		}
		rs, err := readSet(wrap(t, c.magic, Gzip, c.wrapper, messages(inner...)).bytes(), roomy())
		if !errors.Is(err, c.err) {
			t.Errorf("%s, magic %d: %v", c.name, c.magic, err)
		}
		for i, r := range rs {
			if len(rs) != 3 || r.Offset != int64(i) {
				t.Errorf("%s, magic %d: record %d of %d has offset %d", c.name, c.magic, i, len(rs), r.Offset)
			}
		}
	}
}

// Magic 0 has no time. In magic 1 it is the record's own, unless the wrapper
// says LogAppendTime: then it is the wrapper's.
func TestLegacyTimestamps(t *testing.T) {
	inner := messages(msg{magic: 1, time: 5}, msg{offset: 1, magic: 1, time: -1})
	plain := wrap(t, magicV1, Snappy, 1, inner)
	logged := plain
	logged.attributes |= attrLogAppendTime
	old := wrap(t, magicV0, Snappy, 1, messages(msg{}, msg{}))
	old.attributes |= attrLogAppendTime // no bit of magic 0
	for name, c := range map[string]struct {
		raw  []byte
		want [2]int64
	}{
		"create time": {plain.bytes(), [2]int64{5, -1}}, "log append time": {logged.bytes(), [2]int64{77, 77}},
		"magic 0": {old.bytes(), [2]int64{-1, -1}}, "not compressed": {inner, [2]int64{5, -1}},
	} {
		rs, err := readSet(c.raw, roomy())
		if err != nil || len(rs) != 2 || rs[0].Timestamp != c.want[0] || rs[1].Timestamp != c.want[1] {
			t.Errorf("%s: %v, %v", name, rs, err)
		}
	}
}

// A run of uncompressed messages is one Batch; a compressed one is its own.
func TestLegacyRuns(t *testing.T) {
	raw := messages(msg{value: []byte("a")}, msg{offset: 1}, wrap(t, magicV0, Gzip, 3, messages(msg{}, msg{offset: 1})),
		wrap(t, magicV0, LZ4, 4, messages(msg{})), msg{offset: 5}, msg{offset: 6, magic: 1})
	raw = append(raw, write(t, make3())...)
	type shape struct {
		magic int8
		codec Codec
		count int32
	}
	var got []shape
	for rest := raw; len(rest) > 0; {
		var b Batch
		var err error
		if b, rest, err = Next(rest); err != nil {
			t.Fatal(err)
		}
		got = append(got, shape{b.Magic, b.Codec(), b.NumRecords})
	}
	want := []shape{{0, None, 2}, {0, Gzip, -1}, {0, LZ4, -1}, {0, None, 1}, {1, None, 1}, {2, None, 3}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("batch %d is %v, want %v", i, got[i], want[i])
		}
	}
	if rs, err := readSet(raw, roomy()); err != nil || len(rs) != 10 {
		t.Errorf("%d records, %v", len(rs), err)
	}
}

func TestLegacyFaults(t *testing.T) {
	good := msg{key: []byte("k"), value: []byte("v")}.bytes()
	set := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	resealed := func(at int, to byte) []byte { return sealMessage(set(at, to)) }
	inner := messages(msg{}, msg{offset: 1})
	wrapped := wrap(t, magicV0, Gzip, 0, inner)
	badCRC := bytes.Clone(inner)
	badCRC[len(badCRC)-1] ^= 1
	v2 := write(t, make3())
	for name, c := range map[string]struct {
		raw []byte
		err error
	}{
		"cut":                    {good[:len(good)-1], ErrCorrupt},
		"partial second":         {append(bytes.Clone(good), good[:20]...), ErrCorrupt},
		"a few bytes more":       {append(bytes.Clone(good), good[:10]...), ErrMagic},
		"length 13":              {set(11, 13), ErrCorrupt},
		"length -1":              {append(append(bytes.Clone(good[:8]), 255, 255, 255, 255), good[12:]...), ErrCorrupt},
		"CRC":                    {set(12, good[12]^1), ErrCorrupt},
		"CRC of the second":      {append(bytes.Clone(good), set(12, good[12]^1)...), ErrCorrupt},
		"key length -2":          {resealed(21, 0xfe), ErrCorrupt},
		"key length too large":   {resealed(21, 200), ErrCorrupt},
		"value length too small": {resealed(26, 0), ErrCorrupt},
		"magic 1 in 14 bytes":    {sealMessage(append(bytes.Clone(good[:16]), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)), ErrCorrupt},
		"zstd":                   {wrap(t, magicV1, Zstd, 0, inner).bytes(), ErrInvalidRecord},
		"codec 5":                {resealed(17, 5), ErrCorrupt},
		"null wrapper":           {msg{attributes: int8(Gzip)}.bytes(), ErrInvalidRecord},
		"empty wrapper":          {msg{attributes: int8(Gzip), value: []byte{}}.bytes(), ErrCorrupt},
		"nothing wrapped":        {wrap(t, magicV0, Gzip, 0, nil).bytes(), ErrInvalidRecord},
		"nothing in snappy":      {wrap(t, magicV0, Snappy, 0, nil).bytes(), ErrInvalidRecord},
		"nested":                 {wrap(t, magicV0, Gzip, 0, wrapped.bytes()).bytes(), ErrInvalidRecord},
		"other magic inside":     {wrap(t, magicV1, Gzip, 0, inner).bytes(), ErrInvalidRecord},
		"batch inside":           {wrap(t, magicV1, Gzip, 0, v2).bytes(), ErrCorrupt},
		"CRC inside":             {wrap(t, magicV0, LZ4, 0, badCRC).bytes(), ErrCorrupt},
		"cut inside":             {wrap(t, magicV0, LZ4, 0, inner[:len(inner)-1]).bytes(), ErrCorrupt},
		"few bytes inside":       {wrap(t, magicV0, Snappy, 0, append(bytes.Clone(inner), 1, 2, 3)).bytes(), ErrCorrupt},
	} {
		if rs, err := readSet(c.raw, roomy()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v (%d records), want %v", name, err, len(rs), c.err)
		}
	}
}

// Budgets hold to the byte and to the record, for every codec.
func TestLegacyBudgets(t *testing.T) {
	legacyCodecs(t, func(t *testing.T, magic int8, c Codec) {
		var ms []msg
		for i := range 50 {
			ms = append(ms, msg{offset: int64(i), magic: magic, value: jsonish(5000)})
		}
		raw := messages(ms...)
		size := len(raw)
		if c != None {
			raw = wrap(t, magic, c, 49, raw).bytes()
		}
		budget := &Budget{Bytes: size, Records: 50}
		if rs, err := readSet(raw, budget); err != nil || len(rs) != 50 || *budget != (Budget{}) {
			t.Errorf("just enough: %d records, %v, left %+v", len(rs), err, *budget)
		}
		for _, small := range []Budget{{size - 1, 50}, {size, 49}, {0, 50}, {size, 0}} {
			b := small
			if _, err := readSet(raw, &b); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%+v: %v", small, err)
			}
		}
	})
}

func TestMagicOf(t *testing.T) {
	v1 := msg{magic: magicV1}.bytes()
	v2 := write(t, make3())
	small := bytes.Clone(v2)
	binary.BigEndian.PutUint32(small[offLength:], overheadV0-1)
	for name, c := range map[string]struct {
		b     []byte
		magic int8
		ok    bool
	}{
		"0": {msg{}.bytes(), 0, true}, "1": {v1, 1, true}, "2": {v2, 2, true}, "2, cut": {v2[:17], 2, true},
		"nothing": {nil, 0, false}, "16 bytes": {v2[:16], 0, false}, "zeros": {make([]byte, 60), 0, false},
		"a length too small": {small, 0, false},
	} {
		if magic, ok := MagicOf(c.b); magic != c.magic || ok != c.ok {
			t.Errorf("%s: %d, %v", name, magic, ok)
		}
	}
}

// A message that claims a gigabyte inside a wrapper takes no gigabyte.
func TestLegacyLies(t *testing.T) {
	lie := make([]byte, 40)
	binary.BigEndian.PutUint32(lie[offLength:], 1<<30)
	for c := Gzip; c <= LZ4; c++ {
		raw := wrap(t, magicV0, c, 0, lie).bytes()
		var err error
		grown := allocated(func() { _, err = readSet(raw, &Budget{Bytes: 1<<31 - 1, Records: 10}) })
		if !errors.Is(err, ErrCorrupt) || grown > 4<<20 {
			t.Errorf("%s: %v, allocated %d bytes", c, err, grown)
		}
	}
}
