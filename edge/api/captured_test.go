package api

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// request is one request of a real client.
type capturedRequest struct {
	key, version int16
	body         []byte
}

// captured are the requests that real clients sent while they logged in, created
// a topic, produced and consumed (testdata/requests, one file of frames per
// client), as far as they are announced here.
func captured(tb testing.TB) (out []capturedRequest) {
	tb.Helper()
	files, err := filepath.Glob("testdata/requests/*.bin")
	if err != nil || len(files) == 0 {
		tb.Fatal("no captured requests", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for len(b) > wire.SizeBytes {
			n := int(binary.BigEndian.Uint32(b))
			frame := b[wire.SizeBytes:][:n]
			b = b[wire.SizeBytes+n:]
			if c, ok := requestOf(frame); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func requestOf(frame []byte) (capturedRequest, bool) {
	p, err := wire.ParsePrefix(frame)
	if err != nil {
		return capturedRequest{}, false
	}
	row, err := New(Config{}).Lookup(p)
	if err != nil || p.Version < row.Min || p.Version > row.Max {
		return capturedRequest{}, false
	}
	_, body, err := wire.ParseHeader(frame, p.Version >= row.shape.flexible)
	return capturedRequest{p.Key, p.Version, body}, err == nil
}

// What real clients sent is walked and decoded.
func TestCapturedRequestsDecode(t *testing.T) {
	h := New(Config{})
	for _, c := range captured(t) {
		row := h.row(c.key)
		if _, err := row.decode(c.version, c.body); err != nil {
			t.Errorf("%s v%d: %v", row.Name, c.version, err)
		}
	}
}
