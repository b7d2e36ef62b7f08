package proxyclient

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/segmentio/asm/base64"
)

// decoder turns stored payloads into records, with memory it uses again for
// the next one.
type decoder struct {
	json    jx.Decoder
	list    jx.Decoder // walks the header list while json reads what is in it
	record  batch.Record
	headers []batch.Header
	arena   []byte // what the record's slices alias
}

// forget lets go of the last record, whose slices are a tenant's data.
func (d *decoder) forget() {
	d.record = batch.Record{}
	clear(d.headers[:cap(d.headers)])
}

// decode fills d.record from one element of a fetch answer's records. Its
// members come in any order; a missing payload is null.
func (d *decoder) decode(raw []byte) error {
	members := cursor{b: raw}
	payload, offset, appended := []byte(nil), int64(-1), int64(-1)
	for {
		key, value, ok, err := members.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		name, err := plainKey(&d.json, key)
		if err != nil {
			return err
		}
		switch memberOf(name) {
		case memberPayload:
			payload = value
		case memberOffset:
			if offset, ok = intValue(value); !ok || offset < 0 {
				return errNegativeOffset
			}
		case memberTS:
			appended = appendTime(value)
			err = d.validate(value)
		default:
			err = d.validate(value)
		}
		if err != nil {
			return err
		}
	}
	if offset < 0 {
		return errNegativeOffset
	}
	if payload == nil {
		payload = []byte("null")
	}
	d.record.Offset = offset
	return d.payload(payload, appended)
}

// validate checks a value whose end was found but whose inside was not read.
func (d *decoder) validate(raw []byte) error {
	d.json.ResetBytes(raw)
	if d.json.Skip() != nil || atEnd(&d.json) != nil {
		return errSyntax
	}
	return nil
}

// payload fills d.record from a stored payload (§3.4 "Record envelope") and
// the entry's append time. An object that is not quite an envelope is a native
// message, whose value is the payload as compact JSON; so is null. The only
// error is a payload that is not JSON.
func (d *decoder) payload(raw []byte, appended int64) error {
	// The arena must not move while the record is being made: its slices point
	// into it. What is decoded is never longer than what it came from.
	d.arena = slices.Grow(d.arena[:0], len(raw)+1)
	d.record.Key, d.record.Value, d.record.Headers = nil, nil, nil
	d.record.Timestamp = appended
	if raw[0] == '{' && d.envelope(raw) {
		return nil
	}
	d.record.Key, d.record.Headers = nil, nil
	d.record.Timestamp = appended
	if err := d.validate(raw); err != nil {
		return err
	}
	d.arena = appendCompact(d.arena[:0], raw)
	d.record.Value = d.arena
	return nil
}

// envelope reports whether raw is one: no member but k, v, h, t, both k and v,
// each of its right type.
func (d *decoder) envelope(raw []byte) bool {
	members := cursor{b: raw}
	hasKey, hasValue, good := false, false, true
	for {
		key, value, ok, err := members.next()
		if err != nil {
			return false
		}
		if !ok {
			return hasKey && hasValue
		}
		name, err := plainKey(&d.json, key)
		if err != nil {
			return false
		}
		switch string(name) {
		case "k":
			d.record.Key, good = d.bytes(value)
			hasKey = true
		case "v":
			d.record.Value, good = d.bytes(value)
			hasValue = true
		case "t":
			d.record.Timestamp, good = intValue(value)
		case "h":
			good = d.headerList(value)
		default:
			good = false
		}
		if !good {
			return false
		}
	}
}

// bytes decodes a base64 string or null into the arena.
func (d *decoder) bytes(raw []byte) ([]byte, bool) {
	if isNullText(raw) {
		return nil, true
	}
	if raw[0] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // "\/" is legal JSON for a slash
		var err error
		if text, err = stringText(&d.json, raw); err != nil {
			return nil, false
		}
	}
	at := len(d.arena)
	out, ok := appendDecoded(d.arena, text)
	d.arena = out
	return out[at:len(out):len(out)], ok
}

// headerList decodes [{"k":text,"v":base64 or null}, …].
func (d *decoder) headerList(raw []byte) bool {
	d.headers = d.headers[:0]
	list := &d.list
	list.ResetBytes(raw)
	items, err := list.ArrIter()
	if err != nil {
		return false
	}
	for items.Next() {
		one, err := list.Raw()
		if err != nil || one[0] != '{' || !d.header(one) {
			return false
		}
	}
	d.record.Headers = d.headers
	return items.Err() == nil && atEnd(list) == nil
}

func (d *decoder) header(raw []byte) bool {
	members := cursor{b: raw}
	hasKey, hasValue, good := false, false, true
	var h batch.Header
	for {
		key, value, ok, err := members.next()
		if err != nil {
			return false
		}
		if !ok {
			d.headers = append(d.headers, h)
			return hasKey && hasValue
		}
		name, err := plainKey(&d.json, key)
		if err != nil {
			return false
		}
		switch string(name) {
		case "k":
			h.Key, good = d.text(value)
			hasKey = true
		case "v":
			h.Value, good = d.bytes(value)
			hasValue = true
		default:
			good = false
		}
		if !good {
			return false
		}
	}
}

// text copies a string into the arena.
func (d *decoder) text(raw []byte) ([]byte, bool) {
	if raw[0] != '"' {
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
