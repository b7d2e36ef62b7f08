package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/sasl"
)

// hello asks what the peer speaks. Version 0 is the one that every peer
// answers.
func (d *run) hello(ctx context.Context, p *peer) steps.Finding {
	sctx, cancel := d.step(ctx)
	defer cancel()
	resp, err := p.ask(sctx, kmsg.NewPtrApiVersionsRequest())
	switch {
	case d.o.Plaintext && (errors.Is(err, errShape) || isClosed(err)) && d.speaksTLS(ctx, p):
		return failed(causeSpeaksTLS, "the port speaks TLS", "leave out --plaintext; clients need security.protocol=SASL_SSL")
	case errors.Is(err, errShape), err != nil && causeOf(err) == causeTimeout && p.speaksHTTP():
		return failed(causeNotKafka, "the peer answers, but not as a Kafka broker", "check the port: something else listens there")
	case err != nil && causeOf(err) == causeTimeout:
		return failed(causeTimeout, "connected, and no answer within "+d.o.Timeout.String(),
			"something takes connections there and says nothing: look at the balancer before the gateway, and whether the port is the gateway's")
	case err != nil && causeOf(err) == causeClosed:
		return failed(causeClosed, "the peer closed the connection instead of answering ApiVersions",
			"look at the gateway's log for a closed connection: it may be full or ending; without a login (QUEEN_KAFKA_SASL unset) it closes where its own QUEEN_TOKEN is refused or the cell cannot be asked")
	case err != nil:
		return d.broken("ApiVersions", err)
	}
	keys := resp.(*kmsg.ApiVersionsResponse)
	if keys.ErrorCode != 0 {
		return failed(causeNotKafka, "ApiVersions was refused: "+codeName(keys.ErrorCode), "check the port: something else listens there")
	}
	p.offered = make(map[int16]window, len(keys.ApiKeys))
	for _, k := range keys.ApiKeys {
		p.offered[k.ApiKey] = window{k.MinVersion, k.MaxVersion}
	}
	return fine(fmt.Sprintf("a broker that answers %d kinds of requests", len(keys.ApiKeys)))
}

// broken is what an exchange that ended without an answer comes to.
func (d *run) broken(what string, err error) steps.Finding {
	switch cause := causeOf(err); {
	case errors.Is(err, errVersion):
		return failed(causeTooOld, err.Error(), "this is no gateway of this version: check what is behind the address")
	case errors.Is(err, errShape):
		return failed(causeNotKafka, what+": "+err.Error(), "check what stands between: the connection carried something else")
	case cause == causeTimeout:
		return failed(cause, "no answer to "+what+" within "+d.o.Timeout.String(),
			"the gateway waits, most often for its cell: look at its log and at /metrics, or raise --timeout")
	case cause == causeClosed:
		return failed(cause, "the peer closed the connection instead of answering "+what, "look at the gateway's log: it names a reason for every connection it closes")
	default:
		return failed(cause, what+" failed: "+words(err), "try again; if it stays, look at the gateway's log")
	}
}

// login takes the steps sasl and scope.
func (d *run) login(ctx context.Context, p *peer, note func(steps.Kind, steps.Finding) bool) bool {
	ctx, cancel := d.step(ctx)
	defer cancel()
	if f := d.agree(ctx, p); f.Status != steps.OK {
		return note(login, f) && note(scope, steps.Finding{Status: steps.Skipped, Seen: "no login"})
	}
	k, f := d.authenticate(ctx, p)
	if k.Name == scope.Name {
		return note(login, fine("the token is known")) && note(scope, f)
	}
	return note(login, f) && note(scope, fine("the token may list topics"))
}

