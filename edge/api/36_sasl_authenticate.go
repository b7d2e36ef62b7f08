package api

// SaslAuthenticate (36), versions 0–2 (KIP-152). The token is proved at the
// cell. Success carries empty auth bytes and a session lifetime of 0 (no
// re-authentication yet). A refusal is 58 with a sentence; a credential that
// could not be checked closes the connection without an answer, so that the
// client tries again: a fatal code during a cell's restart would make a fleet
// give up.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

func (h *Handlers) saslAuthenticate(ctx context.Context, c *Conn, req *kmsg.SASLAuthenticateRequest) (*kmsg.SASLAuthenticateResponse, error) {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	resp.SASLAuthBytes = []byte{}
	switch {
	case !c.Login.Enabled():
		resp.ErrorCode = kerr.IllegalSaslState.Code
		resp.ErrorMessage = textPtr("This listener has no SASL: nothing is to be authenticated.")
		return resp, nil
	case c.Login.Authenticated():
		resp.ErrorCode = kerr.IllegalSaslState.Code
		resp.ErrorMessage = textPtr("This connection is already authenticated.")
		return resp, nil
	case !c.Login.MayAuthenticate():
		return nil, wire.Closing(wire.OutOfOrderLogin, nil)
	}
	sentence, err := h.login(ctx, c, req.SASLAuthBytes)
	if err != nil {
		return nil, err
	}
	if sentence != "" {
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		resp.ErrorMessage = &sentence
	}
	return resp, nil
}

// LoginRaw is the version 0 dialogue: the whole frame is the token. Success is
// an empty frame; everything else closes without a byte.
func (h *Handlers) LoginRaw(ctx context.Context, c *Conn, token []byte, out []byte) ([]byte, error) {
	sentence, err := h.login(ctx, c, token)
	if err != nil {
		return out, err
	}
	if sentence != "" {
		return out, wire.Closing(wire.LoginRefused, nil)
	}
	return append(out, 0, 0, 0, 0), nil
}

// login proves a token and gives the connection its Scope. It returns the
// sentence of a refusal, or the error that ends the connection.
func (h *Handlers) login(ctx context.Context, c *Conn, token []byte) (sentence string, err error) {
	creds, refusal := c.Login.Parse(token)
	if refusal != nil {
		return c.refused(refusal.Message), nil
	}
	c.User = creds.User
	claim := tenancy.NewClaim(creds.Token, c.Lane.Host())
	proof, err := h.cfg.Verify.Verify(ctx, claim)
	if err != nil {
		if !Refuses(err) {
			return "", wire.Closing(wire.LoginUnsure, err)
		}
		return c.refused(h.refusalSentence(ctx, claim, err)), nil
	}
	if !c.Admit(proof.Scope) {
		return "", wire.Closing(wire.CapacityTenant, nil)
	}
	if proof.Fresh {
		h.cfg.Catalog.Warm(proof.Scope, proof.Listing, proof.Began)
	}
	c.Login.Succeeded()
	h.Prove(c, proof.Scope)
	return "", nil
}

// refused ends the exchange; the log gets the client's sentence, which never
// holds what the client sent.
func (c *Conn) refused(sentence string) string {
	c.Login.Failed()
	c.refuse = &Refusal{Log: sentence}
	return sentence
}
