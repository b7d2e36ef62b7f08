package tlsconf

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxTicketKeys bounds the keys of a file: each of them is tried on a ticket of
// somebody else's.
const maxTicketKeys = 16

// parseTicketKeys reads a file of session ticket keys: 32 bytes each, in base64
// or hex, one a line; blank lines and what follows a # are let be. The first
// seals, all open. An error names a line and never shows it.
func parseTicketKeys(text []byte) ([][32]byte, error) {
	var keys [][32]byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line, _, _ := strings.Cut(string(line), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseTicketKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", number, err)
		}
		if slices.Contains(keys, key) {
			return nil, fmt.Errorf("line %d repeats an earlier key", number)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("holds no key; `openssl rand -base64 32` makes one")
	case len(keys) > maxTicketKeys:
		return nil, fmt.Errorf("holds %d keys; at most %d", len(keys), maxTicketKeys)
	}
	return keys, nil
}

func parseTicketKey(line string) (key [32]byte, err error) {
	raw, err := hex.DecodeString(line)
	if err != nil {
		raw, err = base64.StdEncoding.DecodeString(line)
	}
	// The decoders' own words are dropped: they quote the text.
	if err != nil || len(raw) != len(key) {
		return key, errors.New("is not 32 bytes in base64 or hex; `openssl rand -base64 32` makes them")
	}
	copy(key[:], raw)
	if key == ([32]byte{}) {
		return key, errors.New("is all zeros, which is no secret")
	}
	return key, nil
}

// CheckTickets reads a file of ticket keys as Open does, and uses none; "" is no
// file.
func CheckTickets(path string) error {
	if path == "" {
		return nil
	}
	src := source{files: []file{{ticketVariable, path}}}
	_, err := src.ticketKeys(src.read())
	return err
}

// ticketKeys are the keys that a source holds.
func (s *source) ticketKeys(c content) ([][32]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	keys, err := parseTicketKeys(c.texts[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.files[0], err)
	}
	return keys, nil
}

// bound marks the name a session belongs to, in the part of a ticket that is
// left to applications.
const bound = "queen-edge name "

// seal makes the ticket of a session. The name goes in, so that a session of one
// name is none of another's (RFC 6066 §3): the client has seen a certificate for
// that one only.
func (s *Store) seal(cs tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	session.Extra = append(session.Extra, []byte(bound+s.names.Read(cs.ServerName).Name))
	return s.base.EncryptTicket(cs, session)
}

// open is the session of a ticket; nil where it is nobody's, or another name's:
// then the handshake is a full one.
func (s *Store) open(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	session, err := s.base.DecryptTicket(ticket, cs)
	if err != nil || session == nil {
		return nil, err
	}
	want := []byte(bound + s.names.Read(cs.ServerName).Name)
	if !slices.ContainsFunc(session.Extra, func(b []byte) bool { return bytes.Equal(b, want) }) {
		return nil, nil
	}
	return session, nil
}
