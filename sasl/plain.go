package sasl

import (
	"bytes"

	"github.com/queen-mq/queen-edge/tenancy"
)

// MaxToken is the longest bearer a login may carry, in bytes. Large JWTs stay
// well below it, and so does the header limit of common HTTP servers.
const MaxToken = 16 << 10

// parsePlain reads authzid NUL authcid NUL password. kafka-python and aiokafka
// send the user name in both places, so an authzid equal to it is taken.
func parsePlain(token []byte) (Credentials, *Refusal) {
	if bytes.Count(token, []byte{0}) != 2 {
		return Credentials{}, &Refusal{Message: "malformed PLAIN token: expected an authorization identity, a username and a password, separated by NUL"}
	}
	authzid, rest, _ := bytes.Cut(token, []byte{0})
	user, password, _ := bytes.Cut(rest, []byte{0})
	switch {
	case len(user) == 0:
		return Credentials{}, &Refusal{Message: "no username was given: any non-empty label will do"}
	case len(password) == 0:
		return Credentials{}, &Refusal{Message: "no password was given: the password is the Queen token"}
	case len(authzid) != 0 && !bytes.Equal(authzid, user):
		return Credentials{}, &Refusal{Message: "an authorization identity was requested that differs from the username"}
	case len(password) > MaxToken:
		return Credentials{}, &Refusal{Message: "the password is longer than 16 KiB"}
	case !isBearer(password):
		return Credentials{}, &Refusal{Message: "the password holds a character that no token has; look for a line break, a space or quotes around it"}
	}
	secret := tenancy.NewSecret(string(password))
	return Credentials{User: SafeLabel(string(user), secret), Token: secret}, nil
}

// isBearer reports whether b can stand in an Authorization header. Anything else
// would fail on its way to the cell and look like a cell that is down, which a
// client retries for ever.
func isBearer(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' {
			return false
		}
	}
	return true
}
