package api

// SaslAuthenticate (36), versions 0–2 (KIP-152). The token is proved at the
// cell. Success carries empty auth bytes and the session's lifetime
// (KIP-368; 0: it has no end). A refusal is 58 with a sentence; with OAUTHBEARER a
// challenge comes before it (RFC 7628 §3.2.2). A credential that
// could not be checked, and one that is not checked because of too many refusals
// before it, closes the connection without an answer, so that the
// client tries again: a fatal code during a cell's restart would make a fleet
// give up.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

const saslAuthenticateKey = 36

func (h *Handlers) saslAuthenticate(ctx context.Context, c *Conn, req *kmsg.SASLAuthenticateRequest) (*kmsg.SASLAuthenticateResponse, error) {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	resp.SASLAuthBytes = []byte{}
	switch {
	case !c.Login.Enabled():
		resp.ErrorCode = kerr.IllegalSaslState.Code
		resp.ErrorMessage = textPtr("This listener has no SASL: nothing is to be authenticated.")
		return resp, nil
	case c.Login.Authenticated() && !c.Login.MayAuthenticate():
		resp.ErrorCode = kerr.IllegalSaslState.Code
		resp.ErrorMessage = textPtr("This connection is already authenticated.")
		return resp, nil
	case !c.Login.MayAuthenticate():
		return nil, wire.Closing(wire.OutOfOrderLogin, nil)
	}
	sentence, told := c.Login.Told() // then the answer to the challenge says nothing new
	if !told {
		no, err := h.login(ctx, c, req.SASLAuthBytes)
		if err != nil {
			return nil, err
		}
		if no == nil {
			resp.SessionLifetimeMillis = c.lifetime(h.cfg.Clock())
			return resp, nil
		}
		if challenge := c.Login.Challenge(no.status, no.sentence); challenge != nil {
			resp.SASLAuthBytes = challenge
			return resp, nil
		}
		sentence = no.sentence
	}
	c.refused(sentence)
	resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &sentence
	return resp, nil
}

// LoginRaw is the version 0 dialogue: the whole frame is the token. Success is
// an empty frame; everything else closes without a byte.
func (h *Handlers) LoginRaw(ctx context.Context, c *Conn, token []byte, out []byte) ([]byte, error) {
	no, err := h.login(ctx, c, token)
	if err != nil {
		return out, err
	}
	if no != nil {
		c.refused(no.sentence)
		return out, wire.Closing(wire.LoginRefused, nil)
	}
	return append(out, 0, 0, 0, 0), nil
}

// login proves a token and gives the connection its Scope. It returns why it is
// refused, or the error that ends the connection.
func (h *Handlers) login(ctx context.Context, c *Conn, token []byte) (*refusedLogin, error) {
	again := c.proved
	no, err := h.prove(ctx, c, token)
	c.ended(again, no, err)
	return no, err
}

func (h *Handlers) prove(ctx context.Context, c *Conn, token []byte) (*refusedLogin, error) {
	creds, refusal := c.Login.Parse(token)
	if refusal != nil {
		return &refusedLogin{LoginMalformed, refusal.Message, statusMalformed}, nil
	}
	c.User = creds.User
	claim := tenancy.NewClaim(creds.Token, c.Lane.Host())
	proof, err := h.cfg.Verify.VerifyFrom(ctx, claim, c.From)
	switch {
	case errors.Is(err, tenancy.ErrBraked):
		return nil, wire.Closing(wire.LoginBraked, nil)
	case err != nil && !Refuses(err):
		return nil, wire.Closing(wire.LoginUnsure, err)
	case err != nil:
		return h.refusalOf(ctx, c.Login.Mechanism(), claim, err), nil
	}
	now := h.cfg.Clock()
	end := h.sessionEnd(proof.Scope, now)
	if !end.IsZero() && !end.After(now) {
		return &refusedLogin{LoginExpired, "Authentication failed: the token has expired.", statusUnknown}, nil
	}
	if c.proved {
		return c.renew(proof.Scope, proof.Checked, now, end), nil
	}
	if err := c.Admit(proof.Scope, proof.Checked); err != nil {
		return nil, err
	}
	if proof.Fresh {
		h.cfg.Catalog.Warm(proof.Scope, proof.Listing, proof.Began)
	}
	c.Login.Succeeded()
	h.Prove(c, proof.Scope)
	c.lasts(now, end)
	return nil, nil
}

// refused ends the exchange; the log gets the client's sentence, which never
// holds what the client sent.
func (c *Conn) refused(sentence string) {
	c.Login.Failed()
	c.refuse = &Refusal{Log: sentence}
}
