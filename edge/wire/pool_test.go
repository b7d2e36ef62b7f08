package wire_test

import (
	"errors"
	"io"
	"testing"

	"github.com/queen-mq/queen-edge/edge/wire"
)

func TestPool(t *testing.T) {
	var p wire.Pool
	b := p.Get()
	if len(*b) != 0 {
		t.Errorf("a new buffer has %d bytes", len(*b))
	}
	for range 100 { // a pool may forget, but never hand out what is not empty
		*b = append(*b, "frame"...)
		p.Put(b)
		if b = p.Get(); len(*b) != 0 {
			t.Fatalf("a used buffer has %d bytes", len(*b))
		}
	}
	p.Put(nil)
}

// A buffer grown for a giant frame is not kept for small ones.
func TestPoolKeepsNoGiants(t *testing.T) {
	var p wire.Pool
	for range 100 {
		giant := make([]byte, 0, 4<<20+1)
		p.Put(&giant)
		if b := p.Get(); cap(*b) > 4<<20 {
			t.Fatalf("a buffer of %d bytes was kept", cap(*b))
		}
	}
}

// Every reason has a name of its own and a side.
func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	last := wire.Internal
	for r := range last + 1 {
		name := r.String()
		if name == "" || name == "unknown" || seen[name] {
			t.Errorf("reason %d has the name %q", r, name)
		}
		seen[name] = true
		switch r.Side() {
		case wire.ClientSide, wire.GatewaySide, wire.CellSide:
		default:
			t.Errorf("%s is of side %q", name, r.Side())
		}
	}
	if s := (last + 1).String(); s != "unknown" {
		t.Errorf("a reason behind the last is %q", s)
	}
}

func TestClose(t *testing.T) {
	err := error(wire.Closing(wire.ClientCut, io.ErrUnexpectedEOF))
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "client_cut: unexpected EOF" {
		t.Errorf("%v", err)
	}
	if err = wire.Closing(wire.Draining, nil); err.Error() != "draining" || errors.Unwrap(err) != nil {
		t.Errorf("%v", err)
	}
}
