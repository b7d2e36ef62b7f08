package main

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/edge/config"
)

// openAudit opens the audit log, if there is to be one.
func openAudit(cfg config.Config, stderr io.Writer, log *zap.Logger) (l *audit.Log, stop func(), err error) {
	if cfg.AuditLog == "" {
		return nil, func() {}, nil
	}
	l, err = audit.Open(cfg.AuditLog, stderr, time.Now, api.Sampled(log))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open QUEEN_KAFKA_AUDIT_LOG: %w; legal: stderr, or the path of a file that this process may append to", err)
	}
	return l, func() {
		if err := l.Close(); err != nil {
			log.Error(err.Error())
		}
	}, nil
}
