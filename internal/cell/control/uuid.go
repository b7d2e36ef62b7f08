package control

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// UUID identifies a tenant, a cluster, a key, or a cluster's data at the
// broker. Those are four different identifiers (cell-http §2.5).
type UUID [16]byte

// newUUID returns a random UUID (version 4).
func newUUID() UUID {
	var u UUID
	_, _ = rand.Read(u[:]) // never fails: it ends the process instead
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// String renders the usual lower-case form with dashes.
func (u UUID) String() string { return string(u.Append(nil)) }

// Append appends the text form to dst.
func (u UUID) Append(dst []byte) []byte {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], u[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], u[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], u[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], u[10:16])
	return append(dst, b[:]...)
}

// IsZero reports the absent UUID.
func (u UUID) IsZero() bool { return u == UUID{} }

// ParseUUID reads the text form.
func ParseUUID(text string) (UUID, error) {
	var u UUID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return UUID{}, fmt.Errorf("control: %q is no uuid", text)
	}
	digits := text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36]
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, fmt.Errorf("control: %q is no uuid", text)
	}
	return u, nil
}

// MarshalText is the text form.
func (u UUID) MarshalText() ([]byte, error) { return u.Append(nil), nil }

// UnmarshalText reads the text form.
func (u *UUID) UnmarshalText(text []byte) error {
	parsed, err := ParseUUID(string(text))
	if err != nil {
		return err
	}
	*u = parsed
	return nil
}
