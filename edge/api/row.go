package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Phase says when a request may come.
type Phase uint8

// Phases of a Row.
const (
	AfterLogin  Phase = iota
	BeforeLogin       // part of the login; after it too
)

// Row is one API of the table.
type Row struct {
	Key      int16
	Name     string
	Min, Max int16
	Phase    Phase
	MaxFrame int     // largest request frame in bytes
	Codes    []int16 // every error code a response may carry beside 0

	shape      *shape
	codes      *codePlan // of its responses; nil: they have none, or the row is not a Handlers'
	weight     int       // memory for each byte of a request
	ownRoom    bool      // the handler takes the memory of its answer
	padded     bool      // bytes after the last field are let be
	keeps      bool      // it keeps a member or a transaction alive
	newRequest func() kmsg.Request
	serve      func(ctx context.Context, h *Handlers, c *Conn, call Call, req kmsg.Request) (kmsg.Response, error)
}

// Call is what a handler knows of its request beside the body.
type Call struct {
	Scope    tenancy.Scope
	Conn     *Conn
	ClientID string
	Version  int16
	entries  int // of the request's lists
}

// Frame limits by API (architecture.md, "bound before allocate"): what kmsg
// decodes can be many times the size of its frame.
const (
	smallFrame   = 1 << 20
	listFrame    = 4 << 20
	fetchFrame   = 16 << 20
	produceFrame = wire.MaxFrame
)

// request is the pointer type of a kmsg request R.
type request[R any] interface {
	*R
	kmsg.Request
}

// on makes the row of an API that needs a proved Scope. The key comes from the
// request type, so a row and its handler cannot disagree about it.
func on[R any, P request[R], S kmsg.Response](lowest, highest int16, handle func(*Handlers, context.Context, Call, P) (S, error), codes ...*kerr.Error) Row {
	row := rowOf[R, P](lowest, highest, codes)
	row.serve = func(ctx context.Context, h *Handlers, c *Conn, call Call, req kmsg.Request) (kmsg.Response, error) {
		call.Scope = c.Scope()
		return handle(h, ctx, call, req.(P))
	}
	return row
}

// pre makes the row of an API of the login: its handler sees the Conn, which
// has no Scope yet.
func pre[R any, P request[R], S kmsg.Response](lowest, highest int16, handle func(*Handlers, context.Context, *Conn, P) (S, error), codes ...*kerr.Error) Row {
	row := rowOf[R, P](lowest, highest, codes)
	row.Phase = BeforeLogin
	row.serve = func(ctx context.Context, h *Handlers, c *Conn, _ Call, req kmsg.Request) (kmsg.Response, error) {
		return handle(h, ctx, c, req.(P))
	}
	return row
}

func rowOf[R any, P request[R]](lowest, highest int16, codes []*kerr.Error) Row {
	var p P
	row := Row{Key: p.Key(), Name: kmsg.NameForKey(p.Key()), Min: lowest, Max: highest, MaxFrame: smallFrame}
	row.shape, row.weight = shapeOf(row.Key), weightOf(row.Key)
	for _, c := range codes {
		row.Codes = append(row.Codes, c.Code)
	}
	row.newRequest = func() kmsg.Request {
		p := P(new(R))
		return p
	}
	return row
}

// frames sets a row's frame limit.
func (r Row) frames(limit int) Row {
	r.MaxFrame = limit
	return r
}

// padding lets bytes after a request's last field be, as Apache Kafka does for
// every API.
func (r Row) padding() Row {
	r.padded = true
	return r
}

// keeping marks what keeps a member or a transaction alive: it is never throttled
// (B6).
func (r Row) keeping() Row {
	r.keeps = true
	return r
}

// Keeps reports whether requests of this API keep a member or a transaction
// alive.
func (r *Row) Keeps() bool { return r.keeps }

// Throttled reports whether an answer of this API may ask its client to wait. A
// login never does, and may come in the middle of a connection.
func (r *Row) Throttled() bool { return !r.keeps && r.Phase == AfterLogin }

// takesRoom leaves the memory of the answer to the handler.
func (r Row) takesRoom() Row {
	r.ownRoom = true
	return r
}

// errLeftOver is a body with bytes after its last field.
var errLeftOver = errors.New("bytes are left over after the request")

// decode reads a body at a version that the row announces. A body that is too
// short or too long is an error, and so is one that would take more memory than
// was set aside for it: the walk sees both before kmsg takes any.
func (r *Row) decode(version int16, body []byte) (kmsg.Request, error) {
	req, _, err := r.read(version, body)
	return req, err
}

// read is decode that tells how many entries the request has.
func (r *Row) read(version int16, body []byte) (kmsg.Request, int, error) {
	entries, err := r.count(version, body)
	if err != nil {
		return nil, 0, err
	}
	req := r.newRequest()
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return nil, 0, err
	}
	return req, entries, nil
}
