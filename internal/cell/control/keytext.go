package control

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// KeyPrefix begins every API key's text.
const KeyPrefix = "qk_"

// keyBytes of randomness render as 43 base64url characters.
const keyBytes = 32

// maxEnvLength bounds the environment word inside a key.
const maxEnvLength = 16

// hash is the SHA-256 of a key's whole text: what lookups go by, so that no
// comparison ever runs over the text itself.
type hash [sha256.Size]byte

// newKeyText mints qk_<env>_<43 base64url characters> (cell-http §2.3).
func newKeyText(env string) (string, error) {
	if len(env) == 0 || len(env) > maxEnvLength {
		return "", fmt.Errorf("%w: key environment %q must have 1 to %d characters", ErrInvalid, env, maxEnvLength)
	}
	for _, c := range []byte(env) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", fmt.Errorf("%w: key environment %q may hold a-z and 0-9 only", ErrInvalid, env)
		}
	}
	var secret [keyBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	return KeyPrefix + env + "_" + base64.RawURLEncoding.EncodeToString(secret[:]), nil
}
