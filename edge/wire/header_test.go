package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// header is a request header by hand: the declared length of the client id, its
// bytes, and what follows.
func header(declared int, id, rest string) []byte {
	b := []byte{0, 3, 0, 9, 0, 0, 0, 5}
	b = binary.BigEndian.AppendUint16(b, uint16(int16(declared)))
	return append(append(b, id...), rest...)
}

func TestParseHeader(t *testing.T) {
	long := strings.Repeat("x", math.MaxInt16)
	many := func(n int) string {
		b := []byte{byte(n)}
		for i := range n {
			b = append(b, byte(i), 1, 'v')
		}
		return string(b)
	}
	for _, test := range []struct {
		name     string
		b        []byte
		flexible bool
		id, rest string // rest: what follows
		ok       bool
	}{
		{"null", header(-1, "", "body"), false, "", "body", true},
		{"empty", header(0, "", "body"), false, "", "body", true},
		{"some", header(3, "abc", "body"), false, "abc", "body", true},
		{"32 KB", header(math.MaxInt16, long, "body"), false, long, "body", true},
		{"not UTF-8", header(2, "\xff\xfe", ""), false, "\xff\xfe", "", true},
		{"null, flexible", header(-1, "", "\x00body"), true, "", "body", true},
		{"empty, flexible", header(0, "", "\x00body"), true, "", "body", true},
		{"32 KB, flexible", header(math.MaxInt16, long, "\x00body"), true, long, "body", true},
		{"a tag", header(3, "abc", "\x01\x07\x02hibody"), true, "abc", "body", true},
		{"an empty tag", header(-1, "", "\x01\x07\x00body"), true, "", "body", true},
		{"a large tag number", header(-1, "", "\x01\xff\xff\xff\xff\x0f\x00body"), true, "", "body", true},
		{"32 tags", header(-1, "", many(32)+"body"), true, "", "body", true},

		{"no length", header(0, "", "")[:9], false, "", "", false},
		{"-2", header(-2, "abcd", ""), false, "", "", false},
		{"-32768", header(math.MinInt16, "abcd", ""), false, "", "", false},
		{"longer than the frame", header(5, "abcd", ""), false, "", "", false},
		{"no tags", header(-1, "", ""), true, "", "", false},
		{"33 tags", header(-1, "", many(33)), true, "", "", false},
		{"2⁶⁴−1 tags", header(-1, "", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true, "", "", false},
		{"number too long", header(-1, "", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true, "", "", false},
		{"tag without size", header(-1, "", "\x01\x07"), true, "", "", false},
		{"tag longer than the frame", header(-1, "", "\x01\x07\x03hi"), true, "", "", false},
		{"tag of 2⁶⁴−1 bytes", header(-1, "", "\x01\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), true, "", "", false},
		{"no prefix", []byte{0, 3, 0}, false, "", "", false},
	} {
		h, rest, err := wire.ParseHeader(test.b, test.flexible)
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !test.ok {
			if !errors.Is(err, wire.ErrHeader) && !errors.Is(err, wire.ErrShortFrame) {
				t.Errorf("%s: %v is not an error of headers", test.name, err)
			}
			continue
		}
		if h.ClientID != test.id || string(rest) != test.rest || h.Key != 3 || h.Version != 9 || h.CorrelationID != 5 {
			t.Errorf("%s: %+v, rest %q", test.name, h.Prefix, rest)
		}
	}
}

// A client id must outlive the buffer it came in.
func TestClientIDIsACopy(t *testing.T) {
	b := header(3, "abc", "")
	h, _, err := wire.ParseHeader(b, false)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if h.ClientID != "abc" {
		t.Errorf("%q", h.ClientID)
	}
}

// kmsg writes what ParseHeader reads.
func TestParseHeaderOfClients(t *testing.T) {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client"))
	for _, version := range []int16{0, 8, 9, 12} {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = version
		frame := f.AppendRequest(nil, req, 77)[wire.SizeBytes:]
		h, rest, err := wire.ParseHeader(frame, req.IsFlexible())
		if err != nil || h.ClientID != "client" || h.CorrelationID != 77 || h.Version != version || !bytes.Equal(rest, req.AppendTo(nil)) {
			t.Errorf("v%d: %+v, %v", version, h, err)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	for _, b := range [][]byte{
		header(-1, "", ""), header(3, "abc", "\x00"), header(-2, "ab", ""), header(-1, "", "\x01\x07\x02hi"), header(-1, "", "\x21"), nil, {0, 18},
	} {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, flexible bool) {
		h, rest, err := wire.ParseHeader(b, flexible)
		if err != nil {
			if rest != nil {
				t.Error("an error came with a rest")
			}
			return
		}
		if len(h.ClientID)+len(rest) > len(b)-wire.PrefixBytes-2 || !bytes.HasSuffix(b, rest) {
			t.Errorf("client id of %d bytes and %d left, of %d", len(h.ClientID), len(rest), len(b))
		}
		if p, err := wire.ParsePrefix(b); err != nil || p != h.Prefix {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestResponse(t *testing.T) {
	for _, flexible := range []bool{false, true} {
		before := []byte("an answer before")
		b := wire.BeginResponse(before, -7, flexible)
		b = append(b, "body"...)
		if !wire.EndResponse(b, len(before), 0) {
			t.Error("it does not fit")
		}
		want := "an answer before\x00\x00\x00\x08\xff\xff\xff\xf9body"
		if flexible {
			want = "an answer before\x00\x00\x00\x09\xff\xff\xff\xf9\x00body"
		}
		if string(b) != want {
			t.Errorf("%q, want %q", b, want)
		}
	}
}

func TestResponseLimit(t *testing.T) {
	b := make([]byte, wire.SizeBytes+wire.MaxFrame+1)
	if wire.EndResponse(b, 0, 0) {
		t.Error("a byte too many fits")
	}
	if b = b[:len(b)-1]; !wire.EndResponse(b, 0, 0) {
		t.Error("the largest frame does not fit")
	}
	if n := binary.BigEndian.Uint32(b); n != wire.MaxFrame {
		t.Errorf("length %d", n)
	}
}
