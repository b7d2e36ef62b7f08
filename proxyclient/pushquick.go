package proxyclient

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The members of an item's answer as the cells that we know write them.
const (
	itemIndex       = `{"index":`
	itemMessage     = `,"message_id":"`
	itemTransaction = `,"transaction_id":"`
	itemQueue       = `,"queueName":"`
	itemQueued      = `,"status":"queued","offset":`
)

// storedItem is quickItem for what nearly every item comes back as: stored, at an
// offset, with its members in the order in which cells write them. It compares
// names, reads two numbers and passes over the texts; of anything else it says
// that it has no length.
func storedItem(b []byte) (n int, index int64, result PushResult) {
	index, n = memberNumber(b, 0, itemIndex)
	n = skipMember(b, n, itemMessage)
	n = skipMember(b, n, itemTransaction)
	n = skipMember(b, n, itemQueue)
	offset, n := memberNumber(b, n, itemQueued)
	if n <= 0 || n >= len(b) || b[n] != '}' {
		return 0, 0, PushResult{}
	}
	return n + 1, index, PushResult{Status: PushQueued, Offset: offset}
}

// memberNumber reads a member that begins at an index, and says where it ends;
// below 0: it is not there, or not a whole number of few digits.
func memberNumber(b []byte, at int, name string) (v int64, end int) {
	const mostDigits = 18 // always fit an int64
	if at < 0 || !bytes.HasPrefix(b[at:], []byte(name)) {
		return 0, -1
	}
	from := at + len(name)
	for end = from; end < len(b) && b[end] >= '0' && b[end] <= '9'; end++ {
		if v = v*10 + int64(b[end]-'0'); end-from == mostDigits {
			return 0, -1
		}
	}
	if end == from || b[from] == '0' && end > from+1 {
		return 0, -1
	}
	return v, end
}

// skipMember is where a member ends whose text has no escapes and is ASCII; below
// 0: it is not there, or another one. name has the text's opening quote.
func skipMember(b []byte, at int, name string) int {
	if at < 0 || !bytes.HasPrefix(b[at:], []byte(name)) {
		return -1
	}
	for at += len(name); len(b)-at >= 8; at += 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		if odd := unplain(w) | w&highBits; odd != 0 {
			if at += bits.TrailingZeros64(odd) / 8; b[at] == '"' {
				return at + 1
			}
			return -1
		}
	}
	return -1 // a member of this answer has more than eight bytes behind it
}
