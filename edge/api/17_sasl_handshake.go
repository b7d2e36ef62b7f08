package api

// SaslHandshake (17), versions 0–1 (KIP-43, KIP-152). Version 0 is followed by a
// bare token without a Kafka header; kcat of some distributions knows nothing
// else. Another mechanism is 33 with the true list and changes nothing; a
// handshake on a listener without SASL, or after login, is 34; where the login has
// a lifetime it begins another one (KIP-368).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handlers) saslHandshake(_ context.Context, c *Conn, req *kmsg.SASLHandshakeRequest) (*kmsg.SASLHandshakeResponse, error) {
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	if h.mayRenew(c) {
		c.Login.Reopen()
	}
	resp.ErrorCode, resp.SupportedMechanisms = c.Login.Handshake(req.Version, req.Mechanism)
	return resp, nil
}
