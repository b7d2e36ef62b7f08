package sasl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/queen-mq/queen-edge/tenancy"
)

// maxLabel bounds a client's text in logs, in bytes.
const maxLabel = 64

// SafeLabel makes a user name or a client id fit to be printed. Text that looks
// like a key, or equals the token, becomes <redacted>: people put the key into
// the wrong field (beyond.md B4). What is left is cut to 64 bytes, and bytes
// that would break a log line become '?'.
func SafeLabel(s string, token tenancy.Secret) string {
	if LooksLikeKey(s) || (!token.IsZero() && token.Equal(tenancy.NewSecret(strings.TrimSpace(s)))) {
		return tenancy.Redacted
	}
	cut := len(s) > maxLabel
	if cut {
		end := maxLabel
		for end > maxLabel-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	s = strings.Map(printable, s)
	if !token.IsZero() && token.Equal(tenancy.NewSecret(s)) {
		return tenancy.Redacted // equal only now, by a byte that became '?'
	}
	if cut {
		s += "…"
	}
	return s
}

func printable(r rune) rune {
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// LooksLikeKey reports text that holds what may be a credential: a word that
// starts with qk_, or the beginning of a JWT. It errs on the side of hiding.
func LooksLikeKey(s string) bool {
	for i := range len(s) {
		if i > 0 && isWord(s[i-1]) {
			continue
		}
		word := s[i:]
		if len(word) >= 3 && strings.EqualFold(word[:3], "qk_") {
			return true
		}
		// Every JWT starts with the base64url form of {" .
		if strings.HasPrefix(word, "eyJ") && wordLength(word) >= 12 {
			return true
		}
	}
	return false
}

func wordLength(s string) int {
	n := 0
	for n < len(s) && (isWord(s[n]) || s[n] == '-') {
		n++
	}
	return n
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
