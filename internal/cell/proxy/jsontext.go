package proxy

import (
	"errors"
	"io"

	"github.com/go-faster/jx"
)

// keptNames is how many names an interner makes one string of. Beyond it, each
// occurrence is a string of its own.
const keptNames = 4 << 10

// interner makes one string of equal names within one body, so that a batch to
// one partition costs one string and not one per record.
type interner struct {
	last  string
	names map[string]string
}

// intern returns name as a string.
func (n *interner) intern(name []byte) string {
	if n.last == string(name) {
		return n.last
	}
	known, ok := n.names[string(name)]
	if !ok {
		known = string(name)
		if n.names == nil {
			n.names = make(map[string]string)
		}
		if len(n.names) < keptNames {
			n.names[known] = known
		}
	}
	n.last = known
	return known
}

// reset forgets the names: no body's outlives its request.
func (n *interner) reset() {
	n.last = ""
	clear(n.names)
}

// trailing reports whether anything but space follows the value just read.
func trailing(d *jx.Decoder) bool { return !errors.Is(d.Skip(), io.EOF) }

// notAnObject tells broken JSON from JSON that is something else.
func notAnObject(d *jx.Decoder) *refusal {
	if d.Skip() != nil || trailing(d) {
		return badBody()
	}
	return badRequest("the body must be an object")
}

// integer reads a JSON integer that fits int64. ok is false, and the value
// skipped, for any other value; err is broken JSON.
func integer(d *jx.Decoder) (n int64, ok bool, err error) {
	isNumber := d.Next() == jx.Number
	raw, err := d.Raw()
	if err != nil || !isNumber {
		return 0, false, err
	}
	n, ok = parseInteger(raw)
	return n, ok, nil
}

// parseInteger reads decimal digits with an optional minus; no fraction, no
// exponent, no overflow.
func parseInteger(raw []byte) (n int64, ok bool) {
	digits := raw
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		digits = raw[1:]
	}
	const maxDigits = 19 // 2^63−1 has 19
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	var u uint64 // 19 digits always fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}
