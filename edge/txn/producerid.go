package txn

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
)

// MaxEpoch is the last epoch of a producer id; its successor is a fresh id.
const MaxEpoch = 1<<15 - 1

// NewProducerID draws a random 62-bit id, never 0. Ids are drawn, not counted:
// two gateways that handed out one id would silently drop records.
func NewProducerID() int64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never errs (crypto/rand)
		if id := int64(binary.BigEndian.Uint64(b[:]) >> 2); id != 0 {
			return id
		}
	}
}

// Bump answers a producer that asks for its next epoch (KIP-360): the same id
// one epoch on, or a fresh id at epoch 0 when the epochs are used up.
func Bump(id int64, epoch int16) (int64, int16) {
	if epoch < 0 || epoch >= MaxEpoch {
		return NewProducerID(), 0
	}
	return id, epoch + 1
}

// newToken draws a write id.
func newToken() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never errs (crypto/rand)
	return hex.EncodeToString(b[:])
}
