// Package trace tells an OTLP receiver what became of requests: a span for each
// that is sampled, and one below it for each call to the cell (B7). It is off
// unless QUEEN_KAFKA_OTLP_ENDPOINT is set.
//
// A span travels in the context of its request, as OpenTelemetry has it. Nothing
// else is found there, and nothing but this package looks. What a span says comes
// from fixed sets, from the cell, or is a number: no token, no record, no name that
// a client chose. The receiver is never waited for: spans go through a bounded
// queue, and what finds it full is dropped.
package trace

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Bounds of what is kept for the receiver.
const (
	queued       = 4096 // spans
	batch        = 512
	every        = 2 * time.Second
	exportTime   = 10 * time.Second
	closePatient = 3 * time.Second
	attributes   = 16 // of one span
)

// Config is where spans go. All of it is set here: none of OpenTelemetry's own
// variables moves an endpoint, adds a header or changes what is sampled.
type Config struct {
	Endpoint string      // http or https; without a path /v1/traces is meant
	Ratio    float64     // of requests that are sampled, 0–1
	TLS      *tls.Config // of an https endpoint; nil: the system's roots
	Log      *zap.Logger // told of failures; it is expected to be sampled
}

// Tracer makes spans. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	sink     *sink
}

// New makes a Tracer. The receiver is not dialled before there is something to
// tell it.
func New(cfg Config) (*Tracer, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	to, err := otlptracehttp.New(context.Background(), // of HTTP: it only reads its options
		otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithHeaders(map[string]string{}),
		otlptracehttp.WithTimeout(exportTime), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
		otlptracehttp.WithHTTPClient(&http.Client{Timeout: exportTime, Transport: &http.Transport{TLSClientConfig: cfg.TLS}}),
	)
	if err != nil {
		return nil, err
	}
	t := &Tracer{sink: &sink{to: to, log: cfg.Log}}
	t.provider = sdk.NewTracerProvider(
		sdk.WithSpanProcessor(sdk.NewBatchSpanProcessor(t.sink,
			sdk.WithMaxQueueSize(queued), sdk.WithMaxExportBatchSize(batch), sdk.WithBatchTimeout(every), sdk.WithExportTimeout(exportTime))),
		sdk.WithSampler(sdk.TraceIDRatioBased(cfg.Ratio)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "queen-edge"))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: 256, AttributeCountLimit: attributes, EventCountLimit: 1, LinkCountLimit: 1,
			AttributePerEventCountLimit: 1, AttributePerLinkCountLimit: 1,
		}),
	)
	t.tracer = t.provider.Tracer("queen-edge")
	return t, nil
}

// Close tells the receiver what is still to be told, and gives up soon.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatient)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Counts are the spans that the receiver took, and those that it did not.
func (t *Tracer) Counts() (exported, failed int64) {
	return t.sink.exported.Load(), t.sink.failed.Load()
}

// Span is one request.
type Span struct{ span otel.Span }

// Request begins the span of a request that arrived at a time. The context is for
// all that is done for it.
func (t *Tracer) Request(ctx context.Context, api string, version int16, at time.Time) (context.Context, Span) {
	ctx, span := t.tracer.Start(ctx, api, otel.WithTimestamp(at), otel.WithSpanKind(otel.SpanKindServer), otel.WithNewRoot())
	if span.IsRecording() {
		span.SetAttributes(attribute.String("messaging.system", "kafka"), attribute.String("kafka.api", api), attribute.Int("kafka.api.version", int(version)))
	}
	return ctx, Span{span}
}

// Under is a context that ends as to does, with the span that ctx has.
func Under(ctx, to context.Context) context.Context {
	return otel.ContextWithSpan(to, otel.SpanFromContext(ctx))
}

// End ends a request's span. Tenant is empty before the login.
func (s Span) End(tenant, outcome string, failed bool, request, answer int) {
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.String("queen.outcome", outcome),
			attribute.Int("kafka.request.bytes", request), attribute.Int("kafka.answer.bytes", answer))
		if tenant != "" {
			s.span.SetAttributes(attribute.String("queen.tenant", tenant))
		}
		if failed {
			s.span.SetStatus(codes.Error, outcome)
		}
	}
	s.span.End()
}

// Call tells of a call to the cell that has ended, below the request it was made
// for. One that no sampled request asked for is not told.
func (t *Tracer) Call(ctx context.Context, route string, status int, began time.Time, took time.Duration) {
	if !otel.SpanFromContext(ctx).IsRecording() {
		return
	}
	_, span := t.tracer.Start(ctx, "cell "+route, otel.WithTimestamp(began), otel.WithSpanKind(otel.SpanKindClient))
	span.SetAttributes(attribute.String("queen.route", route))
	if status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if status < 200 || status > 299 {
		span.SetStatus(codes.Error, "")
	}
	span.End(otel.WithTimestamp(began.Add(took)))
}

// sink counts what the receiver takes, and keeps failures out of OpenTelemetry's
// error handler, which would be one of the whole process.
type sink struct {
	to               sdk.SpanExporter
	log              *zap.Logger
	exported, failed atomic.Int64
}

func (s *sink) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := s.to.ExportSpans(ctx, spans); err != nil {
		s.failed.Add(int64(len(spans)))
		s.log.Warn("spans are lost: the OTLP receiver did not take them", zap.Error(err))
		return nil
	}
	s.exported.Add(int64(len(spans)))
	return nil
}

func (s *sink) Shutdown(ctx context.Context) error { return s.to.Shutdown(ctx) }
