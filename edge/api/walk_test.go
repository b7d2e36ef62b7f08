package api

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// bodyOf makes bodies of a shape that kmsg would never write: one list with as
// many entries as wanted, unknown tags in its entries, and all else as short as
// it can be.
type bodyOf struct {
	version  int16
	flexible bool
	long     *field // the list that has entries
	holds    []*field
	entries  int
	tags     int // of each entry
	text     []byte
}

func (m bodyOf) fields(b []byte, fields []field) []byte {
	for i := range fields {
		f := &fields[i]
		if m.version < f.min || m.version > f.max {
			continue
		}
		b = m.field(b, f)
	}
	return b
}

func (m bodyOf) field(b []byte, f *field) []byte {
	switch f.kind {
	case fixedField:
		return append(b, make([]byte, f.size)...)
	case stringField, nullableField:
		if m.flexible {
			return append(binary.AppendUvarint(b, uint64(len(m.text)+1)), m.text...)
		}
		return append(binary.BigEndian.AppendUint16(b, uint16(len(m.text))), m.text...)
	case bytesField:
		return m.length(b, 0)
	case nullStructField:
		return append(b, 0xff)
	}
	n, tags := 0, 0
	switch {
	case f == m.long:
		n, tags = m.entries, m.tags
	case slices.Contains(m.holds, f):
		n = 1
	}
	b = m.length(b, n)
	for range n {
		b = m.fields(b, f.fields)
		if f.kind == listField && m.flexible {
			b = unknownTags(b, tags)
		}
	}
	return b
}

func (m bodyOf) length(b []byte, n int) []byte {
	if m.flexible {
		return binary.AppendUvarint(b, uint64(n+1))
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func (m bodyOf) bytes(s *shape) []byte {
	b := m.fields(nil, s.fields)
	if m.flexible {
		b = append(b, 0)
	}
	return b
}

// unknownTags is a section of n empty tags that nobody knows.
func unknownTags(b []byte, n int) []byte {
	b = binary.AppendUvarint(b, uint64(n))
	for i := range n {
		b = append(b, byte(50+i), 0)
	}
	return b
}

// lists calls fn for every list of a version, with those it lies in.
func lists(fields []field, version int16, holds []*field, fn func(f *field, holds []*field)) {
	for i := range fields {
		f := &fields[i]
		if f.kind != listField && f.kind != plainListField || version < f.min || version > f.max {
			continue
		}
		fn(f, holds)
		lists(f.fields, version, append(slices.Clone(holds), f), fn)
	}
}

// tagged is a body whose last section of tags has n unknown ones.
func tagged(req kmsg.Request, n int) []byte {
	body := req.AppendTo(nil)
	return unknownTags(body[:len(body)-1], n)
}

// Every struct of every request may have 32 unknown tags. One more is refused
// before anything is decoded.
func TestWalkBoundsTags(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		if version < row.shape.flexible {
			return
		}
		req := kmsg.RequestForKey(row.Key)
		req.SetVersion(version)
		if _, err := row.decode(version, tagged(req, maxTags)); err != nil {
			t.Errorf("%s v%d: %d tags: %v", row.Name, version, maxTags, err)
		}
		if _, err := row.decode(version, tagged(req, maxTags+1)); !errors.Is(err, errTags) {
			t.Errorf("%s v%d: %d tags: %v", row.Name, version, maxTags+1, err)
		}
		lists(row.shape.fields, version, nil, func(f *field, holds []*field) {
			if f.kind != listField {
				return
			}
			m := bodyOf{version: version, flexible: true, long: f, holds: holds, entries: 1, text: []byte("t")}
			for n, want := range map[int]error{maxTags: nil, maxTags + 1: errTags} {
				m.tags = n
				if err := row.walk(version, m.bytes(row.shape)); !errors.Is(err, want) {
					t.Errorf("%s v%d: %d tags in an entry: %v", row.Name, version, n, err)
				}
			}
		})
	})
}

