package group

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// maxClientID is how many characters of a client id a member id begins with.
const maxClientID = 64

// memberID makes the id of a new member: what the client calls itself, and what
// nobody else has.
func memberID(clientID, unique string) string {
	name := []rune(strings.TrimSpace(strings.ToValidUTF8(clientID, "")))
	if len(name) > maxClientID {
		name = name[:maxClientID]
	}
	if len(name) == 0 {
		name = []rune("queen-kafka")
	}
	return string(name) + "-" + unique
}

// randomID is a random UUID.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never errs (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
