package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// refusal is an answer that is not what was asked for: the proxy's own
// (cell-http §5.3) or the broker's (§3.13). Both are
// {"error":"<text>","code":"<code>"}.
type refusal struct {
	status     int
	code       string
	text       string
	retryAfter int  // s; 0: no Retry-After
	broker     bool // the broker's: the request was handed on, and is metered
}

func refuse(status int, code, text string) *refusal {
	return &refusal{status: status, code: code, text: text}
}

// fromBroker is a refusal of the broker's.
func fromBroker(status int, code, text string) *refusal {
	return &refusal{status: status, code: code, text: text, broker: true}
}

func unauthorized(text string) *refusal {
	return refuse(http.StatusUnauthorized, "unauthorized", text)
}

func forbidden(text string) *refusal {
	return refuse(http.StatusForbidden, "forbidden", text)
}

func clusterUnknown() *refusal {
	return refuse(http.StatusMisdirectedRequest, "cluster_unknown", "no cluster for this host")
}

func routeBlocked() *refusal {
	return refuse(http.StatusNotFound, "route_blocked", "not available")
}

func tooLarge(text string) *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "payload_too_large", text)
}

func bodyTooLarge() *refusal { return tooLarge("request body exceeds cap") }

func batchTooLarge(items int64, limit control.Limit) *refusal {
	return tooLarge(fmt.Sprintf("batch of %d items exceeds max_batch_items (%s)", items, limit))
}

func payloadTooLarge(item, size int64, limit control.Limit) *refusal {
	return tooLarge(fmt.Sprintf("item %d: payload %d bytes exceeds max_payload_bytes (%s)", item, size, limit))
}

func rateLimited(text string, retryAfter int) *refusal {
	return &refusal{status: http.StatusTooManyRequests, code: "rate_limited", text: text, retryAfter: retryAfter}
}

// badBody is the broker's answer to what is no JSON text.
func badBody() *refusal {
	return fromBroker(http.StatusBadRequest, "bad_body", "bad body: not valid JSON")
}

// badRequest is the broker's answer to JSON of the wrong shape.
func badRequest(text string) *refusal {
	return fromBroker(http.StatusBadRequest, "bad_request", text)
}

// retryLater is the broker's "not now".
func retryLater(text string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: "retry", text: text, retryAfter: 1, broker: true}
}

// brokerRefusal is the envelope of a broker's error (cell-http §3.13).
func brokerRefusal(err error) *refusal {
	switch {
	case errors.Is(err, broker.ErrStorageFull):
		return fromBroker(http.StatusInsufficientStorage, "storage_full", "storage full")
	case errors.Is(err, broker.ErrNameTooLong):
		return fromBroker(http.StatusRequestEntityTooLarge, "name_too_long", "name too long")
	case errors.Is(err, broker.ErrTooMany):
		return badRequest("too many entries")
	case errors.Is(err, broker.ErrBadRequest):
		return badRequest(err.Error())
	case errors.Is(err, broker.ErrClosed):
		return retryLater("the cell is shutting down")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return retryLater("the request was given up")
	default:
		return fromBroker(http.StatusInternalServerError, "internal", "internal error")
	}
}

// refuse writes a refusal.
func (p *Proxy) refuse(c *call, f *refusal) {
	if f.retryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	a := p.newAnswer(c, f.status)
	defer p.release(a)
	a.RawStr(`{"error":`)
	a.Str(f.text)
	a.RawStr(`,"code":`)
	a.Str(f.code)
	a.RawStr(`}`)
	a.finish()
}
