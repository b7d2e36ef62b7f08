package api

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// Request is one frame whose API is known. Frame is the content after the
// length prefix; it must stay untouched until Serve has returned.
type Request struct {
	wire.Prefix
	Row     *Row
	Frame   []byte
	Arrived time.Time // when it had been read
	Span    Span      // of a trace; nil: none
}

// Span is told what became of a request.
type Span interface {
	End(r Request, o Outcome, answer int)
}

// Lookup finds the row of a frame, or why its connection ends. ApiVersions
// passes at any version: it is how a client learns which ones there are.
func (h *Handlers) Lookup(p wire.Prefix) (*Row, error) {
	row := h.row(p.Key)
	if row == nil {
		return nil, wire.Closing(wire.UnknownAPI, fmt.Errorf("API key %d", p.Key))
	}
	if row.Key != apiVersionsKey && (p.Version < row.Min || p.Version > row.Max) {
		return nil, wire.Closing(wire.UnknownVersion,
			fmt.Errorf("%s v%d is outside the announced window %d..=%d", row.Name, p.Version, row.Min, row.Max))
	}
	return row, nil
}

// Mergeable reports whether consecutive requests of this API may share a call.
func (r Request) Mergeable() bool { return r.Row.Key == produceKey }

// BringsToken reports whether a request's answer may take calls to the cell while
// the connection has not logged in.
func (r Request) BringsToken() bool { return r.Row.Key == saslAuthenticateKey }

// Serve answers one request, appending the response frame to out, but for what
// c lends to it (Conn.Lent). A nil error with nothing appended is an answer that
// must not exist (acks=0).
func (h *Handlers) Serve(ctx context.Context, c *Conn, r Request, out []byte) ([]byte, error) {
	before, o := len(out)+wire.LentBytes(c.lent), Unanswered
	defer func() { h.served(r, o, len(out)+wire.LentBytes(c.lent)-before) }() // of a panic, too
	resp, err := h.respond(ctx, c, r)
	if err != nil {
		return out, err
	}
	if out, err = c.appendResponse(out, r.CorrelationID, resp); err == nil {
		o = r.Row.outcome(resp)
	}
	return out, err
}

// respond makes the answer to one request.
func (h *Handlers) respond(ctx context.Context, c *Conn, r Request) (kmsg.Response, error) {
	if r.Row.Phase == AfterLogin && !c.proved {
		return nil, wire.Closing(wire.BeforeLogin, fmt.Errorf("%s before login", r.Row.Name))
	}
	if r.Row.Key == apiVersionsKey && (r.Version < r.Row.Min || r.Version > r.Row.Max) {
		return h.unknownApiVersions(), nil
	}
	call, req, err := c.parse(r)
	if err != nil {
		return nil, err
	}
	if err := h.answerRoom(ctx, r.Row, call); err != nil {
		return nil, err
	}
	resp, err := r.Row.serve(ctx, h, c, call, req)
	if err == nil {
		c.throttle(r.Row, req, resp)
	}
	if err == nil && c.Deed != nil {
		deeds{c.Deed, r.Row.Name}.of(req, resp)
	}
	return resp, err
}

// entryAnswerBytes is what the encoded answer of one entry of a request takes
// while the answer grows. What it is made of was weighed with the request.
const entryAnswerBytes = 300

// answerRoom waits for the memory that the answer to a request takes beside what
// was set aside for the request itself.
func (h *Handlers) answerRoom(ctx context.Context, row *Row, call Call) error {
	if row.ownRoom || row.Phase != AfterLogin {
		return nil
	}
	return call.Conn.answerRoom(ctx, entryAnswerBytes*int64(call.entries), h.cfg.RoomWait)
}

// ServeProduce answers a run of Produce requests as Serve would one by one, with
// one push where the cell takes them together. If any does not decode, the
// caller is told with ok false and nothing was done: it serves them singly, so
// that the bad one ends the connection at its own place.
func (h *Handlers) ServeProduce(ctx context.Context, c *Conn, run []Request, out []byte) (_ []byte, ok bool, _ error) {
	reqs := make([]*kmsg.ProduceRequest, 0, len(run))
	for _, r := range run {
		_, req, err := c.parse(r)
		if err != nil {
			return out, false, nil
		}
		reqs = append(reqs, req.(*kmsg.ProduceRequest))
	}
	done := 0
	defer func() { // those without an answer, after an error or a panic
		for _, r := range run[done:] {
			h.served(r, Unanswered, 0)
		}
	}()
	for i, resp := range h.produceAll(ctx, c, reqs) {
		from := len(out)
		answer, err := produceAnswer(reqs[i], resp)
		if err != nil {
			return out, true, err
		}
		if answer == nil {
			answer = noReply{}
		}
		c.throttle(run[i].Row, reqs[i], answer)
		if out, err = c.appendResponse(out, run[i].CorrelationID, answer); err != nil {
			return out, true, err
		}
		done++
		h.served(run[i], run[i].Row.outcome(resp), len(out)-from)
	}
	return out, true, nil
}

// parse reads header and body of a frame.
func (c *Conn) parse(r Request) (Call, kmsg.Request, error) {
	probe := r.Row.newRequest()
	probe.SetVersion(r.Version)
	hdr, body, err := wire.ParseHeader(r.Frame, probe.IsFlexible())
	if err != nil {
		return Call{}, nil, wire.Closing(wire.Malformed, fmt.Errorf("%s v%d: %w", r.Row.Name, r.Version, err))
	}
	req, entries, err := r.Row.read(r.Version, body)
	if err != nil {
		return Call{}, nil, wire.Closing(wire.Malformed, fmt.Errorf("%s v%d: %w", r.Row.Name, r.Version, err))
	}
	return Call{Conn: c, ClientID: hdr.ClientID, Version: r.Version, entries: entries}, req, nil
}

// noReply is the response of a request that must not be answered.
type noReply struct{ kmsg.Response }

// appendResponse appends one response frame. The header of an ApiVersions
// response is never flexible, so that a client of any age can read it (KIP-511).
func (c *Conn) appendResponse(out []byte, correlationID int32, resp kmsg.Response) ([]byte, error) {
	if _, none := resp.(noReply); none {
		return out, nil
	}
	from, parts := len(out), len(c.lent)
	out = wire.BeginResponse(out, correlationID, resp.IsFlexible() && resp.Key() != apiVersionsKey)
	if fetched, ok := resp.(*kmsg.FetchResponse); ok {
		out, c.lent = appendFetch(out, c.lent, fetched)
	} else {
		out = resp.AppendTo(out)
	}
	lent := wire.LentBytes(c.lent[parts:])
	if !wire.EndResponse(out, from, lent) {
		c.lent = c.lent[:parts]
		return out[:from], wire.Closing(wire.AnswerTooLarge, fmt.Errorf("%d bytes", len(out)+lent-from))
	}
	return out, nil
}
