package sasl

import (
	"bytes"

	"github.com/queen-mq/queen-edge/tenancy"
)

// kvsep ends the header and each pair of an OAUTHBEARER message; alone, it is
// how a client says that it has read why it was refused (RFC 7628 §3.2.3).
const kvsep = 0x01

const malformedOAuth = "malformed OAUTHBEARER token: expected n,,^Aauth=Bearer <token>^A^A (RFC 7628)"

// parseOAuth reads an initial response of RFC 7628 §3.1. An authorization
// identity is a label, as PLAIN's username is; pairs other than auth are
// extensions (KIP-342) and say nothing here.
func parseOAuth(token []byte) (Credentials, *Refusal) {
	header, pairs, ok := bytes.Cut(token, []byte{kvsep})
	authzid, fine := gs2(header)
	if !ok || !fine || !bytes.HasSuffix(pairs, []byte{kvsep, kvsep}) {
		return Credentials{}, &Refusal{Message: malformedOAuth}
	}
	bearer, refusal := bearerOf(pairs[:len(pairs)-2])
	if refusal != nil {
		return Credentials{}, refusal
	}
	secret := tenancy.NewSecret(string(bearer))
	return Credentials{User: SafeLabel(string(authzid), secret), Token: secret}, nil
}

// gs2 reads the header of RFC 5801 §4: no channel binding, and who is to be
// acted for, if anybody. ok is false for anything else.
func gs2(header []byte) (authzid []byte, ok bool) {
	flag, rest, ok := bytes.Cut(header, []byte{','})
	if !ok || !bytes.Equal(flag, []byte{'n'}) && !bytes.Equal(flag, []byte{'y'}) || !bytes.HasSuffix(rest, []byte{','}) {
		return nil, false
	}
	name := rest[:len(rest)-1]
	authzid, named := bytes.CutPrefix(name, []byte("a="))
	if !named && len(name) > 0 || bytes.IndexByte(authzid, ',') >= 0 {
		return nil, false
	}
	return authzid, true
}

// bearerOf finds the token among the pairs.
func bearerOf(pairs []byte) ([]byte, *Refusal) {
	var bearer []byte
	found := false
	for pair := range bytes.SplitSeq(pairs, []byte{kvsep}) {
		name, value, ok := bytes.Cut(pair, []byte{'='})
		if !ok || len(name) == 0 {
			return nil, &Refusal{Message: malformedOAuth}
		}
		if string(name) != "auth" {
			continue
		}
		scheme, token, ok := bytes.Cut(value, []byte{' '})
		if found || !ok || !bytes.EqualFold(scheme, []byte("Bearer")) {
			return nil, &Refusal{Message: malformedOAuth}
		}
		bearer, found = token, true
	}
	switch {
	case !found || len(bearer) == 0:
		return nil, &Refusal{Message: "no token was given: the bearer is the Queen token"}
	case len(bearer) > MaxToken:
		return nil, &Refusal{Message: "the token is longer than 16 KiB"}
	case !isBearer(bearer):
		return nil, &Refusal{Message: "the token holds a character that no token has; look for a line break, a space or quotes around it"}
	}
	return bearer, nil
}
