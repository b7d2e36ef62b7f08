package txn_test

import (
	"testing"

	"github.com/queen-mq/queen-edge/edge/txn"
)

func TestNewProducerID(t *testing.T) {
	seen := map[int64]bool{}
	var bits int64
	for range 10_000 {
		id := txn.NewProducerID()
		if id <= 0 || id >= 1<<62 || seen[id] {
			t.Fatalf("drew %d", id)
		}
		seen[id] = true
		bits |= id
	}
	if bits != 1<<62-1 {
		t.Errorf("bits %x are never drawn", 1<<62-1-bits)
	}
}

func TestBump(t *testing.T) {
	for _, test := range []struct {
		epoch, want int16
		fresh       bool
	}{
		{0, 1, false},
		{41, 42, false},
		{txn.MaxEpoch - 1, txn.MaxEpoch, false},
		{txn.MaxEpoch, 0, true},
		{-1, 0, true},
	} {
		id, epoch := txn.Bump(77, test.epoch)
		if epoch != test.want || (id != 77) != test.fresh || id <= 0 {
			t.Errorf("bump of epoch %d: %d, %d", test.epoch, id, epoch)
		}
	}
}
