package main

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/trace"
)

// openTraces makes the tracer, if there is to be one.
func openTraces(cfg config.Config, log *zap.Logger) (t *trace.Tracer, stop func(), err error) {
	if cfg.OTLPEndpoint == "" {
		return nil, func() {}, nil
	}
	t, err = trace.New(trace.Config{Endpoint: cfg.OTLPEndpoint, Ratio: cfg.OTLPRatio, Log: api.Sampled(log)})
	if err != nil {
		return nil, nil, fmt.Errorf("QUEEN_KAFKA_OTLP_ENDPOINT: %w", err)
	}
	return t, func() {
		if err := t.Close(); err != nil {
			log.Warn("the last spans are lost", zap.Error(err))
		}
	}, nil
}
