package proxyclient

import (
	"bytes"
	"testing"
)

// Every byte at every place, alone and before each other one.
func TestPlainLen(t *testing.T) {
	plain := func(c byte) bool { return c >= 0x20 && c != '"' && c != '\\' }
	for size := range 20 {
		for at := range size {
			for c := range 256 {
				for _, next := range []byte{0, 0x1f, ' ', '"', '\\', 0x7f, 0x80, 0xff, 'x'} {
					b := bytes.Repeat([]byte{0xc3}, size)
					b[at] = byte(c)
					if at+1 < size {
						b[at+1] = next
					}
					want := 0
					for want < size && plain(b[want]) {
						want++
					}
					if got := plainLen(b); got != want {
						t.Fatalf("%q: %d, want %d", b, got, want)
					}
				}
			}
		}
	}
}
