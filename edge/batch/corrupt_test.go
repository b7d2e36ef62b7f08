package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

func TestNextRefuses(t *testing.T) {
	good := write(t, make3())
	set := func(at int, v ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], v)
		return b
	}
	length := func(n uint32) []byte { return set(offLength, binary.BigEndian.AppendUint32(nil, n)...) }
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"nothing":              {nil, ErrMagic},
		"16 bytes":             {good[:16], ErrMagic},
		"magic 0":              {set(offMagic, 0), ErrCorrupt},
		"magic 1":              {set(offMagic, 1), ErrCorrupt},
		"magic 3":              {set(offMagic, 3), ErrMagic},
		"magic -1":             {set(offMagic, 0xff), ErrMagic},
		"text":                 {[]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"), ErrMagic},
		"17 bytes":             {good[:17], ErrCorrupt},
		"half a header":        {good[:40], ErrCorrupt},
		"header alone":         {good[:headerSize], ErrCorrupt},
		"one byte short":       {good[:len(good)-1], ErrCorrupt},
		"length 0":             {length(0), ErrCorrupt},
		"length below header":  {length(headerSize - lengthEnd - 1), ErrCorrupt},
		"length one less":      {length(uint32(len(good) - lengthEnd - 1)), ErrCorrupt},
		"length one more":      {length(uint32(len(good) - lengthEnd + 1)), ErrCorrupt},
		"length -1":            {length(math.MaxUint32), ErrCorrupt},
		"length -2147483648":   {length(1 << 31), ErrCorrupt},
		"length 2147483647":    {length(math.MaxInt32), ErrCorrupt},
		"CRC":                  {flip(good, offCRC), ErrCorrupt},
		"attributes":           {flip(good, offAttributes), ErrCorrupt},
		"last offset delta":    {flip(good, offLastOffsetDelta), ErrCorrupt},
		"first timestamp":      {flip(good, offFirstTimestamp), ErrCorrupt},
		"max timestamp":        {flip(good, offMaxTimestamp), ErrCorrupt},
		"producer id":          {flip(good, offProducerID), ErrCorrupt},
		"producer epoch":       {flip(good, offProducerEpoch), ErrCorrupt},
		"base sequence":        {flip(good, offBaseSequence), ErrCorrupt},
		"count":                {flip(good, offNumRecords), ErrCorrupt},
		"records":              {flip(good, headerSize), ErrCorrupt},
		"last byte":            {flip(good, len(good)-1), ErrCorrupt},
		"base offset (no CRC)": {flip(good, offBaseOffset), nil},
		"leader epoch (same)":  {flip(good, offLeaderEpoch), nil},
	} {
		_, rest, err := Next(c.raw)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && rest != nil {
			t.Errorf("%s: rest after an error", name)
		}
	}
}