// agree settles the mechanism. It is asked also without a token, to hear
// whether one is needed.
func (d *run) agree(ctx context.Context, p *peer) steps.Finding {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Version, req.Mechanism = 1, string(d.o.Mechanism)
	got, err := p.ask(ctx, req)
	if err != nil && !errors.Is(err, errVersion) {
		return d.broken("SaslHandshake", err)
	}
	none := err != nil
	var resp *kmsg.SASLHandshakeResponse
	if !none {
		resp = got.(*kmsg.SASLHandshakeResponse)
		none = resp.ErrorCode == kerr.IllegalSaslState.Code
	}
	switch {
	case none && d.o.Token.IsZero():
		return steps.Finding{Status: steps.Skipped, Seen: "the gateway asks for no login, and no token was given"}
	case none:
		return failed(causeNoLogin, "the gateway asks for no login (SASL is off), and a token was given",
			"set QUEEN_KAFKA_SASL=plain at the gateway; or, if it is meant to be open, leave out the token here and SASL in the clients")
	case d.o.Token.IsZero():
		return failed(causeNoToken, "the gateway asks for a login (it offers "+strings.Join(resp.SupportedMechanisms, ", ")+"), and no token was given",
			"give a token: --token-file FILE, or QUEEN_KAFKA_CHECK_TOKEN")
	case resp.ErrorCode == kerr.UnsupportedSaslMechanism.Code:
		return failed(causeMechanism, "the gateway offers "+strings.Join(resp.SupportedMechanisms, ", ")+", not "+req.Mechanism,
			"use one of those in the clients (--mechanism here), or add "+strings.ToLower(req.Mechanism)+" to QUEEN_KAFKA_SASL at the gateway")
	case resp.ErrorCode != 0:
		return failed(causeKafkaError, "SaslHandshake was refused: "+codeName(resp.ErrorCode), "look at the gateway's log")
	}
	return fine("")
}

// authenticate sends the token. It gives the step the answer belongs to.
func (d *run) authenticate(ctx context.Context, p *peer) (steps.Kind, steps.Finding) {
	resp, err := d.sendToken(ctx, p)
	switch {
	case err != nil && causeOf(err) == causeClosed:
		return login, failed(causeCell, "the gateway closed the connection without a word about the token: it could not check it",
			"most often its cell is down, slow or not reached: run queen-edge check on the gateway's machine, and look at its log for login_unsure (or capacity_tenant: too many connections)")
	case err != nil:
		return login, d.broken("SaslAuthenticate", err)
	case resp.ErrorCode == 0:
		return login, fine("logged in by " + string(d.o.Mechanism))
	}
	sentence := codeName(resp.ErrorCode)
	if resp.ErrorMessage != nil && *resp.ErrorMessage != "" {
		sentence = *resp.ErrorMessage
	}
	switch {
	case strings.Contains(sentence, "SCOPE"):
		return scope, failed(causeMissingScope, sentence, "give the token the scope read; producing needs produce, reading and groups need consume")
	case strings.Contains(sentence, "suspended"):
		return login, failed(causeSuspended, sentence, "the token is right: whoever runs the cell has suspended its cluster; ask them")
	}
	return login, failed(causeBadToken, sentence,
		"check that the token is whole, not revoked or expired, and of the cluster that this name stands for; it is the password, and the username is any label")
}

// sendToken goes through the login, the challenge by which an OAUTHBEARER login
// is refused (RFC 7628 §3.2.3) included.
func (d *run) sendToken(ctx context.Context, p *peer) (*kmsg.SASLAuthenticateResponse, error) {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.Version, req.SASLAuthBytes = 1, message(d.o.Mechanism, d.o.Token)
	got, err := p.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := got.(*kmsg.SASLAuthenticateResponse)
	if d.o.Mechanism != sasl.OAuthBearer || resp.ErrorCode != 0 || len(resp.SASLAuthBytes) == 0 {
		return resp, nil
	}
	req.SASLAuthBytes = []byte{1}
	if got, err = p.ask(ctx, req); err != nil {
		return nil, err
	}
	return got.(*kmsg.SASLAuthenticateResponse), nil
}

// codeName is a Kafka error by its name.
func codeName(code int16) string {
	if e := kerr.TypedErrorForCode(code); e != nil {
		return fmt.Sprintf("%s (%d)", e.Message, code)
	}
	return fmt.Sprintf("error %d", code)
}

// refusedWith judges an error code of a request that was answered.
func refusedWith(what string, code int16, scopeName string) steps.Finding {
	switch {
	case slices.Contains([]int16{kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code, kerr.TransactionalIDAuthorizationFailed.Code}, code):
		return failed(causeMissingScope, what+" was refused: "+codeName(code), "give the token the scope "+scopeName)
	case retriable(code):
		return failed(causeCell, what+" was answered with "+codeName(code)+": the gateway could not have it done by its cell",
			"the cell is down, slow, or refuses for a while: run queen-edge check on the gateway's machine, and look at its log")
	}
	return failed(causeKafkaError, what+" was answered with "+codeName(code), "look the code up in docs/DEVIATIONS.md, and look at the gateway's log")
}

func retriable(code int16) bool {
	e := kerr.TypedErrorForCode(code)
	return e != nil && e.Retriable && code != kerr.UnknownTopicOrPartition.Code
}
