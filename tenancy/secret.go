package tenancy

import (
	"crypto/subtle"
	"fmt"
	"io"
)

// Redacted is what a Secret prints as, in every verb and encoding.
const Redacted = "<redacted>"

// Secret is a bearer. It has no way of being printed: fmt, JSON, text
// marshalling and zap's reflection all show Redacted. Reveal is the only door
// and a test of the tree names who may use it.
//
// The text lies behind a pointer because fmt calls no method where it cannot:
// on unexported fields of other types, for %p, and for an argument that its
// verb does not fit (%w). There it walks the value, and shows an address.
type Secret struct {
	_    [0]func() // not comparable: == would compare addresses; use Equal
	text *string
}

// NewSecret wraps a bearer.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the bearer itself, for the Authorization header.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no bearer at all.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal compares in constant time for equal lengths.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String hides the bearer.
func (s Secret) String() string { return Redacted }

// GoString hides the bearer from %#v.
func (s Secret) GoString() string { return Redacted }

// Format hides the bearer from every verb, %x and %q included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// MarshalText hides the bearer from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalJSON hides the bearer from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }
