package proxyclient

import (
	"bytes"
	"errors"
	"math"

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

// cursor walks the members of one object that is in memory.
type cursor struct {
	b     []byte
	pos   int
	begun bool
}

// next gives the next member, its key with the quotes on; ok is false behind
// the last one. The value's inside is not validated.
func (c *cursor) next() (key, value []byte, ok bool, err error) {
	if !c.begun {
		c.begun = true
		if !c.take('{') {
			return nil, nil, false, errSyntax
		}
		if c.take('}') {
			return nil, nil, false, c.finish()
		}
	} else if !c.take(',') {
		if c.take('}') {
			return nil, nil, false, c.finish()
		}
		return nil, nil, false, errSyntax
	}
	if key = c.value(); len(key) == 0 || key[0] != '"' || !c.take(':') {
		return nil, nil, false, errSyntax
	}
	if value = c.value(); len(value) == 0 {
		return nil, nil, false, errSyntax
	}
	return key, value, true, nil
}

func (c *cursor) take(want byte) bool {
	c.skipSpace()
	if c.pos < len(c.b) && c.b[c.pos] == want {
		c.pos++
		return true
	}
	return false
}

func (c *cursor) skipSpace() {
	for c.pos < len(c.b) && isSpace(c.b[c.pos]) {
		c.pos++
	}
}

func (c *cursor) value() []byte {
	c.skipSpace()
	var s valueScan
	if !s.run(c.b[c.pos:]) { // an object's members end inside it
		return nil
	}
	v := c.b[c.pos : c.pos+s.pos]
	c.pos += s.pos
	return v
}

func (c *cursor) finish() error {
	c.skipSpace()
	if c.pos != len(c.b) {
		return errSyntax
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// plainKey gives the name in a quoted key. Names are compared as they are
// written; one with escapes is decoded first.
func plainKey(d *jx.Decoder, quoted []byte) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		inner := quoted[1 : len(quoted)-1]
		for _, c := range inner {
			if c < 0x20 {
				return nil, errSyntax
			}
		}
		return inner, nil
	}
	return stringText(d, quoted)
}

// stringText decodes a value that must be a string. Where it holds no escapes
// the answer aliases raw.
func stringText(d *jx.Decoder, raw []byte) ([]byte, error) {
	d.ResetBytes(raw)
	text, err := d.StrBytes()
	if err != nil {
		return nil, err
	}
	return text, atEnd(d)
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
