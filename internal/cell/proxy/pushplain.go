package proxy

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/segmentio/asm/ascii"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// What a body is made of when it is written as gateways write it.
const (
	plainHead      = `{"items":[`
	plainTail      = `]}`
	plainQueue     = `{"queue":"`
	plainPartition = `,"partition":"`
	plainKey       = `,"transactionId":"`
	plainPayload   = `,"payload":`
)

const (
	// plainDepth is how deep a payload may be nested and still be plain.
	plainDepth = 8
	// shortText is up to where a text is looked at in words, all at once: behind
	// it, wide registers are quicker, though they look three times.
	shortText = 160
)

// plain reads a body that is plain: the items' members in the order in which
// gateways write them, no space, no escapes, no fractions, ASCII. Such
// a body is nearly every one, and most of its bytes are the texts of payloads,
// which wide registers pass over. It is a strict part of what decode takes and
// means the same there; of any other body plain says no, having kept what decode
// must forget.
func (b *pushBody) plain(body []byte) bool {
	if !bytes.HasPrefix(body, []byte(plainHead)) {
		return false
	}
	b.hasItems = true
	at := len(plainHead)
	if string(body[at:]) == plainTail {
		return true
	}
	var lane plainLane
	for {
		var it broker.PushItem
		it, at = lane.item(b, body, at)
		if at < 0 || at >= len(body) {
			return false
		}
		b.keep(it)
		b.count++
		if body[at] != ',' {
			return string(body[at:]) == plainTail
		}
		at++
	}
}

// plainLane is the queue and the partition of the item before: the next one
// mostly begins with the same text.
type plainLane struct {
	text             []byte
	queue, partition string
}

// item reads the item that begins at an index, and says where it ends; below 0:
// it is not plain.
func (l *plainLane) item(b *pushBody, body []byte, at int) (it broker.PushItem, end int) {
	if len(l.text) > 0 && bytes.HasPrefix(body[at:], l.text) {
		at += len(l.text)
	} else if at = l.read(b, body, at); at < 0 {
		return it, -1
	}
	it.Queue, it.Partition = l.queue, l.partition
	if hasText(body, at, plainKey) {
		from := at + len(plainKey)
		if at = plainText(body, from-1); at < 0 {
			return it, -1
		}
		it.TransactionID = body[from : at-1]
	}
	if !hasText(body, at, plainPayload) {
		return it, -1
	}
	from := at + len(plainPayload)
	if at = plainValue(body, from, plainDepth); at < 0 || !hasText(body, at, "}") {
		return it, -1
	}
	it.Payload = body[from:at:at]
	return it, at + 1
}

// read reads an item up to its partition's end.
func (l *plainLane) read(b *pushBody, body []byte, at int) int {
	from, name := at, at+len(plainQueue)
	if !hasText(body, at, plainQueue) {
		return -1
	}
	if at = plainText(body, name-1); at < 0 {
		return -1
	}
	queue := body[name : at-1]
	name = at + len(plainPartition)
	if !hasText(body, at, plainPartition) {
		return -1
	}
	if at = plainText(body, name-1); at < 0 {
		return -1
	}
	l.text, l.queue, l.partition = body[from:at], b.queues.intern(queue), b.partitions.intern(body[name:at-1])
	return at
}

// hasText says whether a text stands at an index, which may be below 0 or lie
// behind the end.
func hasText(b []byte, at int, text string) bool {
	return at >= 0 && len(b)-at >= len(text) && string(b[at:at+len(text)]) == text
}

// plainValue is the end of the JSON value that begins at an index; below 0: it is
// not plain, or it is nested more than so deep.
func plainValue(b []byte, at, depth int) int {
	if at >= len(b) {
		return -1
	}
	switch c := b[at]; {
	case c == '"':
		return plainText(b, at)
	case c == '-' || isDigit(c):
		return plainNumber(b, at)
	case c == '{' || c == '[':
		return plainNested(b, at, depth)
	case hasText(b, at, "null"), hasText(b, at, "true"):
		return at + len("null")
	case hasText(b, at, "false"):
		return at + len("false")
	}
	return -1
}

// plainNested is plainValue of an object or an array.
func plainNested(b []byte, at, depth int) int {
	object := b[at] == '{'
	closing := b[at] + 2 // of both kinds of bracket
	if at++; depth == 0 {
		return -1
	}
	if at < len(b) && b[at] == closing {
		return at + 1
	}
	for {
		if object {
			if at = plainText(b, at); !hasText(b, at, ":") {
				return -1
			}
			at++
		}
		if at = plainValue(b, at, depth-1); at < 0 || at >= len(b) {
			return -1
		}
		if b[at] == closing {
			return at + 1
		}
		if b[at] != ',' {
			return -1
		}
		at++
	}
}

// plainText is the end of the JSON text whose quote stands at an index: ASCII
// without escapes. Below 0: it is another one, or none.
func plainText(b []byte, at int) int {
	if at < 0 || at >= len(b) || b[at] != '"' {
		return -1
	}
	at++
	for from := at; at-from < shortText; at += 8 {
		if len(b)-at < 8 {
			return plainEnd(b, at)
		}
		if odd := oddBytes(binary.LittleEndian.Uint64(b[at:])); odd != 0 {
			if at += bits.TrailingZeros64(odd) / 8; b[at] == '"' {
				return at + 1
			}
			return -1
		}
	}
	n := bytes.IndexByte(b[at:], '"')
	if n < 0 {
		return -1
	}
	if text := b[at : at+n]; !ascii.ValidPrint(text) || bytes.IndexByte(text, '\\') >= 0 {
		return -1
	}
	return at + n + 1
}

// plainEnd is plainText from an index inside the text on, byte by byte.
func plainEnd(b []byte, at int) int {
	for ; at < len(b); at++ {
		switch c := b[at]; {
		case c == '"':
			return at + 1
		case c < ' ' || c > '~' || c == '\\':
			return -1
		}
	}
	return -1
}

// oddBytes has the highest bit of the first of eight bytes set that ends a plain
// text: a quote, a backslash, a control character, or what is not ASCII. Bits
// behind that one say nothing.
func oddBytes(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, escape := w^'"'*ones, w^'\\'*ones
	return ((w-' '*ones)&^w | (quote-ones)&^quote | (escape-ones)&^escape | w) & high
}

// plainNumber is the end of a whole number.
func plainNumber(b []byte, at int) int {
	if b[at] == '-' {
		at++
	}
	from := at
	for at < len(b) && isDigit(b[at]) {
		at++
	}
	if at == from || b[from] == '0' && at > from+1 {
		return -1
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isPlain says whether a text is written as it is: ASCII without what is escaped.
func isPlain(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if oddBytes(binary.LittleEndian.Uint64(text)) != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
