package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// writes remembers what each Write got, and fails where it is told to.
type writes struct {
	parts []string
	fails int // the write that fails, from 1; 0: none
}

var errCut = errors.New("cut")

func (w *writes) Write(b []byte) (int, error) {
	w.parts = append(w.parts, string(b))
	if len(w.parts) == w.fails {
		return 0, errCut
	}
	return len(b), nil
}

func TestLentPartsGoOutInTheirPlaces(t *testing.T) {
	large := []byte(strings.Repeat("L", 100_000))
	for name, c := range map[string]struct {
		lent []wire.Lent
		want string
		most int // writes
	}{
		"none":             {nil, "0123456789", 1},
		"small":            {[]wire.Lent{{At: 0, Bytes: []byte("a")}, {At: 3, Bytes: []byte("b")}, {At: 3, Bytes: []byte("c")}, {At: 10, Bytes: []byte("d")}}, "a012bc3456789d", 1},
		"one large":        {[]wire.Lent{{At: 4, Bytes: large}}, "0123" + string(large) + "456789", 3},
		"large at the end": {[]wire.Lent{{At: 10, Bytes: large}}, "0123456789" + string(large), 2},
		"two large":        {[]wire.Lent{{At: 1, Bytes: large}, {At: 9, Bytes: large}}, "0" + string(large) + "12345678" + string(large) + "9", 5},
	} {
		var writers wire.Writers
		for range 2 {
			w := &writes{}
			if err := writers.Write(w, []byte("0123456789"), c.lent); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(w.parts, ""); got != c.want {
				t.Errorf("%s: %d bytes, want %d", name, len(got), len(c.want))
			}
			if len(w.parts) > c.most {
				t.Errorf("%s: %d writes", name, len(w.parts))
			}
		}
	}
}

func TestLentErrors(t *testing.T) {
	large := bytes.Repeat([]byte("L"), 100_000)
	var writers wire.Writers
	for n := 1; n <= 3; n++ {
		w := &writes{fails: n}
		err := writers.Write(w, []byte("0123456789"), []wire.Lent{{At: 4, Bytes: large}})
		if !errors.Is(err, errCut) || len(w.parts) != n {
			t.Errorf("write %d failed: %v, %d writes", n, err, len(w.parts))
		}
	}
	w := &writes{}
	if err := writers.Write(w, []byte("next"), nil); err != nil || strings.Join(w.parts, "") != "next" {
		t.Errorf("after a failure: %v, %q", err, w.parts)
	}
}
