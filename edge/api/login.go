package api

import (
	"errors"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/sasl"
)

// LoginEnd is how one login ended: of a connection, or of one that logs in again
// (KIP-368). Nothing of it is what a client sent.
type LoginEnd struct {
	Outcome   LoginOutcome
	Mechanism sasl.Mechanism // empty: the listener has no SASL
	Again     bool           // the connection was logged in
	Sentence  string         // what a refused client is told
}

// LoginOutcome is one of a fixed set, for labels and for the audit log.
type LoginOutcome uint8

// The outcomes of a login. A connection that ends before it has sent a token has
// none: the reason of its close says all.
const (
	LoginOK          LoginOutcome = iota
	LoginMalformed                // the token cannot be read
	LoginUnknown                  // the cell does not know the token for this name
	LoginNoScope                  // the token may not list
	LoginSuspended                // its cluster is suspended
	LoginExpired                  // it has ended
	LoginOtherTenant              // it is not of the tenant that the connection is logged in as
	LoginUnsure                   // the cell could not be asked
	LoginNoRoom                   // the tenant may hold no more connections, or log in no more often
	LoginBraked                   // too many were refused of late where it came from: the cell was not asked
)

func (o LoginOutcome) String() string { return loginOutcomes()[o] }

// LoginOutcomes are all of them.
func LoginOutcomes() []LoginOutcome {
	var all []LoginOutcome
	for o := LoginOK; o <= LoginBraked; o++ {
		all = append(all, o)
	}
	return all
}

func loginOutcomes() [LoginBraked + 1]string {
	return [...]string{"ok", "malformed", "unknown", "no_scope", "suspended", "expired", "other_tenant", "unsure", "no_room", "braked"}
}

// refusedLogin is why a login is refused.
type refusedLogin struct {
	outcome  LoginOutcome
	sentence string
	status   string // of RFC 7628 §3.2.2
}

// ended tells whoever wants to know how a login ended.
func (c *Conn) ended(again bool, no *refusedLogin, err error) {
	if c.LoginEnded == nil {
		return
	}
	e := LoginEnd{Mechanism: c.Login.Mechanism(), Again: again}
	switch {
	case err != nil:
		e.Outcome = LoginFailure(err)
	case no != nil:
		e.Outcome, e.Sentence = no.outcome, no.sentence
	}
	c.LoginEnded(e)
}

// LoginFailure is the outcome of a login that ended its connection instead of
// being answered.
func LoginFailure(err error) LoginOutcome {
	var reason *wire.Close
	if errors.As(err, &reason) {
		switch reason.Reason {
		case wire.CapacityTenant, wire.TenantConnections, wire.TenantConnectRate:
			return LoginNoRoom
		case wire.LoginBraked:
			return LoginBraked
		}
	}
	return LoginUnsure
}
