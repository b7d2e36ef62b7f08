package proxyclient

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/go-faster/jx"
)

var (
	errSyntax = errors.New("the answer is not JSON")
	errEnds   = errors.New("the answer ends early")
)

// valueScan finds where a JSON value ends, over bytes that may still be
// arriving. It trusts the value's inside, which its reader validates: strings
// are crossed at the speed of memchr, and a record is looked at once more only
// to decode it.
type valueScan struct {
	pos      int // bytes looked at
	depth    int
	strStart int
	inString bool
}

// run looks at b, which must begin with what was there before. True means that
// the value is b[:pos]; a length of 0 is no value at all.
func (s *valueScan) run(b []byte) bool {
	for s.pos < len(b) {
		if s.inString {
			if !s.crossString(b) {
				return false
			}
			if s.depth == 0 {
				return true
			}
			continue
		}
		switch b[s.pos] {
		case '"':
			if s.depth == 0 && s.pos > 0 {
				return true
			}
			s.inString, s.strStart = true, s.pos+1
		case '{', '[':
			if s.depth == 0 && s.pos > 0 {
				return true
			}
			s.depth++
		case '}', ']':
			if s.depth == 0 {
				return true
			}
			if s.depth--; s.depth == 0 {
				s.pos++
				return true
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if s.depth == 0 {
				return true
			}
		}
		s.pos++
	}
	return false
}

// crossString moves behind the closing quote, if it is there.
func (s *valueScan) crossString(b []byte) bool {
	for {
		q := bytes.IndexByte(b[s.pos:], '"')
		if q < 0 {
			s.pos = len(b)
			return false
		}
		at := s.pos + q
		s.pos = at + 1
		if !escaped(b, s.strStart, at) {
			s.inString = false
			return true
		}
	}
}

// escaped reports whether an odd run of backslashes stands before b[at].
func escaped(b []byte, start, at int) bool {
	n := 0
	for i := at - 1; i >= start && b[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// cursor reads JSON that is in memory, in place and once.
type cursor struct {
	b   []byte
	pos int
}

func (c *cursor) skipSpace() {
	for c.pos < len(c.b) && isSpace(c.b[c.pos]) {
		c.pos++
	}
}

// take takes the next byte if it is want.
func (c *cursor) take(want byte) bool {
	c.skipSpace()
	if c.pos < len(c.b) && c.b[c.pos] == want {
		c.pos++
		return true
	}
	return false
}

// element stands before the nth element of an object or array that end closes:
// more is false behind the last one, ok is false for what is no list.
func (c *cursor) element(n int, end byte) (more, ok bool) {
	if c.take(end) {
		return false, true
	}
	if n == 0 {
		return true, true
	}
	ok = c.take(',')
	return ok, ok
}

// quoted gives the next value if it is a string, with its quotes on.
func (c *cursor) quoted() []byte {
	c.skipSpace()
	if c.pos == len(c.b) || c.b[c.pos] != '"' {
		return nil
	}
	s := valueScan{pos: 1, strStart: 1, inString: true}
	if !s.crossString(c.b[c.pos:]) {
		return nil
	}
	v := c.b[c.pos : c.pos+s.pos]
	c.pos += s.pos
	return v
}

// key gives a member's name, with its quotes on, and takes its colon.
func (c *cursor) key() []byte {
	if name := c.quoted(); name != nil && c.take(':') {
		return name
	}
	return nil
}

// shortName is as long as the names that mean something, and some more.
const shortName = 24

// shortKey gives a member's name without its quotes and takes its colon, in one
// look at it. It is nil, and nothing is taken, where the name is long or has
// escapes: key and stringText read every name.
func (c *cursor) shortKey() []byte {
	c.skipSpace()
	if c.pos == len(c.b) || c.b[c.pos] != '"' {
		return nil
	}
	text := c.b[c.pos+1 : min(len(c.b), c.pos+1+shortName)]
	n := plainLen(text)
	if n == len(text) || text[n] != '"' {
		return nil
	}
	at := c.pos
	c.pos += n + 2
	if c.take(':') {
		return text[:n:n]
	}
	c.pos = at
	return nil
}

// int takes an integer as intValue means it. What stands behind it must be
// there: digits that the bytes end with may go on.
func (c *cursor) int() (int64, bool) {
	c.skipSpace()
	end := c.pos
	for end < len(c.b) && (c.b[end] >= '0' && c.b[end] <= '9' || c.b[end] == '-') {
		end++
	}
	if end == len(c.b) {
		return 0, false
	}
	switch c.b[end] {
	case ',', '}', ']', ' ', '\n', '\t', '\r':
		n, ok := intValue(c.b[c.pos:end])
		c.pos = end
		return n, ok
	}
	return intValue(c.value())
}

// value gives the next value inside an object or array; none is nil. Its own
// inside is not validated.
func (c *cursor) value() []byte {
	c.skipSpace()
	var s valueScan
	if !s.run(c.b[c.pos:]) || s.pos == 0 { // what ends c.b is no value's inside
		return nil
	}
	v := c.b[c.pos : c.pos+s.pos]
	c.pos += s.pos
	return v
}

// null takes the word.
func (c *cursor) null() bool {
	c.skipSpace()
	if !bytes.HasPrefix(c.b[c.pos:], []byte("null")) {
		return false
	}
	c.pos += len("null")
	return true
}

// isSpace is asked before every token, and the answer is nearly always the first
// comparison's.
func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r') }

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// unplain has the highest bit of the first of eight bytes set that does not stand
// for itself in a string: a quote, a backslash, a control character. Bits behind
// that one say nothing, for a borrow reaches them.
func unplain(w uint64) uint64 {
	quote, slash := w^'"'*eachByte, w^'\\'*eachByte
	return ((w-' '*eachByte)&^w | (quote-eachByte)&^quote | (slash-eachByte)&^slash) & highBits
}

// plainLen is how many bytes b begins with that stand for themselves in a string:
// up to a quote, a backslash or a control character. It looks at eight at a time.
func plainLen(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if found := unplain(binary.LittleEndian.Uint64(b[n:])); found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// stringText decodes a value that must be a string. Where it holds no escapes,
// which is nearly always, the answer is the part of raw between the quotes.
func stringText(d *jx.Decoder, raw []byte) ([]byte, error) {
	if inner, ok := plainString(raw); ok {
		return inner, nil
	}
	d.ResetBytes(raw)
	text, err := d.StrBytes()
	if err != nil {
		return nil, err
	}
	return text, atEnd(d)
}

// plainString gives what is between the quotes of a string whose end was found
// by a valueScan, if that needs no decoding.
func plainString(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	inner := raw[1 : len(raw)-1]
	return inner, plainLen(inner) == len(inner)
}

// intValue parses a JSON integer that fits int64; 1.0 and 1e3 are none.
func intValue(raw []byte) (int64, bool) {
	digits, negative := raw, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0') // 19 digits fit
	}
	switch {
	case negative && n <= math.MaxInt64+1:
		return -int64(n), true
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

func isNullText(raw []byte) bool { return string(raw) == "null" }
