package proxyclient

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/segmentio/asm/base64"
)

// decoder turns elements of a fetch answer's records into records, with memory
// it uses again for the next one.
type decoder struct {
	json     jx.Decoder
	record   batch.Record
	headers  []batch.Header
	arena    []byte // what the record's slices alias
	appended int64  // ms; −1 where it cannot be read
	stamped  bool   // the envelope has a timestamp of its own
	stamp    stamp
}

// forget lets go of the last record, whose slices are a tenant's data.
func (d *decoder) forget() {
	d.record = batch.Record{}
	clear(d.headers[:cap(d.headers)])
	d.stamp = stamp{}
}

// decode fills d.record from one element.
func (d *decoder) decode(raw []byte) error {
	c := cursor{b: raw}
	err := d.element(&c)
	if err == nil && c.pos != len(raw) {
		err = errSyntax
	}
	return err
}

// whole reads an element that b begins with and says how long it is. 0 is no
// verdict: the end of it may be missing, and decode knows what is wrong with
// one that is all there.
func (d *decoder) whole(b []byte) int {
	c := cursor{b: b}
	if d.element(&c) != nil {
		return 0
	}
	return c.pos
}

// element fills d.record from what c stands before. Its members come in any
// order; a missing payload is null.
func (d *decoder) element(c *cursor) error {
	// The arena must not move while the record is being made: its slices point
	// into it. What is decoded is never longer than what it came from.
	d.arena = slices.Grow(d.arena[:0], len(c.b)+len("null"))
	offset, appended := int64(-1), int64(-1)
	native, there := []byte(nil), false
	d.clear()
	if !c.take('{') {
		return errSyntax
	}
	for n := 0; ; n++ {
		more, ok := c.element(n, '}')
		if !ok {
			return errSyntax
		}
		if !more {
			break
		}
		name, ok := d.name(c)
		if !ok {
			return errSyntax
		}
		switch memberOf(name) {
		case memberPayload:
			native, ok = d.payload(c)
			there = true
		case memberOffset:
			if offset, ok = c.int(); !ok || offset < 0 {
				return errNegativeOffset
			}
		case memberTS:
			raw := c.value()
			appended = d.stamp.read(raw)
			ok = appended >= 0 || d.validate(raw) == nil
		default:
			ok = d.validate(c.value()) == nil
		}
		if !ok {
			return errSyntax
		}
	}
	if offset < 0 {
		return errNegativeOffset
	}
	if !there {
		native = []byte("null")
	}
	d.record.Offset = offset
	if !d.stamped {
		d.record.Timestamp = appended
	}
	d.appended = appended
	return d.finish(native, appended)
}

func (d *decoder) clear() {
	d.record.Key, d.record.Value, d.record.Headers = nil, nil, nil
	d.stamped = false
}

// payload reads a stored payload (§3.4 "Record envelope"): an envelope into
// d.record, anything else as the native message that is returned.
func (d *decoder) payload(c *cursor) (native []byte, ok bool) {
	start := c.pos
	d.clear()
	if d.envelope(c) {
		return nil, true
	}
	c.pos = start
	native = c.value()
	return native, native != nil
}

// finish makes the value of a native message: its payload as compact JSON. The
// only error is a payload that is none.
func (d *decoder) finish(native []byte, appended int64) error {
	if native == nil {
		return nil
	}
	if err := d.validate(native); err != nil {
		return err
	}
	d.clear()
	d.arena = appendCompact(d.arena[:0], native)
	d.record.Value, d.record.Timestamp = d.arena, appended
	return nil
}

// validate checks a value whose end was found but whose inside was not read.
func (d *decoder) validate(raw []byte) error {
	if _, ok := plainString(raw); ok {
		return nil
	}
	d.json.ResetBytes(raw)
	if d.json.Skip() != nil || atEnd(&d.json) != nil {
		return errSyntax
	}
	return nil
}

// name takes a member's name and its colon.
func (d *decoder) name(c *cursor) ([]byte, bool) {
	if name := c.shortKey(); name != nil {
		return name, true
	}
	quoted := c.key()
	if quoted == nil {
		return nil, false
	}
	name, err := stringText(&d.json, quoted)
	return name, err == nil
}

// envelope reports whether the next value is one: no member but k, v, h, t,
// both k and v, each of its right type.
func (d *decoder) envelope(c *cursor) bool {
	hasKey, hasValue := false, false
	if !c.take('{') {
		return false
	}
	for n := 0; ; n++ {
		more, good := c.element(n, '}')
		if !more {
			return good && hasKey && hasValue
		}
		name, good := d.name(c)
		if !good {
			return false
		}
		switch string(name) {
		case "k":
			d.record.Key, good = d.bytes(c)
			hasKey = true
		case "v":
			d.record.Value, good = d.bytes(c)
			hasValue = true
		case "t":
			d.record.Timestamp, good = c.int()
			d.stamped = true
		case "h":
			good = d.headerList(c)
		default:
			good = false
		}
		if !good {
			return false
		}
	}
}

// headerList decodes [{"k":text,"v":base64 or null}, …].
func (d *decoder) headerList(c *cursor) bool {
	d.headers = d.headers[:0]
	if !c.take('[') {
		return false
	}
	for n := 0; ; n++ {
		more, good := c.element(n, ']')
		if !more {
			d.record.Headers = d.headers
			return good
		}
		if !d.header(c) {
			return false
		}
	}
}

