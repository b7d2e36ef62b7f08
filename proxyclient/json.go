package proxyclient

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-faster/jx"
)

var errTrailing = errors.New("bytes after the answer's end")

// object decodes a whole body that is one object.
func object(body []byte, member func(d *jx.Decoder, key []byte) error) error {
	d := jx.DecodeBytes(body)
	if err := d.ObjBytes(member); err != nil {
		return err
	}
	return atEnd(d)
}

// atEnd accepts white space only.
func atEnd(d *jx.Decoder) error {
	if err := d.Skip(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// isNull consumes a null.
func isNull(d *jx.Decoder) bool { return d.Next() == jx.Null && d.Null() == nil }

// optional reads a value unless it is null, which leaves the default.
func optional[T any](d *jx.Decoder, into *T, read func() (T, error)) error {
	if isNull(d) {
		return nil
	}
	v, err := read()
	if err == nil {
		*into = v
	}
	return err
}

// refusedInside reports a non-null error member of a 2xx (§3.2, §3.3).
func refusedInside(d *jx.Decoder) error {
	raw, err := d.Raw()
	if err != nil || raw.Type() == jx.Null {
		return err
	}
	return fmt.Errorf("the answer holds an error: %s", cutBytes(string(raw), wireChars))
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD: the cell would refuse the whole body for one of them.
func appendString[S string | []byte](b []byte, s S) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			size := runeLen(s[i:min(i+utf8.UTFMax, len(s))])
			if size > 0 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), "\uFFFD"...)
		} else {
			b = appendEscape(append(b, s[start:i]...), c)
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// runeLen is the length of the valid rune s begins with, or 0.
func runeLen[S string | []byte](s S) int {
	var first [utf8.UTFMax]byte
	n := copy(first[:], s)
	r, size := utf8.DecodeRune(first[:n])
	if r == utf8.RuneError && size == 1 {
		return 0
	}
	return size
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendLane appends the members that name a partition: Kafka's n is the
// cell's "n" (§3.1).
func appendLane(b []byte, queue string, partition int32) []byte {
	b = append(b, `"queue":`...)
	b = appendString(b, queue)
	b = append(b, `,"partition":"`...)
	b = strconv.AppendInt(b, int64(partition), 10)
	return append(b, '"')
}
