package api

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tagged is a body whose last section of tags has n unknown ones.
func tagged(req kmsg.Request, n int) []byte {
	body := req.AppendTo(nil)
	body = binary.AppendUvarint(body[:len(body)-1], uint64(n))
	for i := range n {
		body = binary.AppendUvarint(body, uint64(100+i))
		body = append(body, 1, 'v')
	}
	return body
}

// Large requests may have 32 unknown tags in a struct. One more is refused
// before anything is decoded: a frame full of tags would take 40 times its size.
func TestWalkBoundsTags(t *testing.T) {
	eachVersion(func(row *Row, version int16) {
		req := kmsg.RequestForKey(row.Key)
		req.SetVersion(version)
		if row.walk == nil || !req.IsFlexible() {
			return
		}
		if _, err := row.decode(version, tagged(req, maxTags)); err != nil {
			t.Errorf("%s v%d: %d tags: %v", row.Name, version, maxTags, err)
		}
		if _, err := row.decode(version, tagged(req, maxTags+1)); !errors.Is(err, errTags) {
			t.Errorf("%s v%d: %d tags: %v", row.Name, version, maxTags+1, err)
		}
		bomb := tagged(req, 100_000)
		if n := testing.AllocsPerRun(10, func() { _ = row.walk(version, bomb) }); n > 20 {
			t.Errorf("%s v%d: %v allocations before the bomb is refused", row.Name, version, n)
		}
	})
}

// Every row whose frames may be larger than those of lists is walked.
func TestLargeFramesAreWalked(t *testing.T) {
	for _, row := range Table() {
		if row.MaxFrame > listFrame && row.walk == nil {
			t.Errorf("%s takes frames of %d bytes and is not walked", row.Name, row.MaxFrame)
		}
	}
}

// A walk and kmsg see the end of a body alike.
func FuzzWalk(f *testing.F) {
	eachVersion(func(row *Row, version int16) {
		if row.walk != nil {
			req := kmsg.RequestForKey(row.Key)
			req.SetVersion(version)
			f.Add(row.Key, version, req.AppendTo(nil))
			if req.IsFlexible() {
				f.Add(row.Key, version, tagged(req, 3))
			}
		}
	})
	h := New(Config{})
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		row := h.row(key)
		if row == nil || row.walk == nil || version < row.Min || version > row.Max {
			return
		}
		read := func(b []byte) bool {
			req := row.newRequest()
			req.SetVersion(version)
			return req.ReadFrom(b) == nil
		}
		whole := read(body) && (len(body) == 0 || !read(body[:len(body)-1]))
		switch err := row.walk(version, body); {
		case err == nil && read(body) && !whole:
			t.Errorf("%s v%d: the walk misses bytes that are left over", row.Name, version)
		case err != nil && whole && !errors.Is(err, errTags) && !errors.Is(err, errNegative):
			t.Errorf("%s v%d: kmsg decodes it, the walk says %v", row.Name, version, err)
		}
	})
}