// Nothing is allocated for a body that is refused, whatever it claims.
func TestWalkTakesNoMemory(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		flexible := version >= row.shape.flexible
		lists(row.shape.fields, version, nil, func(f *field, holds []*field) {
			m := bodyOf{version: version, flexible: flexible, long: f, holds: holds, text: []byte("t")}
			for _, claim := range []uint64{1 << 20, 1 << 30, 1<<31 - 1, 1<<32 - 1} {
				body := m.bytes(row.shape)
				if flexible {
					body = binary.AppendUvarint(body[:1], claim)
				}
				body = append(body, 0xff, 0xff, 0xff, 0xff)
				if n := testing.AllocsPerRun(1, func() { _ = row.walk(version, body) }); n > 4 {
					t.Errorf("%s v%d: %v allocations for a refused body", row.Name, version, n)
				}
			}
		})
	})
}

// scramble fills a request with random values: short lists, texts of all kinds,
// nulls.
func scramble(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Name != "Version" && f.Type != reflect.TypeFor[kmsg.Tags]() {
				scramble(rng, v.Field(i))
			}
		}
	case reflect.Pointer:
		if rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scramble(rng, v.Elem())
		}
	case reflect.Slice:
		n := rng.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			scramble(rng, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			scramble(rng, v.Index(i))
		}
	case reflect.String:
		v.SetString(string(make([]byte, rng.IntN(300))))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rng.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(rng.Uint64() >> (64 - v.Type().Bits()))
	}
}

// A shape is kmsg's at every version kmsg knows, announced or not: random
// requests are walked to their last byte, and a byte less or more is seen.
func TestShapesAreKmsgs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, row := range Table() {
		for version := range kmsg.RequestForKey(row.Key).MaxVersion() + 1 {
			for range 30 {
				req := kmsg.RequestForKey(row.Key)
				if d, ok := req.(interface{ Default() }); ok {
					d.Default()
				}
				scramble(rng, reflect.ValueOf(req).Elem())
				req.SetVersion(version)
				if flexible := version >= row.shape.flexible; flexible != req.IsFlexible() {
					t.Fatalf("%s v%d: flexible %v", row.Name, version, flexible)
				}
				body := req.AppendTo(nil)
				if err := row.walk(version, body); err != nil {
					t.Fatalf("%s v%d: %v", row.Name, version, err)
				}
				if err := row.walk(version, append(body, 0)); !row.padded && !errors.Is(err, errLeftOver) {
					t.Fatalf("%s v%d: with a byte left over: %v", row.Name, version, err)
				}
				if len(body) == 0 {
					continue
				}
				if err := row.walk(version, body[:len(body)-1]); err == nil {
					t.Fatalf("%s v%d: without its last byte it passes", row.Name, version)
				}
			}
		}
	}
}

// A walk and kmsg see the end of a body alike.
func FuzzWalk(f *testing.F) {
	eachVersion(func(row *Row, version int16) {
		req := kmsg.RequestForKey(row.Key)
		req.SetVersion(version)
		f.Add(row.Key, version, req.AppendTo(nil))
		if req.IsFlexible() {
			f.Add(row.Key, version, tagged(req, 3))
		}
	})
	for _, seed := range captured(f) {
		f.Add(seed.key, seed.version, seed.body)
	}
	h := New(Config{})
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		row := h.row(key)
		if row == nil || version < row.Min || version > row.Max {
			return
		}
		read := func(b []byte) bool {
			req := row.newRequest()
			req.SetVersion(version)
			return req.ReadFrom(b) == nil
		}
		whole := read(body) && (len(body) == 0 || !read(body[:len(body)-1]))
		switch err := row.walk(version, body); {
		case err == nil && read(body) && !whole && !row.padded:
			t.Errorf("%s v%d: the walk misses bytes that are left over", row.Name, version)
		case err != nil && whole && !errors.Is(err, errTags) && !errors.Is(err, errNegative) && !errors.Is(err, errSwollen):
			t.Errorf("%s v%d: kmsg decodes it, the walk says %v", row.Name, version, err)
		}
	})
}
