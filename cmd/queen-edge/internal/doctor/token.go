package doctor

import (
	"strings"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// This file is where a token leaves its Secret: the doctor is a client, and the
// token is its password. Nothing else here may see it.

// message is what a client sends to log in (RFC 4616, RFC 7628).
func message(m sasl.Mechanism, token tenancy.Secret) []byte {
	if m == sasl.OAuthBearer {
		return []byte("n,,\x01auth=Bearer " + token.Reveal() + "\x01\x01")
	}
	return []byte("\x00" + clientID + "\x00" + token.Reveal())
}

// scrubber takes the token out of a text: a peer may send back what it got.
func scrubber(token tenancy.Secret) func(string) string {
	return func(text string) string {
		if token.IsZero() {
			return text
		}
		return strings.ReplaceAll(text, token.Reveal(), tenancy.Redacted)
	}
}
