// Package sasl is the SASL exchange of one connection as a pure state machine:
// it decides what a frame means and never reads, writes, asks or waits.
//
// The password of a PLAIN login, and the token of an OAUTHBEARER one, is the
// cell's bearer token and is taken verbatim; the user name is a label for logs
// (kafka-surface §3). Both dialogues
// of Kafka exist: after a version 0 handshake the next frame is a bare token
// without a Kafka header, after version 1 it is a SaslAuthenticate request
// (KIP-152).
package sasl

import "github.com/queen-mq/queen-edge/tenancy"

// Mechanism is a SASL mechanism as Kafka spells it.
type Mechanism string

// Mechanisms. The token is the same with both.
const (
	Plain       Mechanism = "PLAIN"       // RFC 4616
	OAuthBearer Mechanism = "OAUTHBEARER" // RFC 7628, KIP-255
)

// The codes Handshake answers, by Kafka's names.
const (
	codeNone                 = 0
	codeUnsupportedMechanism = 33
	codeIllegalState         = 34
)

type phase uint8

const (
	phaseStart  phase = iota // nothing agreed
	phaseRaw                 // version 0 handshake: the next frame is a bare token
	phaseFramed              // version 1 handshake: SaslAuthenticate may come
	phaseTold                // refused, and told why by a challenge: its answer may come
	phaseDone                // logged in
	phaseFailed              // refused; only the close is left
)

// Exchange is one connection's login. It is not safe for concurrent use; a
// connection has one goroutine.
type Exchange struct {
	offered []Mechanism
	chosen  Mechanism
	phase   phase
	told    string // what the client is told last, in phaseTold
	in      bool   // logged in, and perhaps about to be again
}

// Credentials are what a client logged in with. They prove nothing yet.
type Credentials struct {
	User  string         // a label for logs, bounded, already safe to print
	Token tenancy.Secret // the bearer
}

// Refusal is why a token cannot be a login: error 58
// (SASL_AUTHENTICATION_FAILED). Message is for the client and never repeats
// what the client sent.
type Refusal struct{ Message string }

// New starts an exchange that offers mechs, in that order. With none, SASL is
// off for the connection.
func New(mechs []Mechanism) *Exchange {
	return &Exchange{offered: append([]Mechanism(nil), mechs...)}
}

// Enabled reports whether a login is asked for at all.
func (x *Exchange) Enabled() bool { return len(x.offered) > 0 }

// Handshake answers SaslHandshake with an error code and the mechanisms
// offered: 0; 33 for a mechanism that is not offered, which changes nothing, so
// that the client may ask again; 34 where SASL is off or the exchange is over.
// The list is the true one and empty only where SASL is off.
func (x *Exchange) Handshake(version int16, mechanism string) (code int16, mechanisms []string) {
	mechanisms = make([]string, 0, len(x.offered))
	agreed := false
	for _, m := range x.offered {
		mechanisms = append(mechanisms, string(m))
		agreed = agreed || string(m) == mechanism
	}
	if !x.Enabled() || x.phase >= phaseTold {
		return codeIllegalState, mechanisms
	}
	if x.in && (version == 0 || Mechanism(mechanism) != x.chosen) { // KIP-368
		return codeIllegalState, mechanisms
	}
	if !agreed {
		return codeUnsupportedMechanism, mechanisms
	}
	x.chosen = Mechanism(mechanism)
	x.phase = phaseFramed
	if version == 0 {
		x.phase = phaseRaw
	}
	return codeNone, mechanisms
}

// Mechanism is the agreed one; empty before that.
func (x *Exchange) Mechanism() Mechanism { return x.chosen }

// ExpectsRaw reports that the next frame is a bare token: a version 0 handshake
// came before.
func (x *Exchange) ExpectsRaw() bool { return x.phase == phaseRaw }

// MayAuthenticate reports that a SaslAuthenticate request is in its place: a
// version 1 handshake came before, or a challenge waits for its answer. Where it
// is not, and the connection is not logged in, the connection closes without an
// answer.
func (x *Exchange) MayAuthenticate() bool { return x.phase == phaseFramed || x.phase == phaseTold }

// Parse reads the token of the agreed mechanism. It changes no state: the caller
// asks the cell and then calls Succeeded or Failed. Nothing of the result shares
// memory with token.
func (x *Exchange) Parse(token []byte) (Credentials, *Refusal) {
	if x.phase != phaseRaw && x.phase != phaseFramed {
		return Credentials{}, &Refusal{Message: "no mechanism was agreed on"}
	}
	switch x.chosen {
	case Plain:
		return parsePlain(token)
	case OAuthBearer:
		return parseOAuth(token)
	}
	return Credentials{}, &Refusal{Message: "the mechanism is not supported"}
}

// Succeeded ends the exchange: the cell took the token.
func (x *Exchange) Succeeded() { x.phase, x.in = phaseDone, true }

// Reopen lets a client that is logged in log in again (KIP-368): by the same
// mechanism, and only in the framed dialogue. It stays logged in meanwhile.
func (x *Exchange) Reopen() {
	if x.phase == phaseDone {
		x.phase = phaseStart
	}
}

// Challenge is how a refused OAUTHBEARER client is told why before its login
// fails (RFC 7628 §3.2.2): a success in form, with what went wrong in it. The
// client's next message ends the login, with the sentence that last kept. It is
// nil where the login fails at once: with PLAIN, and in the version 0 dialogue,
// which has no room for it.
func (x *Exchange) Challenge(status, sentence string) []byte {
	if x.chosen != OAuthBearer || x.phase != phaseFramed {
		return nil
	}
	x.phase, x.told = phaseTold, sentence
	return []byte(`{"status":"` + status + `"}`)
}

// Told reports that a challenge has been sent, and gives the sentence for the
// answer to whatever comes next.
func (x *Exchange) Told() (sentence string, ok bool) { return x.told, x.phase == phaseTold }

// Failed ends the exchange: the connection closes once its answer is read. A
// failed exchange never becomes an authenticated one.
func (x *Exchange) Failed() { x.phase = phaseFailed }

// Authenticated reports that the cell took the token. It stays false while SASL
// is off.
func (x *Exchange) Authenticated() bool { return x.in && x.phase != phaseFailed }
