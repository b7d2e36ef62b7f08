package api

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// eachVersion calls fn for every version of every row.
func eachVersion(fn func(row *Row, version int16)) {
	table := Table()
	for i := range table {
		for v := table[i].Min; v <= table[i].Max; v++ {
			fn(&table[i], v)
		}
	}
}

// Windows are kmsg's at most, keys are there once, and codes are Kafka's.
func TestTable(t *testing.T) {
	seen := map[int16]bool{}
	for _, row := range Table() {
		req := kmsg.RequestForKey(row.Key)
		if req == nil || seen[row.Key] || kmsg.NameForKey(row.Key) != row.Name {
			t.Fatalf("row %d %q is twice or unknown", row.Key, row.Name)
		}
		seen[row.Key] = true
		if row.Min < 0 || row.Min > row.Max || row.Max > req.MaxVersion() {
			t.Errorf("%s: window %d to %d, kmsg knows %d", row.Name, row.Min, row.Max, req.MaxVersion())
		}
		if row.MaxFrame <= 0 || row.MaxFrame > wire.MaxFrame {
			t.Errorf("%s: frame limit %d", row.Name, row.MaxFrame)
		}
		if got := row.newRequest(); got.Key() != row.Key || got.ResponseKind().Key() != row.Key {
			t.Errorf("%s makes requests of key %d", row.Name, got.Key())
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(row.Codes)))); n != len(row.Codes) || slices.Contains(row.Codes, 0) {
			t.Errorf("%s: a code is twice, or 0", row.Name)
		}
		for _, code := range row.Codes {
			if _, ok := kerr.ErrorForCode(code).(*kerr.Error); !ok {
				t.Errorf("%s: %d is no code of Kafka's", row.Name, code)
			}
		}
	}
	for _, key := range []int16{17, 18, 36} {
		if i := slices.IndexFunc(Table(), func(r Row) bool { return r.Key == key }); i < 0 || Table()[i].Phase != BeforeLogin {
			t.Errorf("key %d is not part of the login", key)
		}
	}
}

// No API is announced with topic ids before Metadata gives them out.
func TestTableTopicIDs(t *testing.T) {
	most := map[int16]int16{}
	for _, row := range Table() {
		most[row.Key] = row.Max
	}
	if most[3] >= 10 {
		return
	}
	for key, first := range map[int16]int16{0: 13, 1: 13, 8: 10, 9: 10, 19: 7, 20: 6} {
		if most[key] >= first {
			t.Errorf("key %d is announced up to %d, which has topic ids, and Metadata only up to %d", key, most[key], most[3])
		}
	}
}

// filled sets every field of a request to what differs from nothing, so that a
// field that is lost on the way is seen.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case f.Type == reflect.TypeFor[kmsg.Tags](), f.Name == "Version", !f.IsExported():
			case v.Field(i).Type() == reflect.TypeFor[kmsg.ThrottleResponse]():
			default:
				filled(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			filled(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			filled(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(2)
	case reflect.Float64:
		v.SetFloat(0.5)
	}
}

// Every announced version decodes what kmsg encodes, whole and empty, and
// refuses a byte less; a byte more as well, unless the row says otherwise.
func TestDecodeEveryVersion(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		for _, full := range []bool{false, true} {
			req := kmsg.RequestForKey(row.Key)
			if d, ok := req.(interface{ Default() }); ok {
				d.Default()
			}
			if full {
				filled(reflect.ValueOf(req).Elem())
			}
			req.SetVersion(version)
			body := req.AppendTo(nil)
			name := fmt.Sprintf("%s v%d, full %v", row.Name, version, full)
			got, err := row.decode(version, body)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if again := got.AppendTo(nil); string(again) != string(body) {
				t.Errorf("%s: decodes to another request", name)
			}
			if _, err := row.decode(version, append(slices.Clone(body), 0)); (err == nil) != row.padded {
				t.Errorf("%s: with a byte left over: %v", name, err)
			}
			for n := range body {
				if _, err := row.decode(version, body[:n]); err == nil {
					t.Errorf("%s: %d of %d bytes decode", name, n, len(body))
				}
			}
		}
	})
}

// Every answer is framed in the shape of its version: correlation id, the tag
// byte of a flexible header except for ApiVersions, the body, and no more.
func TestAppendResponse(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		req := row.newRequest()
		req.SetVersion(version)
		resp := req.ResponseKind()
		if resp.GetVersion() != version {
			t.Fatalf("%s v%d makes an answer of version %d", row.Name, version, resp.GetVersion())
		}
		out, err := new(Conn).appendResponse([]byte("before"), 77, resp)
		if err != nil {
			t.Fatal(err)
		}
		out = out[len("before"):]
		body := resp.AppendTo(nil)
		want := 4 + len(body)
		if resp.IsFlexible() && row.Key != 18 {
			want++
		}
		if n := binary.BigEndian.Uint32(out); int(n) != want || len(out) != want+4 || binary.BigEndian.Uint32(out[4:]) != 77 {
			t.Errorf("%s v%d: length %d of %d bytes, want %d", row.Name, version, n, len(out), want)
		}
		if string(out[len(out)-len(body):]) != string(body) {
			t.Errorf("%s v%d: the body is another one", row.Name, version)
		}
	})
}

func TestAppendNoReply(t *testing.T) {
	if out, err := new(Conn).appendResponse([]byte("before"), 1, noReply{}); err != nil || string(out) != "before" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLookup(t *testing.T) {
	h := New(Config{})
	for _, row := range Table() {
		for v, ok := range map[int16]bool{row.Min: true, row.Max: true, row.Min - 1: row.Key == 18, row.Max + 1: row.Key == 18, -1: row.Key == 18, 32767: row.Key == 18} {
			got, err := h.Lookup(wire.Prefix{Key: row.Key, Version: v})
			if (err == nil) != ok || ok && got.Key != row.Key {
				t.Errorf("%s v%d: %v", row.Name, v, err)
			}
		}
	}
	for _, key := range []int16{-1, -32768, 32767, 7, 999} {
		if _, err := h.Lookup(wire.Prefix{Key: key}); err == nil {
			t.Errorf("key %d is known", key)
		}
	}
}

// FuzzDecode: whatever the bytes, nothing panics, and what decodes is a request
// that encodes again.
func FuzzDecode(f *testing.F) {
	eachVersion(func(row *Row, version int16) {
		req := kmsg.RequestForKey(row.Key)
		req.SetVersion(version)
		f.Add(row.Key, version, req.AppendTo(nil))
		filled(reflect.ValueOf(req).Elem())
		req.SetVersion(version)
		f.Add(row.Key, version, req.AppendTo(nil))
	})
	for _, seed := range captured(f) {
		f.Add(seed.key, seed.version, seed.body)
	}
	h := New(Config{})
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		row, err := h.Lookup(wire.Prefix{Key: key, Version: version})
		if err != nil || version < row.Min || version > row.Max {
			return
		}
		req, err := row.decode(version, body)
		if err != nil {
			return
		}
		if req.GetVersion() != version || req.Key() != key {
			t.Errorf("key %d v%d decodes to key %d v%d", key, version, req.Key(), req.GetVersion())
		}
		if _, err := row.decode(version, req.AppendTo(nil)); err != nil {
			t.Errorf("key %d v%d: what was decoded does not decode again: %v", key, version, err)
		}
	})
}
