package edge

import (
	"context"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/trace"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// traced begins the span of a request that is served next, where there are traces,
// and returns the context to serve it in.
func (c *conn) traced(ctx context.Context, r *api.Request) context.Context {
	if c.srv.traces == nil {
		return ctx
	}
	ctx, span := c.srv.traces.Request(ctx, r.Row.Name, r.Version, r.Arrived)
	r.Span = &requestSpan{c, span}
	c.api.Poll = trace.Under(ctx, c.poll) // the other context that calls are made in
	return ctx
}

// requestSpan ends with its request. It is the worker's, as the connection's
// tenant is.
type requestSpan struct {
	c    *conn
	span trace.Span
}

// End implements api.Span.
func (s *requestSpan) End(r api.Request, o api.Outcome, answer int) {
	tenant := ""
	if s.c.promoted {
		tenant = s.c.scope.ID().String()
	}
	s.span.End(tenant, o.String(), o >= api.Unavailable, len(r.Frame)+wire.SizeBytes, answer)
}

// called is told of every call to the cell.
func (s *Server) called(ctx context.Context, d proxyclient.Done) {
	s.metrics.call(ctx, d)
	if s.traces != nil {
		s.traces.Call(ctx, d.Route, d.Status, d.Began, d.Took)
	}
}

func (s *Server) tellSpans(tell tell) {
	var exported, failed int64
	if s.traces != nil {
		exported, failed = s.traces.Counts()
	}
	tell(float64(exported), "exported")
	tell(float64(failed), "failed")
}
