package proxyclient

import (
	"io"

	"github.com/go-faster/jx"
)

// pushReader reads the answer to a push as it comes. It is pooled: its window is
// what makes an answer of any length free of allocations.
type pushReader struct {
	in       window
	body     bounded
	json     jx.Decoder
	results  []PushResult
	answered int
}

func (c *Client) pushReader() *pushReader {
	if r, ok := c.pushes.Get().(*pushReader); ok {
		return r
	}
	return &pushReader{}
}

// putPushReader keeps the memory and forgets the tenant's call.
func (c *Client) putPushReader(r *pushReader) {
	if cap(r.in.buf) > maxPooled {
		return
	}
	r.in.r, r.body, r.results = nil, bounded{}, nil
	c.pushes.Put(r)
}

// read fills one result per item from an answer of at most limit bytes. Every
// index must be there exactly once.
func (r *pushReader) read(body io.Reader, limit int64, results []PushResult) error {
	for i := range results {
		results[i] = PushResult{Status: pushUnanswered, Offset: -1}
	}
	r.results, r.answered = results, 0
	r.body = bounded{r: body, left: limit}
	r.in.reset(&r.body)
	if err := r.readAll(); err != nil {
		if r.body.over { // whatever that broke
			return errTooLarge
		}
		return err
	}
	if r.answered != len(results) {
		return errPushIndex
	}
	return nil
}

func (r *pushReader) readAll() error {
	if err := r.in.each('[', ']', r.readItem); err != nil {
		return err
	}
	return r.in.atEnd()
}

func (r *pushReader) readItem() error {
	if _, err := r.in.peek(); err != nil {
		return err
	}
	n, index, result := storedItem(r.in.buf[r.in.head:r.in.tail])
	if n == 0 {
		n, index, result = quickItem(r.in.buf[r.in.head:r.in.tail])
	}
	r.in.head += n
	if n == 0 {
		raw, err := r.in.value()
		if err != nil {
			return err
		}
		if index, result, err = r.item(raw); err != nil {
			return err
		}
	}
	if index < 0 || index >= int64(len(r.results)) || r.results[index].Status != pushUnanswered {
		return errPushIndex
	}
	r.results[index] = result
	r.answered++
	return nil
}

// item reads one object, which holds a whole item's answer.
func (r *pushReader) item(raw []byte) (index int64, result PushResult, err error) {
	index, result = -1, PushResult{Status: PushFailed, Offset: -1}
	c := cursor{b: raw}
	if !c.take('{') {
		return index, result, errSyntax
	}
	for n := 0; ; n++ {
		more, ok := c.element(n, '}')
		if !ok {
			return index, result, errSyntax
		}
		if !more {
			break
		}
		quoted := c.key()
		if quoted == nil {
			return index, result, errSyntax
		}
		name, err := stringText(&r.json, quoted)
		if err != nil {
			return index, result, err
		}
		switch string(name) {
		case "index":
			index, ok = intValue(c.value())
		case "status":
			result.Status, ok = r.status(c.quoted())
		case "offset":
			result.Offset, ok = offsetOrNull(c.value())
		default:
			ok = r.valid(c.value())
		}
		if !ok {
			return index, result, errSyntax
		}
	}
	if c.pos != len(raw) {
		return index, result, errSyntax
	}
	if result.Offset < -1 {
		return index, result, errNegativeOffset
	}
	return index, result, nil
}

// quickItem reads an object as cells write them, in one pass: text without
// escapes and whole numbers, no space between them. Anything else, and an object
// that has not come whole, has no length; then the long way says what it is.
func quickItem(b []byte) (n int, index int64, result PushResult) {
	index, result = -1, PushResult{Status: PushFailed, Offset: -1}
	if len(b) == 0 || b[0] != '{' {
		return 0, 0, result
	}
	for i := 1; ; {
		name, after := quickText(b, i)
		if after >= len(b) || b[after] != ':' {
			return 0, 0, result
		}
		value, end := quickValue(b, after+1)
		if end >= len(b) || b[end] != ',' && b[end] != '}' {
			return 0, 0, result
		}
		if !result.quickMember(&index, name, value) {
			return 0, 0, result
		}
		i = end + 1
		if b[end] == '}' && result.Offset >= -1 {
			return i, index, result
		}
		if b[end] == '}' {
			return 0, 0, result
		}
	}
}

func (p *PushResult) quickMember(index *int64, name, value []byte) (ok bool) {
	number := value[0] != '"'
	switch string(name) {
	case "index":
		*index, ok = intValue(value)
		return ok
	case "offset":
		p.Offset, ok = intValue(value)
		return ok
	case "status":
		if number {
			return false
		}
		p.Status = statusOf(value[1 : len(value)-1])
		return true
	}
	if number {
		_, ok = intValue(value)
		return ok
	}
	return true
}

// quickText is what stands between quotes from b[i] on, and where it ends; b's
// end and beyond: it does not.
func quickText(b []byte, i int) (text []byte, end int) {
	if i >= len(b) || b[i] != '"' {
		return nil, len(b)
	}
	for j := i + 1; j < len(b); j++ {
		switch c := b[j]; {
		case c == '"':
			return b[i+1 : j], j + 1
		case c < 0x20 || c == '\\':
			return nil, len(b)
		}
	}
	return nil, len(b)
}

// quickValue is a text with its quotes, or what may be a number.
func quickValue(b []byte, i int) (value []byte, end int) {
	if i < len(b) && b[i] == '"' {
		_, end = quickText(b, i)
		return b[i:end], end
	}
	for end = i; end < len(b) && (b[end] == '-' || b[end] >= '0' && b[end] <= '9'); end++ {
	}
	if end == i { // no number
		return nil, len(b)
	}
	return b[i:end], end
}

func offsetOrNull(raw []byte) (int64, bool) {
	if isNullText(raw) {
		return -1, true
	}
	return intValue(raw)
}

func (r *pushReader) status(quoted []byte) (PushStatus, bool) {
	if quoted == nil {
		return PushFailed, false
	}
	word, err := stringText(&r.json, quoted)
	return statusOf(word), err == nil
}

func statusOf(word []byte) PushStatus {
	switch string(word) {
	case "queued":
		return PushQueued
	case "duplicate":
		return PushDuplicate
	case "buffered":
		return PushBuffered
	}
	return PushFailed
}

// valid checks a value that nobody asked for.
func (r *pushReader) valid(raw []byte) bool {
	if raw == nil {
		return false
	}
	if _, ok := plainString(raw); ok {
		return true
	}
	r.json.ResetBytes(raw)
	return r.json.Skip() == nil && atEnd(&r.json) == nil
}

// bounded reads no more than what is left, and knows when there was more.
type bounded struct {
	r    io.Reader
	left int64
	over bool
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.over = true
		return 0, errTooLarge
	}
	return n, err
}