func TestNextWalks(t *testing.T) {
	one, two := write(t, make3()), write(t, []Record{{Offset: 7}})
	all := append(append(bytes.Clone(one), two...), one[:20]...)
	a, rest, err := Next(all)
	if err != nil || a.NumRecords != 3 {
		t.Fatal(err)
	}
	b, rest, err := Next(rest)
	if err != nil || b.BaseOffset != 7 {
		t.Fatal(err)
	}
	if _, _, err := Next(rest); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if cap(a.body) != len(a.body) {
		t.Error("a batch reaches into the next")
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Next(all) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// varints is a sequence of zigzag varints.
func varints(vs ...int64) (b []byte) {
	for _, v := range vs {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// withLength is body behind its length.
func withLength(body []byte) []byte {
	return append(varints(int64(len(body))), body...)
}

// record is attributes 0 and then the varints.
func record(vs ...int64) []byte {
	return withLength(append([]byte{0}, varints(vs...)...))
}

// Faults inside records, in every codec: a sound CRC does not make them true.
func TestEachRefuses(t *testing.T) {
	const big = math.MaxInt32
	name := func(key ...byte) []byte { // one record with one header of that name and value null
		body := append([]byte{0}, varints(0, 0, -1, -1, 1, int64(len(key)))...)
		return withLength(append(append(body, key...), 1))
	}
	overlong := bytes.Repeat([]byte{0x80}, 11)
	for what, c := range map[string]struct {
		body []byte
		want error
	}{
		"good":                     {record(0, 0, -1, -1, 0), nil},
		"good, padded varint":      {withLength([]byte{0, 0x80, 0x00, 0, 1, 1, 0}), nil},
		"good header":              {name('h'), nil},
		"good empty header name":   {name(), nil},
		"nothing":                  {nil, ErrInvalidRecord},
		"record length 0":          {append(varints(0), record(0, 0, -1, -1, 0)...), ErrCorrupt},
		"record length 5":          {append(varints(5), 0, 0, 0, 1, 1), ErrCorrupt},
		"record length -1":         {append(varints(-1), record(0, 0, -1, -1, 0)...), ErrCorrupt},
		"record length min":        {append(varints(math.MinInt32), record(0, 0, -1, -1, 0)...), ErrCorrupt},
		"record length endless":    {overlong, ErrCorrupt},
		"record length cut":        {[]byte{0x80}, ErrCorrupt},
		"record length one more":   {append(varints(7), 0, 0, 0, 1, 1, 0), ErrCorrupt},
		"record length one less":   {append(varints(6), 0, 0, 0, 1, 2, 'x', 0), ErrCorrupt},
		"record length huge":       {append(varints(50<<20), 0, 0, 0, 1, 1, 0), ErrCorrupt},
		"time delta endless":       {withLength(append([]byte{0}, overlong...)), ErrCorrupt},
		"offset delta endless":     {withLength(append([]byte{0, 0}, overlong...)), ErrCorrupt},
		"offset delta over 32 bit": {record(0, big+1, -1, -1, 0), ErrCorrupt},
		"offset delta 1":           {record(0, 1, -1, -1, 0), ErrInvalidRecord},
		"offset delta -1":          {record(0, -1, -1, -1, 0), ErrInvalidRecord},
		"key length -2":            {record(0, 0, -2, -1, 0), ErrCorrupt},
		"key length min":           {record(0, 0, math.MinInt32, -1, 0), ErrCorrupt},
		"key length max":           {record(0, 0, big, -1, 0), ErrCorrupt},
		"key length beyond":        {record(0, 0, 3, -1, 0), ErrCorrupt},
		"key length endless":       {withLength(append([]byte{0, 0, 0}, overlong...)), ErrCorrupt},
		"value length -2":          {record(0, 0, -1, -2, 0), ErrCorrupt},
		"value length max":         {record(0, 0, -1, big, 0), ErrCorrupt},
		"value length beyond":      {record(0, 0, -1, 2, 0), ErrCorrupt},
		"header count -1":          {record(0, 0, -1, -1, -1), ErrCorrupt},
		"header count max":         {record(0, 0, -1, -1, big), ErrCorrupt},
		"header count beyond":      {record(0, 0, -1, -1, 2, 0, -1, 0), ErrCorrupt},
		"header count missing":     {withLength([]byte{0, 0, 0, 1, 3, 'x'}), ErrCorrupt},
		"headers left over":        {record(0, 0, -1, -1, 0, 0), ErrCorrupt},
		"header name -1":           {record(0, 0, -1, -1, 1, -1, -1), ErrInvalidRecord},
		"header name -2":           {record(0, 0, -1, -1, 1, -2, -1), ErrCorrupt},
		"header name beyond":       {record(0, 0, -1, -1, 1, 9, -1), ErrCorrupt},
		"header name not UTF-8":    {name(0xff), ErrInvalidRecord},
		"header name cut UTF-8":    {name(0xc3), ErrInvalidRecord},
		"header name surrogate":    {name(0xed, 0xa0, 0x80), ErrInvalidRecord},
		"header value -2":          {record(0, 0, -1, -1, 1, 0, -2), ErrCorrupt},
		"header value beyond":      {record(0, 0, -1, -1, 1, 0, 5), ErrCorrupt},
		"a byte after":             {append(record(0, 0, -1, -1, 0), 0), ErrInvalidRecord},
		"a record after":           {append(record(0, 0, -1, -1, 0), record(0, 1, -1, -1, 0)...), ErrInvalidRecord},
	} {
		head := write(t, []Record{{}})
		for c2 := None; c2 <= Zstd; c2++ {
			b := first(t, recompress(t, withBody(head, None, c.body), c2))
			_, err := readAll(&b, roomy())
			if c.body == nil && c2 != None && errors.Is(err, ErrCorrupt) {
				continue // some codecs refuse to be empty
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", what, c2, err)
			}
		}
	}
}

func TestEachCounts(t *testing.T) {
	for what, c := range map[string]struct {
		count, last uint32
		want        error
	}{
		"true":          {3, 2, nil},
		"count 0":       {0, math.MaxUint32, ErrInvalidRecord},
		"count -1":      {math.MaxUint32, math.MaxUint32 - 1, ErrInvalidRecord},
		"count min":     {1 << 31, math.MaxInt32, ErrInvalidRecord},
		"count 2":       {2, 1, ErrInvalidRecord},
		"count 4":       {4, 3, ErrInvalidRecord},
		"last delta 1":  {3, 1, ErrInvalidRecord},
		"last delta 3":  {3, 3, ErrInvalidRecord},
		"last delta -1": {3, math.MaxUint32, ErrInvalidRecord},
		"count max":     {math.MaxInt32, math.MaxInt32 - 1, ErrTooLarge},
		"count 1000001": {1_000_001, 1_000_000, ErrTooLarge},
	} {
		plain := write(t, make3())
		binary.BigEndian.PutUint32(plain[offNumRecords:], c.count)
		binary.BigEndian.PutUint32(plain[offLastOffsetDelta:], c.last)
		for codec := None; codec <= Zstd; codec++ {
			b := first(t, recompress(t, plain, codec))
			if _, err := readAll(&b, roomy()); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", what, codec, err)
			}
		}
	}
}

func TestEachBaseOffset(t *testing.T) {
	raw := write(t, make3())
	for base, want := range map[uint64]error{math.MaxInt64 - 2: nil, math.MaxInt64 - 1: ErrInvalidRecord, 1000: nil} {
		binary.BigEndian.PutUint64(raw[offBaseOffset:], base)
		b := first(t, raw)
		got, err := readAll(&b, roomy())
		if !errors.Is(err, want) || err == nil && got[2].Offset != int64(base+2) {
			t.Errorf("base %d: %v", base, err)
		}
	}
}

func TestUnknownCodecs(t *testing.T) {
	for c := Zstd + 1; c <= codecMask; c++ {
		b := first(t, withBody(write(t, make3()), c, []byte("whatever")))
		if _, err := readAll(&b, roomy()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", c, err)
		}
		if _, err := Compress(nil, c, nil); err == nil {
			t.Errorf("%s: compressed", c)
		}
	}
}

// fn's error comes back as it is and ends the walk.
func TestEachStops(t *testing.T) {
	stop := errors.New("stop")
	allCodecs(t, func(t *testing.T, c Codec) {
		b := first(t, recompress(t, write(t, make3()), c))
		n := 0
		err := NewDecoder().Each(&b, roomy(), func(*Record) error { n++; return stop })
		if err != stop || n != 1 {
			t.Errorf("%v after %d", err, n)
		}
	})
}

// Damage anywhere in a compressed body is an error or the same records, and
// never a panic: what a codec does not see, the counts may.
func TestDamage(t *testing.T) {
	plain := write(t, tricky()[:9])
	allCodecs(t, func(t *testing.T, c Codec) {
		raw := recompress(t, write(t, []Record{{Value: jsonish(2000)}, {Offset: 1, Key: []byte("k")}}), c)
		d := NewDecoder()
		for at := headerSize; at < len(raw); at++ {
			b := first(t, withBody(raw, c, flip(raw, at)[headerSize:]))
			_ = d.Each(&b, roomy(), func(*Record) error { return nil })
			cut := first(t, withBody(raw, c, raw[headerSize:at]))
			if err := d.Each(&cut, roomy(), func(*Record) error { return nil }); err == nil {
				t.Fatalf("cut to %d of %d bytes and read", at, len(raw))
			} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrInvalidRecord) {
				t.Fatal(err)
			}
		}
		good := first(t, recompress(t, plain, c))
		if err := d.Each(&good, roomy(), func(*Record) error { return nil }); err != nil {
			t.Error("not usable afterwards:", err)
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	for n, want := range map[int]error{maxHeaders: nil, maxHeaders + 1: ErrTooLarge} {
		body := append([]byte{0}, varints(0, 0, -1, -1, int64(n))...)
		body = append(body, bytes.Repeat([]byte{0, 1}, n)...)
		plain := withBody(write(t, []Record{{}}), None, withLength(body))
		for c := None; c <= Zstd; c++ {
			b := first(t, recompress(t, plain, c))
			if _, err := readAll(&b, roomy()); !errors.Is(err, want) {
				t.Errorf("%d headers, %s: %v", n, c, err)
			}
		}
	}
}
