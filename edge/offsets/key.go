package offsets

import (
	"strconv"
	"strings"
)

// Names of the rows (cell-http §4.8). No prefix is a prefix of another.
const (
	offsetPrefix = "qk:group:"
	indexPrefix  = "qk:groups:"
)

// maxKey is the longest key a cell takes, in bytes (cell-http §4.7).
const maxKey = 512

// Key names the offset that a group has committed for a partition.
func Key(group, topic string, partition int32) string {
	b := make([]byte, 0, len(offsetPrefix)+len(group)+len(topic)+12)
	b = appendEscaped(append(b, offsetPrefix...), group)
	b = appendEscaped(append(b, ':'), topic)
	return string(strconv.AppendInt(append(b, ':'), int64(partition), 10))
}

// Fits reports whether a cell can keep the offset of a partition: the key has
// its limit, and so have the names in it.
func Fits(group, topic string, partition int32) bool {
	var digits [12]byte
	n := len(strconv.AppendInt(digits[:0], int64(partition), 10))
	return len(offsetPrefix)+escapedLen(group)+1+escapedLen(topic)+1+n <= maxKey
}

// GroupFits reports whether a group can be kept at all: its row of the index has
// a key too.
func GroupFits(group string) bool { return len(indexPrefix)+escapedLen(group) <= maxKey }

// IndexKey names the row that says that a group exists.
func IndexKey(group string) string { return string(appendEscaped([]byte(indexPrefix), group)) }

// groupPrefix begins the keys of a group's offsets, and no others: a colon in a
// name is escaped.
func groupPrefix(group string) string {
	return string(append(appendEscaped([]byte(offsetPrefix), group), ':'))
}

// placeOf reads what follows groupPrefix. ok is false for a key that Key does
// not make.
func placeOf(rest string) (p Place, ok bool) {
	name, number, ok := strings.Cut(rest, ":")
	if !ok {
		return p, false
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != number {
		return p, false
	}
	p.Partition = int32(n)
	p.Topic, ok = unescape(name)
	return p, ok
}

// groupOf reads a key of the index.
func groupOf(key string) (group string, ok bool) {
	rest, ok := strings.CutPrefix(key, indexPrefix)
	if !ok {
		return "", false
	}
	return unescape(rest)
}

const upperHex = "0123456789ABCDEF"

// plain are the bytes that stand for themselves.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// appendEscaped percent-encodes every byte that is not plain.
func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if plain(c) {
			b = append(b, c)
			continue
		}
		b = append(b, '%', upperHex[c>>4], upperHex[c&15])
	}
	return b
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		if !plain(s[i]) {
			n += 2
		}
	}
	return n
}

// unescape undoes appendEscaped, and refuses what it would not have written: two
// keys must not read as one name.
func unescape(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '%' {
			if !plain(c) {
				return "", false
			}
			b = append(b, c)
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if hi < 0 || lo < 0 || plain(byte(hi<<4|lo)) {
			return "", false
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), true
}