func (d *decoder) header(c *cursor) bool {
	var h batch.Header
	hasKey, hasValue := false, false
	if !c.take('{') {
		return false
	}
	for n := 0; ; n++ {
		more, good := c.element(n, '}')
		if !more {
			d.headers = append(d.headers, h)
			return good && hasKey && hasValue
		}
		name, good := d.name(c)
		if !good {
			return false
		}
		switch string(name) {
		case "k":
			h.Key, good = d.text(c)
			hasKey = true
		case "v":
			h.Value, good = d.bytes(c)
			hasValue = true
		default:
			good = false
		}
		if !good {
			return false
		}
	}
}

// bytes decodes a base64 string or null into the arena.
func (d *decoder) bytes(c *cursor) ([]byte, bool) {
	raw := c.quoted()
	if raw == nil {
		return nil, c.null()
	}
	at := len(d.arena)
	out, ok := appendDecoded(d.arena, raw[1:len(raw)-1])
	if !ok && bytes.IndexByte(raw, '\\') >= 0 { // "\/" is legal JSON for a slash
		text, err := stringText(&d.json, raw)
		if err != nil {
			return nil, false
		}
		out, ok = appendDecoded(d.arena, text)
	}
	d.arena = out
	return out[at:len(out):len(out)], ok
}

// text copies a string into the arena.
func (d *decoder) text(c *cursor) ([]byte, bool) {
	raw := c.quoted()
	if raw == nil {
		return nil, false
	}
	text, err := stringText(&d.json, raw)
	if err != nil {
		return nil, false
	}
	at := len(d.arena)
	d.arena = append(d.arena, text...)
	return d.arena[at:len(d.arena):len(d.arena)], true
}

// appendDecoded appends the bytes of canonical base64: standard alphabet, full
// padding, no line breaks, no stray bits. Anything looser was not written by a
// gateway and would not survive being written again.
func appendDecoded(b, text []byte) ([]byte, bool) {
	if len(text)%4 != 0 {
		return b, false
	}
	size := len(text) / 4 * 3
	if n := len(text); n > 0 {
		switch {
		case text[n-2] == '=':
			size -= 2
		case text[n-1] == '=':
			size--
		}
		if !cleanTail(text) {
			return b, false
		}
	}
	at := len(b)
	b = slices.Grow(b, len(text)/4*3)
	n, err := base64.StdEncoding.Decode(b[at:at+len(text)/4*3], text)
	if err != nil || n != size { // the library skips line breaks: fewer bytes than text
		return b, false
	}
	return b[:at+n], true
}

// cleanTail reports whether the bits that padding leaves over are zero.
func cleanTail(text []byte) bool {
	n := len(text)
	switch {
	case text[n-2] == '=':
		return text[n-1] == '=' && bytes.IndexByte([]byte("AQgw"), text[n-3]) >= 0
	case text[n-1] == '=':
		return bytes.IndexByte([]byte("AEIMQUYcgkosw048"), text[n-2]) >= 0
	}
	return true
}

// appendCompact appends valid JSON without the white space between tokens.
func appendCompact(b, raw []byte) []byte {
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			s := valueScan{}
			s.run(raw[i:])
			b = append(b, raw[i:i+s.pos]...)
			i += s.pos
		case isSpace(c):
			i++
		default:
			b = append(b, c)
			i++
		}
	}
	return b
}

// stamp remembers the append time read last: records that were appended
// together have the same.
type stamp struct {
	text [32]byte
	len  int
	ms   int64
}

// read is appendTime.
func (s *stamp) read(quoted []byte) int64 {
	if s.len > 0 && string(quoted) == string(s.text[:s.len]) {
		return s.ms
	}
	ms := appendTime(quoted)
	if s.len = 0; ms >= 0 && len(quoted) <= len(s.text) {
		s.ms, s.len = ms, copy(s.text[:], quoted)
	}
	return ms
}

// appendTime reads a quoted YYYY-MM-DDTHH:MM:SS[.fraction]Z as ms, the
// fraction of any length cut to three digits; −1 for every other shape (§3.5).
func appendTime(quoted []byte) int64 {
	const shape = `"0000-00-00T00:00:00`
	n := len(quoted)
	if n < len(shape)+2 || quoted[n-1] != '"' || quoted[n-2] != 'Z' {
		return -1
	}
	for i := range len(shape) {
		c := quoted[i]
		if shape[i] == '0' && (c < '0' || c > '9') || shape[i] != '0' && c != shape[i] {
			return -1
		}
	}
	ms, ok := millis(quoted[len(shape) : n-2])
	if !ok {
		return -1
	}
	year := number(quoted[1:5])
	month, day := number(quoted[6:8]), number(quoted[9:11])
	hour, minute, second := number(quoted[12:14]), number(quoted[15:17]), number(quoted[18:20])
	at := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if at.Month() != time.Month(month) || at.Day() != day || hour > 23 || minute > 59 || second > 59 || year < 1970 {
		return -1
	}
	return at.UnixMilli() + ms
}

// millis reads "" or ".digits".
func millis(fraction []byte) (ms int64, ok bool) {
	if len(fraction) == 0 {
		return 0, true
	}
	if fraction[0] != '.' || len(fraction) == 1 {
		return 0, false
	}
	weight := int64(100)
	for _, c := range fraction[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms += int64(c-'0') * weight
		weight /= 10
	}
	return ms, true
}

func number(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}
